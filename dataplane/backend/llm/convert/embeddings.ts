import { readCohere, readNova, readPredict, readTitan, writeEmbeddings, type Vectors } from '../formats/embeddings/reply.ts'
import { writeCohere, writeNova, writePredict, writeTitan } from '../formats/embeddings/request.ts'
import { inside, numberOf, objectOf, textOf } from '../common/read.ts'
import { FormatError, type Conversion, type ConvertedRequest, type JsonObject, type ResponseContext, type UpstreamFormat } from '../common/types.ts'
import { readCompletionsUsage } from '../usage/raw.ts'
import { translateError } from './errors.ts'
import { emptyFacts } from './facts.ts'

interface EmbeddingsSide {
  writeRequest(body: JsonObject, model: string): ConvertedRequest
  readReply(body: JsonObject, context: ResponseContext): Vectors
}

const sides = {
  predictEmbeddings: { writeRequest: writePredict, readReply: readPredict },
  titanEmbeddings: { writeRequest: writeTitan, readReply: readTitan },
  cohereEmbeddings: { writeRequest: writeCohere, readReply: readCohere },
  novaEmbeddings: { writeRequest: writeNova, readReply: readNova },
} satisfies Partial<Record<UpstreamFormat, EmbeddingsSide>>

/** `stream` of conversions without streams. */
export function rejectStream(): never {
  throw new FormatError('response', 'failed to parse response: this kind of response has no streams')
}

/** Embeddings of upstreams with the OpenAI API. */
export function passEmbeddings(): Conversion {
  return {
    from: 'embeddings',
    to: 'embeddings',
    isNative: true,
    request: (body, { model }) => ({ body, memo: { model, isStreaming: false, toolNames: new Map() }, omitted: [] }),
    response(body) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      const facts = emptyFacts(readCompletionsUsage(inside(object['usage'])), textOf(object['model']))
      return { body: object, facts }
    },
    error: (status, body) => translateError('embeddings', true, status, body),
    stream: rejectStream,
  }
}

/** Embeddings of upstreams with their own formats (llm.md §7.13). */
export function translateEmbeddings(to: keyof typeof sides): Conversion {
  const side: EmbeddingsSide = sides[to]
  return {
    from: 'embeddings',
    to,
    isNative: false,
    request: (body, { model }) => side.writeRequest(body, model),
    response(body, context) {
      const written = writeEmbeddings(side.readReply(inside(body), context), context)
      const tokens = numberOf(inside(written['usage'])['prompt_tokens'])
      return { body: written, facts: emptyFacts({ input: tokens, isCacheExcluded: false }, context.memo.model) }
    },
    // Errors of Vertex AI pass unchanged (llm.md §9).
    error: (status, body) => translateError('embeddings', to === 'predictEmbeddings', status, body),
    stream: rejectStream,
  }
}
