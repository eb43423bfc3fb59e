import type { ClientFormat, JsonObject, UpstreamFormat } from '../common/types.ts'
import type { ProviderCall } from './types.ts'

/** The formats of the OpenAI API that can serve a request in `from`. `hasResponses`: the provider implements `/v1/responses`. */
export function openaiFormats(from: ClientFormat, hasResponses: boolean): readonly UpstreamFormat[] {
  if (from === 'embeddings') return ['embeddings']
  return hasResponses ? ['completions', 'responses'] : ['completions']
}

/** Renames `max_tokens` to `max_completion_tokens`. On Azure a deployment has any name, so that the model is not known (llm.md §7.1). */
export function renameTokenLimit(body: JsonObject, { format }: ProviderCall): JsonObject {
  if (format !== 'completions' || body['max_tokens'] === undefined) return body
  const { max_tokens: limit, ...rest } = body
  return { ...rest, max_completion_tokens: body['max_completion_tokens'] ?? limit }
}
