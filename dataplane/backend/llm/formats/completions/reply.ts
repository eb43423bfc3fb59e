import { inputWithCache, readCompletionsUsage } from '../../usage/raw.ts'
import type { RawUsage, Reply, ReplyBlock } from '../../common/neutral.ts'
import { compact, filledText, inside, numberOf, objectsOf, textOf } from '../../common/read.ts'
import { completionsStops, isUnknownStop, readCompletionsStop, readStopFailure, withTools } from '../../common/stops.ts'
import { joinThought } from '../../common/thoughts.ts'
import { parseArguments, printArguments } from '../../common/tools.ts'
import { FormatError, type JsonObject, type ResponseContext, type UnknownKind } from '../../common/types.ts'
import { joinText } from './entry.ts'
import { callsOf, hasUnknownPart, readArguments, readReasoning } from './message.ts'

/** Reads a chat completion; only its first choice (llm.md §7.5). Throws a FormatError if there is none. */
export function readCompletionsReply(body: JsonObject): Reply {
  const first = objectsOf(body['choices'])[0]
  if (first === undefined) throw new FormatError('response', 'failed to parse response: choices must have at least one entry')
  const failure = readStopFailure(first['finish_reason'])
  if (failure !== undefined) throw new FormatError('response', failure.message)
  const message = inside(first['message'])
  const blocks: ReplyBlock[] = []
  const reasoning = readReasoning(message)
  if (reasoning !== undefined) blocks.push({ type: 'thinking', text: reasoning, signature: '' })
  const content = filledText(joinText(message['content'], '')) ?? filledText(message['refusal'])
  if (content !== undefined) blocks.push({ type: 'text', text: content })
  for (const [at, call] of callsOf(message).entries()) {
    const called = inside(call['function'] ?? call['custom'])
    const json = readArguments(called)
    const thought = filledText(inside(inside(call['extra_content'])['google'])['thought_signature'])
    const id = filledText(call['id']) ?? `tool_call_${at}`
    blocks.push({ type: 'toolUse', id: joinThought(id, thought), name: textOf(called['name']) ?? '', input: parseArguments(json), json })
  }
  const unknown: UnknownKind[] = isUnknownStop('completions', first['finish_reason']) ? ['finish_reason'] : []
  if (hasUnknownPart(message['content'])) unknown.push('fragment')
  return {
    unknown,
    id: textOf(body['id']),
    model: textOf(body['model']),
    serviceTier: textOf(body['service_tier']),
    stopSequence: undefined,
    created: numberOf(body['created']),
    blocks,
    stop: withTools(
      readCompletionsStop(first['finish_reason']),
      blocks.some(({ type }) => type === 'toolUse'),
    ),
    usage: readCompletionsUsage(inside(body['usage'])),
  }
}

/** Writes a chat completion (llm.md §7.3, §7.9). */
export function writeCompletionsReply(reply: Reply, context: ResponseContext): JsonObject {
  return compact({
    id: reply.id ?? `chatcmpl-${context.hex(24)}`,
    object: 'chat.completion',
    created: reply.created ?? Math.floor(context.nowMs() / 1000),
    model: reply.model ?? context.memo.model,
    choices: [writeChoice(reply)],
    usage: writeCompletionsUsage(reply.usage),
    service_tier: reply.serviceTier,
  })
}

function writeChoice({ blocks, stop }: Reply): JsonObject {
  let content: string | null = null
  let reasoning: string | undefined
  let signature: string | undefined
  const calls: JsonObject[] = []
  for (const block of blocks) {
    if (block.type === 'text') content = block.text === '' ? content : (content ?? '') + block.text
    else if (block.type === 'thinking') {
      reasoning = block.text
      signature = block.signature === '' ? undefined : block.signature
    } else if (block.type === 'toolUse') calls.push({ id: block.id, type: 'function', function: { name: block.name, arguments: printArguments(block) } })
  }
  return {
    index: 0,
    message: compact({
      role: 'assistant',
      content,
      reasoning_content: reasoning,
      reasoning_signature: signature,
      tool_calls: calls.length > 0 ? calls : undefined,
    }),
    finish_reason: completionsStops[stop ?? 'end'],
    logprobs: null,
  }
}

/** Writes the `usage` of a chat completion. `prompt_tokens` includes cached tokens (llm.md §7.3). */
export function writeCompletionsUsage(usage: RawUsage): JsonObject {
  const { output = 0, cacheRead, cacheWrite, reasoning } = usage
  const input = inputWithCache(usage) ?? 0
  return compact({
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: Math.max(usage.total ?? 0, input + output),
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
    prompt_tokens_details:
      cacheRead === undefined && cacheWrite === undefined ? undefined : compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite }),
    completion_tokens_details: reasoning === undefined ? undefined : { reasoning_tokens: reasoning },
  })
}
