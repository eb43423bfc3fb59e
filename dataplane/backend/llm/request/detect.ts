import { pathOf } from '../../../http/message.ts'
import { isObject } from '../common/json.ts'
import type { RawUsage } from '../common/neutral.ts'
import { readParams } from '../common/params.ts'
import { inside } from '../common/read.ts'
import type { JsonObject, RequestParams } from '../common/types.ts'
import { atStart, readAnyUsage } from '../usage/raw.ts'

const modelPatterns = [
  /\/publishers\/[^/]+\/models\/([^/:]+):[^/]+$/,
  /\/models\/([^/:]+):[^/]+$/,
  /\/model\/([^/]+)\/(?:invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$/,
]
const streamingSuffixes = [':streamRawPredict', ':streamGenerateContent', '/invoke-with-response-stream', '/converse-stream']
/** Characters of a decoded path segment that a model name must not contain. */
// oxlint-disable-next-line no-control-regex -- the pattern rejects control characters
const UNSAFE = /[\0-\x1f\x7f\\?#<>]/

/** The model in the path of a provider's API; undefined if there is none (llm.md §3). */
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

/** Facts about a request whose format is unknown. */
interface DetectedRequest {
  readonly model: string | undefined
  readonly isStreaming: boolean
  readonly params: RequestParams
}

/** Reads model, streaming and parameters from the usual places of all supported APIs. */
export function detectRequest(target: string, body: JsonObject): DetectedRequest {
  const path = pathOf(target)
  // Providers that have the model in the path take it from there: a client must not name a cheaper one in the body.
  const named = modelOfPath(target) ?? textAt(body, 'model') ?? textAt(body, 'message', 'model')
  const isStreaming = body['stream'] === true || streamingSuffixes.some((suffix) => path.endsWith(suffix))
  return { model: named, isStreaming, params: detectParams(body) }
}

/** Gemini and Bedrock have the parameters in an object of their own, under their own names. */
function detectParams(body: JsonObject): RequestParams {
  const { temperature, topP, maxTokens, maxOutputTokens, frequencyPenalty, presencePenalty, seed } = {
    ...inside(body['inferenceConfig']),
    ...inside(body['generationConfig']),
  }
  const nested = {
    temperature,
    top_p: topP,
    max_tokens: maxOutputTokens ?? maxTokens,
    frequency_penalty: frequencyPenalty,
    presence_penalty: presencePenalty,
    seed,
  }
  return { ...readParams(nested), ...readParams(body) }
}

const usagePaths: readonly (readonly string[])[] = [['usage'], ['response', 'usage'], ['message', 'usage'], ['metadata', 'usage'], ['usageMetadata']]

/** Finds token usage in a response or stream event of any API; undefined if there is none (llm.md §3). */
export function detectUsage(body: JsonObject): RawUsage | undefined {
  for (const path of usagePaths) {
    let found: unknown = body
    for (const key of path) found = isObject(found) ? found[key] : undefined
    const usage = isObject(found) ? readAnyUsage(found) : undefined
    if (usage) return path[0] === 'message' ? atStart(usage) : usage
  }
  return undefined
}

/** Finds the model in a response or stream event of any API. */
export function detectResponseModel(body: JsonObject): string | undefined {
  return textAt(body, 'model') ?? textAt(body, 'response', 'model') ?? textAt(body, 'message', 'model') ?? textAt(body, 'modelVersion')
}

function textAt(body: JsonObject, ...path: string[]): string | undefined {
  let found: unknown = body
  for (const key of path) found = isObject(found) ? found[key] : undefined
  return typeof found === 'string' && found !== '' ? found : undefined
}
