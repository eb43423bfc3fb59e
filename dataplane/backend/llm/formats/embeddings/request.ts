import { booleanOf, compact, anyNumber, filledText, textOf } from '../../common/read.ts'
import { FormatError, type ConvertedRequest, type JsonObject } from '../../common/types.ts'
import { inputsOf } from './entry.ts'

/** Requests of upstreams with their own embeddings format (llm.md §7.13). */

function memoOf(body: JsonObject, model: string): ConvertedRequest['memo'] {
  return { model, isStreaming: false, toolNames: new Map(), isBase64: body['encoding_format'] === 'base64' }
}

function readInputs(body: JsonObject): string[] {
  const inputs = inputsOf(body['input'])
  const wanted = Array.isArray(body['input']) ? body['input'].length : 1
  if (inputs.length === 0 || inputs.length < wanted)
    throw new FormatError(
      'unsupported',
      'unsupported conversion: input must be a string or a list of strings, token lists need a provider with the OpenAI format',
    )
  return inputs
}

function readSingleInput(body: JsonObject): string {
  const [text, ...others] = readInputs(body)
  // SDKs always send lists.
  if (text !== undefined && others.length === 0) return text
  throw new FormatError(
    'unsupported',
    `unsupported conversion: input has ${others.length + 1} texts, but this model embeds one text per request; send one request for each text`,
  )
}

/** Upstreams with the API of OpenAI. */
export function writePlain(body: JsonObject, model: string): ConvertedRequest {
  return { body, memo: memoOf(body, model), omitted: [] }
}

/** Vertex AI `:predict`. */
export function writePredict(body: JsonObject, model: string): ConvertedRequest {
  const taskType = filledText(body['task_type']) ?? 'RETRIEVAL_QUERY'
  const title = textOf(body['title'])
  const parameters = compact({
    autoTruncate: booleanOf(body['autoTruncate']) ?? booleanOf(body['auto_truncate']),
    outputDimensionality: anyNumber(body['dimensions']),
  })
  const written = compact({
    instances: readInputs(body).map((content) => compact({ content, task_type: taskType, title })),
    parameters: Object.keys(parameters).length > 0 ? parameters : undefined,
  })
  return { body: written, memo: memoOf(body, model), omitted: [] }
}

/** The first generation rejects other members than the text (Bedrock user guide, Titan Embeddings G1). */
const firstTitan = /titan-embed-(?:g1|text-v1)/

/** Amazon Titan, `/invoke`. */
export function writeTitan(body: JsonObject, model: string): ConvertedRequest {
  const encoding = textOf(body['encoding_format'])
  const inputText = readSingleInput(body)
  const written = firstTitan.test(model)
    ? { inputText }
    : compact({
        inputText,
        dimensions: anyNumber(body['dimensions']),
        normalize: booleanOf(body['normalize']),
        embeddingTypes: encoding === undefined ? undefined : [encoding === 'binary' ? 'binary' : 'float'],
      })
  return { body: written, memo: memoOf(body, model), omitted: [] }
}

/** Cohere Embed on Bedrock. Only version 4 supports `dimensions`. */
export function writeCohere(body: JsonObject, model: string): ConvertedRequest {
  const written = compact({
    texts: readInputs(body),
    input_type: filledText(body['input_type']) ?? 'search_query',
    truncate: textOf(body['truncate']),
    output_dimension: model.includes('embed-v4') ? anyNumber(body['dimensions']) : undefined,
  })
  return { body: written, memo: memoOf(body, model), omitted: [] }
}

/** Amazon Nova embeddings. */
export function writeNova(body: JsonObject, model: string): ConvertedRequest {
  const written = {
    taskType: 'SINGLE_EMBEDDING',
    singleEmbeddingParams: compact({
      embeddingPurpose: 'GENERIC_INDEX',
      embeddingDimension: anyNumber(body['dimensions']),
      text: { truncationMode: 'END', value: readSingleInput(body) },
    }),
  }
  return { body: written, memo: memoOf(body, model), omitted: [] }
}
