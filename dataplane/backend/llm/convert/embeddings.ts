import { embeddingsIn } from '../formats/gemini/entry.ts'
import { toPlainEmbeddings, writeGeminiEmbeddings } from '../formats/gemini/embeddings.ts'
import { readCohere, readNova, readPlain, readPredict, readTitan, writeEmbeddings, type Vectors } from '../formats/embeddings/reply.ts'
import { writeCohere, writeNova, writePlain, writePredict, writeTitan } from '../formats/embeddings/request.ts'
import { inside, listOf, objectOf, textOf } from '../common/read.ts'
import { FormatError, type Conversion, type ConvertedRequest, type JsonObject, type ResponseContext, type UpstreamFormat } from '../common/types.ts'
import { fitGeminiEmbeddings } from '../rules/native-gemini.ts'
import { readAnyUsage, readCompletionsUsage } from '../usage/raw.ts'
import { translateError } from './errors.ts'
import { emptyFacts } from './facts.ts'

/** A kind of upstream with embeddings. */
interface EmbeddingsSide {
  writeRequest(body: JsonObject, model: string): ConvertedRequest
  readReply(body: JsonObject, context: ResponseContext): Vectors
}

const sides = {
  embeddings: { writeRequest: writePlain, readReply: readPlain },
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

/** The clients of embeddings; `toPlain` makes a request of OpenAI's API. */
const clients = {
  embeddings: { toPlain: (body: JsonObject) => body, writeReply: writeEmbeddings },
  geminiEmbeddings: { toPlain: toPlainEmbeddings, writeReply: writeGeminiEmbeddings },
}

/** Embeddings of upstreams with another format than the client's (llm.md §7.13). */
export function translateEmbeddings(from: keyof typeof clients, to: keyof typeof sides): Conversion {
  const side: EmbeddingsSide = sides[to]
  const client = clients[from]
  return {
    from,
    to,
    isNative: false,
    request(body, { model }) {
      const { memo, ...converted } = side.writeRequest(client.toPlain(body), model)
      return { ...converted, memo: { ...memo, ...(from === 'geminiEmbeddings' && !Array.isArray(body['requests']) && { isSingle: true }) } }
    },
    response(body, context) {
      const read = side.readReply(inside(body), context)
      return { body: client.writeReply(read, context), facts: emptyFacts({ input: read.tokens ?? 0, isCacheExcluded: false }, context.memo.model) }
    },
    // Errors of Vertex AI pass unchanged (llm.md §9).
    error: (status, body) => translateError(from, to === 'predictEmbeddings', status, body),
    stream: rejectStream,
  }
}

/** Embeddings of Gemini clients at the Gemini API, always as a batch. */
export function passGeminiEmbeddings(): Conversion {
  return {
    from: 'geminiEmbeddings',
    to: 'geminiEmbeddings',
    isNative: true,
    request: (body, { model }) => ({
      body: fitGeminiEmbeddings(embeddingsIn(body), model),
      memo: { model, isStreaming: false, toolNames: new Map(), ...(!Array.isArray(body['requests']) && { isSingle: true }) },
      omitted: [],
    }),
    response(body, { memo }) {
      const object = objectOf(body)
      if (object === undefined) throw new FormatError('response', 'failed to parse response: it must be a JSON object')
      const { embeddings, ...others } = object
      const facts = emptyFacts(readAnyUsage(inside(object['usageMetadata'])) ?? { isCacheExcluded: false }, memo.model)
      return { body: memo.isSingle === true ? { ...others, embedding: listOf(embeddings)[0] ?? {} } : object, facts }
    },
    error: (status, body) => translateError('geminiEmbeddings', true, status, body),
    stream: rejectStream,
  }
}
