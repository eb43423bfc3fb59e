import type { RouteType } from '#gen/config/types.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { modelOfPath } from './detect.ts'
import { readGeminiCall } from '../formats/gemini/address.ts'
import { clientFormats } from '../formats/index.ts'
import { FormatError, type ClientFormat, type ClientFormatEntry, type JsonObject } from '../common/types.ts'
import { mutate } from '../settings/mutate.ts'
import type { LlmTarget } from '../choice/target.ts'

const formatByRoute: Partial<Readonly<Record<RouteType, ClientFormat>>> = {
  Completions: 'completions',
  Messages: 'messages',
  Responses: 'responses',
  Embeddings: 'embeddings',
  TokenCount: 'tokenCount',
  Rerank: 'rerank',
  Moderations: 'moderations',
}

/** The client format of a route; undefined if the route's bodies are not interpreted. Throws a FormatError for a path that is none of Gemini's methods. */
export function entryOf(route: RouteType, requestTarget: string): ClientFormatEntry | undefined {
  const format = route === 'Gemini' ? readGeminiCall(requestTarget).format : formatByRoute[route]
  return format && clientFormats[format]
}

/** A body with its policies applied, still in the client's format. */
interface ShapedRequest {
  readonly body: JsonObject
  readonly model: string
}

/**
 * Sets the provider's model, or `wanted` instead, applies field mutations, then resolves aliases (llm.md §2 steps 7 and 8, §6). `checkModel` receives the
 * model before aliases are resolved and throws to deny it. Throws a FormatError if there is no model.
 */
export function shapeRequest(body: JsonObject, target: LlmTarget, exchange: Exchange, checkModel: (model: string) => void, wanted?: string): ShapedRequest {
  const { provider, settings } = target
  const named = wanted ?? provider.model ?? body['model']
  const model = typeof named === 'string' ? named : modelOfPath(exchange.request.target)
  const addressed = model === undefined || model === body['model'] ? body : { ...body, model }
  const mutated = settings.mutations === undefined ? addressed : mutate(addressed, settings.mutations, exchange)
  const requested = mutated['model']
  if (typeof requested !== 'string' || requested === '') throw new FormatError('missing', 'missing field: model not specified')
  checkModel(requested)
  const resolved = settings.resolveAlias(requested)
  return { body: resolved === requested ? mutated : { ...mutated, model: resolved }, model: resolved }
}
