import type { Block, Chat, ToolResult } from '../neutral.ts'
import { anyNumber, compact, inside, numberOf, objectOf } from '../read.ts'
import { budgetOfEffort, objectInput } from '../tools.ts'
import { FormatError, type ConvertedRequest, type JsonObject, type RequestContext } from '../types.ts'
import { normaliseSchema } from './schema.ts'
import { readSignature } from './signature.ts'

interface Entry {
  readonly role: 'user' | 'model'
  readonly parts: JsonObject[]
  /** Results of tools stay alone. */
  readonly isResult: boolean
}

/** Writes a generateContent request for clients of CC (llm.md §7.11). `body` has the extras that no other format knows. */
export function writeGeminiRequest(chat: Chat, { model }: RequestContext, body: JsonObject): ConvertedRequest {
  const cached = body['cachedContent'] ?? body['cached_content']
  const isFresh = cached === undefined
  const written = compact({
    contents: writeContents(chat),
    systemInstruction: isFresh && chat.system.length > 0 ? { parts: [{ text: chat.system.map(({ text }) => text).join('\n') }] } : undefined,
    tools: isFresh && chat.tools.length > 0 ? [{ functionDeclarations: chat.tools.map(writeTool) }] : undefined,
    toolConfig: isFresh ? writeToolConfig(chat) : undefined,
    generationConfig: writeGenerationConfig(chat, model, body),
    cachedContent: cached,
    safetySettings: body['safetySettings'] ?? body['safety_settings'],
    labels: body['labels'],
  })
  return { body: written, memo: { model, isStreaming: chat.isStreaming, toolNames: new Map() }, warnings: chat.warnings }
}

function writeContents({ turns }: Chat): JsonObject[] {
  const uses = turns.flatMap(({ blocks }) => blocks.filter((block) => block.type === 'toolUse'))
  const entries: Entry[] = []
  const add = (role: Entry['role'], parts: JsonObject[], isResult: boolean): void => {
    const last = entries.at(-1)
    if (parts.length === 0) return
    if (last?.role === role && last.isResult === isResult) last.parts.push(...parts)
    else entries.push({ role, parts, isResult })
  }
  // Results of one turn of calls, in the order of the calls.
  let results: ToolResult[] = []
  const flush = (): void => {
    const order = (result: ToolResult): number => uses.findIndex(({ id }) => id === result.id)
    const sorted = results.toSorted((a, b) => order(a) - order(b))
    add(
      'user',
      sorted.map((result) => writeResult(result, uses[order(result)]?.name ?? result.id)),
      true,
    )
    results = []
  }
  for (const { role, blocks } of turns) {
    const found = blocks.filter((block) => block.type === 'toolResult')
    const others = blocks.filter((block) => block.type !== 'toolResult')
    if (others.length > 0) flush()
    results.push(...found)
    add(
      role === 'assistant' ? 'model' : 'user',
      others.map(writePart).filter((part) => part !== undefined),
      false,
    )
  }
  flush()
  for (const { role, parts, isResult } of entries)
    if (role === 'user' && !isResult && !parts.some((part) => part['text'] !== undefined)) parts.push({ text: ' ' })
  return entries.length > 0 ? entries.map(({ role, parts }) => ({ role, parts })) : [{ role: 'user', parts: [{ text: ' ' }] }]
}

function writePart(block: Block): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return { text: block.text }
    case 'image':
      return { inlineData: { mimeType: block.mediaType === 'image/jpg' ? 'image/jpeg' : block.mediaType, data: block.data } }
    case 'imageUrl':
      return { fileData: { mimeType: mimeTypeOf(block), fileUri: block.url } }
    case 'toolUse':
      return compact({ functionCall: { name: block.name, args: objectInput(block) }, thoughtSignature: readSignature(block.id) })
    default:
      return undefined
  }
}

const mimeTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  pdf: 'application/pdf',
  mp4: 'video/mp4',
}

function mimeTypeOf({ url, mediaType }: Extract<Block, { type: 'imageUrl' }>): string {
  if (!url.startsWith('gs://'))
    throw new FormatError('unsupported', 'unsupported conversion: an image must be a base64 data URL or a gs:// URL, this provider does not fetch images')
  const known = mediaType?.includes('/') === true ? mediaType : mimeTypes[(mediaType ?? /\.([a-z0-9]+)$/i.exec(url)?.[1] ?? '').toLowerCase()]
  if (known === undefined)
    throw new FormatError('unsupported', `unsupported conversion: the type of ${url} is not known; set image_url.format, such as image/png`)
  return known
}

function writeResult({ content }: ToolResult, name: string): JsonObject {
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
  return { functionResponse: { name, response: { content: text } } }
}

function writeTool({ name, description, schema }: Chat['tools'][number]): JsonObject {
  return compact({ name, description, parameters: schema && normaliseSchema(schema) })
}

function writeToolConfig({ toolChoice, tools }: Chat): JsonObject | undefined {
  if (toolChoice === undefined || tools.length === 0) return undefined
  const modes = { none: 'NONE', auto: 'AUTO', any: 'ANY', tool: 'ANY' }
  return {
    functionCallingConfig: compact({
      mode: modes[toolChoice.type],
      allowedFunctionNames: toolChoice.type === 'tool' ? [toolChoice.name] : undefined,
    }),
  }
}

function writeGenerationConfig(chat: Chat, model: string, body: JsonObject): JsonObject | undefined {
  const { format } = chat
  const config = compact({
    temperature: chat.temperature,
    topP: chat.topP,
    topK: chat.topK,
    candidateCount: anyNumber(body['n']),
    seed: anyNumber(body['seed']),
    frequencyPenalty: anyNumber(body['frequency_penalty']),
    presencePenalty: anyNumber(body['presence_penalty']),
    stopSequences: chat.stop.length > 0 ? chat.stop : undefined,
    maxOutputTokens: chat.maxTokens,
    responseMimeType: format && 'application/json',
    responseSchema: format?.type === 'schema' ? normaliseSchema(inside(format.schema)) : undefined,
    thinkingConfig: objectOf(body['thinking_config']) ?? writeThinking(chat, model),
  })
  return Object.keys(config).length > 0 ? config : undefined
}

const levels: Readonly<Record<string, string>> = { minimal: 'minimal', low: 'low', medium: 'medium', high: 'high', xhigh: 'high', max: 'high' }

function writeThinking({ effort, thinkingBudget }: Chat, model: string): JsonObject | undefined {
  const level = levels[effort ?? '']
  if (model.includes('gemini-3') && level !== undefined && thinkingBudget === undefined) return { thinkingLevel: level, includeThoughts: true }
  const budget = numberOf(thinkingBudget) ?? budgetOfEffort(effort)
  return budget === undefined ? undefined : { thinkingBudget: budget, includeThoughts: true }
}
