import { isEmbeddingsFormat, isPlainFormat, type ClientFormat, type UpstreamFormat } from '../common/types.ts'

/** The formats of the OpenAI API that can serve a request in `from`. `hasResponses`: the provider implements `/v1/responses`. */
export function openaiFormats(from: ClientFormat, hasResponses: boolean): readonly UpstreamFormat[] {
  if (isEmbeddingsFormat(from)) return ['embeddings']
  if (isPlainFormat(from)) return [from]
  return hasResponses ? ['completions', 'responses'] : ['completions']
}
