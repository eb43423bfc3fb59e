import { inside, listOf, numberOf, objectsOf } from '../../common/read.ts'
import { FormatError, type JsonObject, type ResponseContext } from '../../common/types.ts'

/** The vectors of an upstream's response, and its token count. */
export interface Vectors {
  readonly vectors: readonly (readonly unknown[])[]
  readonly tokens: number | undefined
}

/** Upstreams with the API of OpenAI. */
export function readPlain(body: JsonObject): Vectors {
  const usage = inside(body['usage'])
  return {
    vectors: objectsOf(body['data']).map(({ embedding }) => listOf(embedding)),
    tokens: numberOf(usage['prompt_tokens']) ?? numberOf(usage['total_tokens']),
  }
}

/** Vertex AI `:predict`. */
export function readPredict(body: JsonObject): Vectors {
  const found = objectsOf(body['predictions']).map((prediction) => inside(prediction['embeddings']))
  const counts = found.map((embedding) => numberOf(inside(embedding['statistics'])['token_count']))
  return {
    vectors: found.map((embedding) => listOf(embedding['values'])),
    tokens: counts.every((count) => count === undefined) ? undefined : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0),
  }
}

/** Amazon Titan. */
export function readTitan(body: JsonObject): Vectors {
  const types = inside(body['embeddingsByType'])
  const vector = body['embedding'] ?? types['float'] ?? types['binary']
  return { vectors: Array.isArray(vector) ? [vector as unknown[]] : [], tokens: numberOf(body['inputTextTokenCount']) }
}

/** Cohere Embed on Bedrock: a list of vectors, or lists by type. */
export function readCohere(body: JsonObject, context: ResponseContext): Vectors {
  const { embeddings } = body
  const lists = Array.isArray(embeddings) ? embeddings : listOf(inside(embeddings)['float'])
  return { vectors: lists.map(listOf), tokens: readTokenHeader(context) }
}

/** Amazon Nova. */
export function readNova(body: JsonObject, context: ResponseContext): Vectors {
  return { vectors: objectsOf(body['embeddings']).map((entry) => listOf(entry['embedding'])), tokens: readTokenHeader(context) }
}

function readTokenHeader(context: ResponseContext): number | undefined {
  const value = context.header('x-amzn-bedrock-input-token-count') ?? ''
  return /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** Writes an Embeddings response. Throws a FormatError if there is no vector. */
export function writeEmbeddings({ vectors, tokens = 0 }: Vectors, { memo }: ResponseContext): JsonObject {
  if (vectors.length === 0 || vectors.some((vector) => vector.length === 0)) throw new FormatError('response', 'failed to parse response: it has no embeddings')
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({ object: 'embedding', embedding: memo.isBase64 === true ? toBase64(vector) : vector, index })),
    model: memo.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

/** Encodes a vector as base64 of little-endian 32-bit floats. */
function toBase64(vector: readonly unknown[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((value, at) => bytes.writeFloatLE(numberOf(value) ?? 0, at * 4))
  return bytes.toString('base64')
}
