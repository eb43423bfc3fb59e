import type { ServerResponse } from 'node:http'
import { countWords, list, piecesOf, sse, word, writeEvents, type Behaviour } from './behaviour.ts'
import { embed, sendJson } from './openai.ts'

type Json = Readonly<Record<string, unknown>>
const textOf = (content: Json | undefined): string =>
  list(content?.['parts'])
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')

/** `:generateContent` and `:streamGenerateContent` of the Gemini API, which clients reach through Passthrough and Detect routes. */
export async function respondGenerate(model: string, body: Json, response: ServerResponse, behaviour: Behaviour, isStreaming: boolean): Promise<void> {
  const contents = list(body['contents'])
  const isStructured = (body['generationConfig'] as Json | undefined)?.['responseMimeType'] === 'application/json'
  const text = behaviour.text ?? (isStructured ? '{"city":"Paris"}' : `echo: ${textOf(contents.at(-1))}`)
  const prompt = countWords(contents.map(textOf).join(' '))
  const output = countWords(text)
  const usageMetadata = { promptTokenCount: prompt, candidatesTokenCount: output, totalTokenCount: prompt + output }
  const tool = hasResult(contents) ? undefined : list(list(body['tools'])[0]?.['functionDeclarations'])[0]?.['name']
  const call = { functionCall: { name: tool, args: { city: 'Paris' } } }
  const reply = (piece: string, more: Json = {}): Json => ({
    candidates: [{ content: { role: 'model', parts: [tool === undefined ? { text: piece } : call] }, index: 0, ...more }],
    modelVersion: model,
    responseId: 'mock',
  })
  if (!isStreaming) return sendJson(response, { ...reply(text, { finishReason: 'STOP' }), usageMetadata }, behaviour)
  const pieces = tool === undefined ? piecesOf(text) : ['']
  const events = pieces.map((piece, index) => sse(index === pieces.length - 1 ? { ...reply(piece, { finishReason: 'STOP' }), usageMetadata } : reply(piece)))
  const failure = sse({ error: { code: 503, message: 'the model failed', status: 'UNAVAILABLE' } })
  return writeEvents(response, events, failure, behaviour, 'text/event-stream')
}

const hasResult = (contents: readonly Json[]): boolean => list(contents.at(-1)?.['parts']).some((part) => part['functionResponse'] !== undefined)

/** `:countTokens`. */
export function respondCountTokens(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  return sendJson(response, { totalTokens: countWords(list(body['contents']).map(textOf).join(' ')) }, behaviour)
}

/** `:batchEmbedContents`: embeddings of the Gemini API. */
export function respondEmbedContents(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const embeddings = list(body['requests']).map((request) => ({ values: embed(textOf(request['content'] as Json | undefined)) }))
  return sendJson(response, { embeddings }, behaviour)
}

/** `:predict`: embeddings of Vertex AI. */
export function respondPredict(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const predictions = list(body['instances']).map((instance) => {
    const text = word(instance['content'])
    return { embeddings: { values: embed(text), statistics: { truncated: false, token_count: countWords(text) } } }
  })
  return sendJson(response, { predictions }, behaviour)
}
