import type { ServerResponse } from 'node:http'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { countWords, list, piecesOf, word, writeEvents, type Behaviour } from './behaviour.ts'
import { embed, sendJson } from './openai.ts'

type Json = Readonly<Record<string, unknown>>
const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)

function textOf(content: unknown): string {
  return list(content)
    .map((block) => (typeof block['text'] === 'string' ? block['text'] : textOf((block['toolResult'] as Json | undefined)?.['content'])))
    .join('')
}

/** `POST /model/{model}/converse` and `/converse-stream` of Amazon Bedrock. */
export async function respondConverse(body: Json, response: ServerResponse, behaviour: Behaviour, isStreaming: boolean): Promise<void> {
  const messages = list(body['messages'])
  const last = messages.at(-1)
  const hasResult = list(last?.['content']).some((block) => block['toolResult'] !== undefined)
  const spec = list((body['toolConfig'] as Json | undefined)?.['tools'])[0]?.['toolSpec'] as Json | undefined
  const tool = hasResult || body['toolConfig'] === undefined ? undefined : word(spec?.['name'])
  const isStructured = (body['outputConfig'] as Json | undefined)?.['textFormat'] !== undefined
  const text = behaviour.text ?? (isStructured ? '{"city":"Paris"}' : `echo: ${textOf(last?.['content'])}`)
  const input = countWords(`${textOf(body['system'])} ${messages.map((message) => textOf(message['content'])).join(' ')}`)
  const output = countWords(text)
  const usage = { inputTokens: input, outputTokens: output, totalTokens: input + output }
  const use = { toolUseId: 'tooluse_mock', name: tool, input: { city: 'Paris' } }
  const stopReason = tool === undefined ? 'end_turn' : 'tool_use'
  const metrics = { latencyMs: 1 }
  if (!isStreaming) {
    const content = [tool === undefined ? { text } : { toolUse: use }]
    return sendJson(response, { output: { message: { role: 'assistant', content } }, stopReason, usage, metrics }, behaviour)
  }
  const frame = (type: string, payload: Json): Buffer =>
    encodeFrame({ ':message-type': 'event', ':event-type': type, ':content-type': 'application/json' }, payload)
  const delta = (change: Json): Buffer => frame('contentBlockDelta', { contentBlockIndex: 0, delta: change })
  const events = [
    frame('messageStart', { role: 'assistant' }),
    ...(tool === undefined
      ? piecesOf(text).map((piece) => delta({ text: piece }))
      : [
          frame('contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: use.toolUseId, name: tool } } }),
          ...['{"city"', ':"Paris"}'].map((piece) => delta({ toolUse: { input: piece } })),
        ]),
    frame('contentBlockStop', { contentBlockIndex: 0 }),
    frame('messageStop', { stopReason }),
    frame('metadata', { usage, metrics }),
  ]
  const failure = encodeFrame(
    { ':message-type': 'exception', ':exception-type': 'modelStreamErrorException', ':content-type': 'application/json' },
    { message: 'the model failed' },
  )
  return writeEvents(response, events, failure, behaviour, 'application/vnd.amazon.eventstream')
}

/** An event of `application/vnd.amazon.eventstream`. */
export function encodeFrame(headers: Readonly<Record<string, string>>, payload: Json): Buffer {
  const typed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, { type: 'string' as const, value }]))
  return Buffer.from(codec.encode({ headers: typed, body: Buffer.from(JSON.stringify(payload)) }))
}

/** `POST /model/{model}/invoke`: embeddings of Titan, Cohere and Nova. */
export async function respondInvoke(model: string, body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  if (model.includes('cohere')) {
    const texts = (body['texts'] as string[] | undefined) ?? []
    response.setHeader('x-amzn-bedrock-input-token-count', String(countWords(texts.join(' '))))
    return sendJson(response, { id: 'mock', embeddings: texts.map(embed), texts, response_type: 'embeddings_floats' }, behaviour)
  }
  if (model.includes('nova')) {
    const text = word(((body['singleEmbeddingParams'] as Json | undefined)?.['text'] as Json | undefined)?.['value'])
    response.setHeader('x-amzn-bedrock-input-token-count', String(countWords(text)))
    return sendJson(response, { embeddings: [{ embeddingType: 'TEXT', embedding: embed(text) }] }, behaviour)
  }
  const text = word(body['inputText'])
  return sendJson(response, { embedding: embed(text), inputTextTokenCount: countWords(text) }, behaviour)
}

/** `POST /model/{model}/count-tokens`. */
export function respondInvokeCount(body: Json, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const encoded = ((body['input'] as Json | undefined)?.['invokeModel'] as Json | undefined)?.['body']
  const counted = JSON.parse(Buffer.from(word(encoded), 'base64').toString()) as Json
  return sendJson(response, { inputTokens: countWords(JSON.stringify(counted['messages'])) }, behaviour)
}
