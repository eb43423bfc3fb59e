import { pathOf } from '../http/message.ts'
import { isObject } from './formats/json.ts'
import type { JsonObject, RequestParams, Usage } from './formats/types.ts'

const modelPatterns = [
  /\/publishers\/[^/]+\/models\/([^/:]+):[^/]+$/,
  /\/models\/([^/:]+):[^/]+$/,
  /\/model\/([^/]+)\/(?:invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$/,
]
const streamingSuffixes = [':streamRawPredict', ':streamGenerateContent', '/invoke-with-response-stream', '/converse-stream']
/** Of a decoded segment: what would be another path, or none. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const UNSAFE = /[\0-\x1f\x7f\\?#<>]/

/** The model that a vendor's path names (llm.md §3). */
export function modelOfPath(target: string): string | undefined {
  const path = pathOf(target)
  for (const pattern of modelPatterns) {
    const segment = pattern.exec(path)?.[1]
    if (segment === undefined) continue
    const model = decode(segment)
    if (model !== undefined && model !== '' && !model.includes('..') && !UNSAFE.test(model)) return model
  }
  return undefined
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** What a body of unknown format says about itself. */
export interface DetectedRequest {
  readonly model: string | undefined
  readonly isStreaming: boolean
  readonly params: RequestParams
}

export function detectRequest(target: string, body: JsonObject): DetectedRequest {
  const path = pathOf(target)
  const named = textAt(body, 'model') ?? textAt(body, 'message', 'model') ?? modelOfPath(target)
  const isStreaming = body['stream'] === true || streamingSuffixes.some((suffix) => path.endsWith(suffix))
  return { model: named, isStreaming, params: detectParams(body) }
}

function detectParams(body: JsonObject): RequestParams {
  const params: RequestParams = {}
  for (const key of ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty', 'seed', 'dimensions'] as const) {
    const value = body[key]
    if (typeof value === 'number') params[key] = value
  }
  const limit = body['max_completion_tokens'] ?? body['max_tokens']
  if (typeof limit === 'number') params.max_tokens = limit
  const encoding = body['encoding_format']
  if (typeof encoding === 'string') params.encoding_format = encoding
  return params
}

const usagePlaces: readonly (readonly string[])[] = [['usage'], ['response', 'usage'], ['message', 'usage'], ['metadata', 'usage'], ['usageMetadata']]

/** The usage that an answer, or an event of a stream, has somewhere; undefined where none is (llm.md §3). */
export function detectUsage(body: JsonObject): Usage | undefined {
  for (const place of usagePlaces) {
    let found: unknown = body
    for (const key of place) found = isObject(found) ? found[key] : undefined
    if (!isObject(found)) continue
    const input = numberOf(found, 'input_tokens', 'prompt_tokens', 'inputTokens', 'promptTokenCount')
    const output = numberOf(found, 'output_tokens', 'completion_tokens', 'outputTokens', 'candidatesTokenCount')
    const total = numberOf(found, 'total_tokens', 'totalTokens', 'totalTokenCount')
    if (input === undefined && output === undefined && total === undefined) continue
    return usageOf(input, output ?? (total !== undefined && input !== undefined ? total - input : undefined), total)
  }
  return undefined
}

function usageOf(input: number | undefined, output: number | undefined, total: number | undefined): Usage {
  const sum = total ?? (input ?? 0) + (output ?? 0)
  return {
    ...(input !== undefined && { inputTokens: input, providerInputTokens: input }),
    ...(output !== undefined && { outputTokens: output }),
    totalTokens: sum,
    providerTotalTokens: sum,
  }
}

/** Later events of a stream know more. */
export function mergeDetected(before: Usage | undefined, next: Usage): Usage {
  if (before === undefined) return next
  const merged = { ...before, ...next }
  merged.totalTokens = Math.max(next.totalTokens ?? 0, (merged.inputTokens ?? 0) + (merged.outputTokens ?? 0))
  return merged
}

export function detectResponseModel(body: JsonObject): string | undefined {
  return textAt(body, 'model') ?? textAt(body, 'response', 'model') ?? textAt(body, 'message', 'model') ?? textAt(body, 'modelVersion')
}

function numberOf(object: JsonObject, ...names: string[]): number | undefined {
  for (const name of names) {
    const value = object[name]
    if (typeof value === 'number' && value >= 0) return value
  }
  return undefined
}

function textAt(body: JsonObject, ...path: string[]): string | undefined {
  let found: unknown = body
  for (const key of path) found = isObject(found) ? found[key] : undefined
  return typeof found === 'string' && found !== '' ? found : undefined
}
