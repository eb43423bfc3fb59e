import type { ServerResponse } from 'node:http'
import { countWords, list, piecesOf, sse, word, writeEvents, type Behaviour } from './behaviour.ts'
import { embed, sendJson } from './openai.ts'

type Json = Readonly<Record<string, unknown>>
const textOf = (content: Json | undefined): string =>
  list(content?.['parts'])
    .map((part) => (typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')

/** `:generateContent` and `:streamGenerateContent` of the Gemini API, which Passthrough and Detect routes lead to. */
export async function answerGenerate(model: string, body: Json, response: ServerResponse, behaviour: Behaviour, isStreaming: boolean): Promise<void> {
  const contents = list(body['contents'])
  const text = behaviour.text ?? `echo: ${textOf(contents.at(-1))}`
  const prompt = countWords(contents.map(textOf).join(' '))
  const output = countWords(text)
  const usageMetadata = { promptTokenCount: prompt, candidatesTokenCount: output, totalTokenCount: prompt + output }
  const reply = (piece: string, more: Json = {}): Json => ({
    candidates: [{ content: { role: 'model', parts: [{ text: piece }] }, index: 0, ...more }],
    modelVersion: model,
    responseId: 'mock',
  })
  if (!isStreaming) return sendJson(response, { ...reply(text, { finishReason: 'STOP' }), usageMetadata }, behaviour)
  const pieces = piecesOf(text)
  const events = pieces.map((piece, index) => sse(index === pieces.length - 1 ? { ...reply(piece, { finishReason: 'STOP' }), usageMetadata } : reply(piece)))
  const failure = sse({ error: { code: 503, message: 'the model failed', status: 'UNAVAILABLE' } })
  return writeEvents(response, events, failure, behaviour, 'text/event-stream')
}

/** `:predict`: embeddings of Vertex AI. */
export function answerPredict(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const predictions = list(body['instances']).map((instance) => {
    const text = word(instance['content'])
    return { embeddings: { values: embed(text), statistics: { truncated: false, token_count: countWords(text) } } }
  })
  return sendJson(response, { predictions }, behaviour)
}
