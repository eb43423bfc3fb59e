import { anyNumber, compact, inside, textOf } from '../../common/read.ts'
import { FormatError, type JsonObject, type ResponseContext } from '../../common/types.ts'
import { unsupported } from '../../common/unsupported.ts'
import type { Vectors } from '../embeddings/reply.ts'
import { embeddingsIn, joinParts } from './entry.ts'
import { member } from './members.ts'

/** A request for embeddings as one of OpenAI's API, with the fields of Vertex AI. Throws a FormatError for what is no text. */
export function toPlainEmbeddings(body: JsonObject): JsonObject {
  const requests = embeddingsIn(body)
  const [first = {}] = requests
  const input = requests.map(({ content }, at) => {
    const { parts } = inside(content)
    if (!Array.isArray(parts) || parts.some((part) => textOf(inside(part)['text']) === undefined))
      throw unsupported(Array.isArray(body['requests']) ? `requests[${at}].content` : 'content', 'this provider embeds text only')
    return joinParts(parts, '\n')
  })
  const config = inside(member(first, 'embedContentConfig'))
  return compact({
    model: body['model'],
    input,
    dimensions: anyNumber(member(first, 'outputDimensionality') ?? member(config, 'outputDimensionality')),
    task_type: textOf(member(first, 'taskType') ?? member(config, 'taskType')),
    title: textOf(first['title'] ?? config['title']),
  })
}

/** Writes the response to embedContent or batchEmbedContents. Throws a FormatError if there is no vector. */
export function writeGeminiEmbeddings({ vectors }: Vectors, { memo }: ResponseContext): JsonObject {
  const [first] = vectors
  if (first === undefined || vectors.some((vector) => vector.length === 0)) throw new FormatError('response', 'failed to parse response: it has no embeddings')
  return memo.isSingle === true ? { embedding: { values: first } } : { embeddings: vectors.map((values) => ({ values })) }
}
