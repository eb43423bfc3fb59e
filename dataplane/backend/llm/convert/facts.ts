import type { RawUsage } from '../common/neutral.ts'
import { filledText, inside, numberOf, objectOf, objectsOf, textOf } from '../common/read.ts'
import { printJson } from '../common/json.ts'
import type { ChatFormat, JsonObject, ResponseFacts, ToolCallFact } from '../common/types.ts'
import { readAnyUsage, readCompletionsUsage, readMessagesUsage, readResponsesUsage, toUsage } from '../usage/raw.ts'

/** Reads the facts of a buffered response in a client's format. `usage` is the upstream's usage, if the response was translated. */
export function readFacts(format: ChatFormat, body: JsonObject, usage?: RawUsage): ResponseFacts {
  const own = inside(body[format === 'gemini' ? 'usageMetadata' : 'usage'])
  const facts: ResponseFacts = {
    usage: toUsage(usage ?? readOwnUsage(format, own)),
    responseModel: filledText(body['model']) ?? filledText(body['modelVersion']),
    serviceTier: filledText(body['service_tier']) ?? filledText(own['service_tier']),
    countTokens: undefined,
    completion: [],
    toolCalls: [],
  }
  switch (format) {
    case 'completions':
      for (const { message } of objectsOf(body['choices'])) readChoice(inside(message), facts)
      break
    case 'messages':
      for (const block of objectsOf(body['content'])) {
        if (block['type'] === 'text') facts.completion.push(textOf(block['text']) ?? '')
        else if (block['type'] === 'tool_use') facts.toolCalls.push(factOf(block['id'], block['name'], printJson(block['input'] ?? {})))
      }
      break
    case 'responses':
      for (const item of objectsOf(body['output'])) {
        if (item['type'] === 'function_call') facts.toolCalls.push(factOf(item['call_id'], item['name'], item['arguments']))
        else if (item['type'] !== 'reasoning') for (const part of objectsOf(item['content'])) facts.completion.push(textOf(part['text']) ?? '')
      }
      break
    case 'gemini':
      for (const { content } of objectsOf(body['candidates'])) readCandidate(inside(content), facts)
      break
  }
  return facts
}

/** The facts of a response without text. */
export function emptyFacts(usage: RawUsage, model: string | undefined): ResponseFacts {
  return { usage: toUsage(usage), responseModel: model, serviceTier: undefined, countTokens: undefined, completion: [], toolCalls: [] }
}

function readOwnUsage(format: ChatFormat, usage: JsonObject): RawUsage {
  switch (format) {
    case 'completions':
      return readCompletionsUsage(usage)
    case 'messages':
      return readMessagesUsage(usage)
    case 'responses':
      return readResponsesUsage(usage)
    case 'gemini':
      return readAnyUsage(usage) ?? { isCacheExcluded: false }
  }
}

function readChoice(message: JsonObject, facts: ResponseFacts): void {
  const content = textOf(message['content'])
  if (content !== undefined) facts.completion.push(content)
  for (const call of objectsOf(message['tool_calls'])) {
    const called = objectOf(call['function']) ?? inside(call['custom'])
    facts.toolCalls.push(factOf(call['id'], called['name'], called['arguments'] ?? called['input']))
  }
}

function readCandidate({ parts }: JsonObject, facts: ResponseFacts): void {
  const texts = objectsOf(parts).flatMap((part) => (part['thought'] === true ? [] : (textOf(part['text']) ?? [])))
  if (texts.length > 0) facts.completion.push(texts.join(''))
  for (const part of objectsOf(parts)) {
    const call = objectOf(part['functionCall'])
    if (call !== undefined) facts.toolCalls.push(factOf(call['id'], call['name'], printJson(call['args'] ?? {})))
  }
}

function factOf(id: unknown, name: unknown, args: unknown): ToolCallFact {
  return { id: textOf(id) ?? '', name: textOf(name) ?? '', arguments: textOf(args) ?? '' }
}

/** The result of a count request. */
export function readCount(body: JsonObject): number | undefined {
  return numberOf(body['input_tokens']) ?? numberOf(body['inputTokens']) ?? numberOf(body['totalTokens'])
}
