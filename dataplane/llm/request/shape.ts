import type { RouteType } from '#gen/config/types.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { modelOfPath } from './detect.ts'
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
}

/** The format that a route's requests are in; undefined for routes whose bodies are not interpreted. */
export function entryOf(route: RouteType): ClientFormatEntry | undefined {
  const format = formatByRoute[route]
  return format && clientFormats[format]
}

/** A body as its policies made it, still in the client's format. */
interface ShapedRequest {
  readonly body: JsonObject
  readonly model: string
}

/**
 * Steps 7 and 8 of the pipeline (llm.md §2, §6): the provider's model, what policies set, aliases. `checkModel` is asked with the
 * name before aliases. Throws FormatErrors.
 */
export function shapeRequest(body: JsonObject, target: LlmTarget, exchange: Exchange, checkModel: (model: string) => void): ShapedRequest {
  const { provider, settings } = target
  const named = provider.model ?? body['model']
  const model = typeof named === 'string' ? named : modelOfPath(exchange.request.target)
  const addressed = model === undefined || model === body['model'] ? body : { ...body, model }
  const mutated = settings.mutations === undefined ? addressed : mutate(addressed, settings.mutations, exchange)
  const asked = mutated['model']
  if (typeof asked !== 'string' || asked === '') throw new FormatError('missing', 'missing field: model not specified')
  checkModel(asked)
  const resolved = settings.resolveAlias(asked)
  return { body: resolved === asked ? mutated : { ...mutated, model: resolved }, model: resolved }
}
