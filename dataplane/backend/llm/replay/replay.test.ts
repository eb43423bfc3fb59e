import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { defaultJsonLimits } from '#api/json/index.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import type { ChatFormat } from '../common/types.ts'
import { streams } from '../convert/testdata/streams.ts'
import { pair, responseContext } from '../convert/testing.ts'
import { renderEvents } from '../stream/event.ts'
import { convertReply, type ReplyForm } from './index.ts'

type Fetch = typeof globalThis.fetch
type Json = Record<string, unknown>

const formats: readonly ChatFormat[] = ['completions', 'messages', 'responses', 'gemini']
const streamed = (format: ChatFormat): ReplyForm => ({ format, isStreaming: true })
const buffered = (format: ChatFormat): ReplyForm => ({ format, isStreaming: false })

function convert(stored: Buffer, from: ReplyForm, to: ReplyForm): Buffer | undefined {
  return runSync(convertReply(stored, from, to, responseContext(), defaultJsonLimits))
}

const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const chat = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Grüß Gott 👋', tool_calls: [call] }, logprobs: null, finish_reason: 'tool_calls' }],
  usage,
}
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [
    { type: 'thinking', thinking: 'hm', signature: 'sig' },
    { type: 'text', text: 'Grüß Gott 👋' },
    { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } },
  ],
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 5 },
}
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_760_000_000,
  status: 'completed',
  error: null,
  model: 'm',
  output: [
    { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: 'Grüß Gott 👋', annotations: [] }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{"a":1}', status: 'completed' },
  ],
  usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 },
}
const ofGemini = {
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'Grüß Gott 👋' }, { functionCall: { id: 'call_1', name: 'f', args: { a: 1 } } }] },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
  modelVersion: 'm',
  responseId: 'r',
}
const examples: Readonly<Record<ChatFormat, Json>> = { completions: chat, messages: message, responses: response, gemini: ofGemini }
const bytesOf = (body: Json): Buffer => Buffer.from(JSON.stringify(body))

describe('a response that is stored in one form', () => {
  test.each(formats)('is a stream and the same buffered response again: %s', (format) => {
    const stream = convert(bytesOf(examples[format]), buffered(format), streamed(format))
    const again = convert(stream ?? Buffer.alloc(0), streamed(format), buffered(format))
    expect(JSON.parse(String(again))).toEqual(examples[format])
  })

  test.each([
    ['two choices', { ...chat, choices: [0, 1].map((index) => ({ ...chat.choices[0], index, message: { role: 'assistant', content: `${index}` } })) }],
    ['log probabilities', { ...chat, choices: [{ ...chat.choices[0], logprobs: { content: [{ token: 'a', logprob: -1 }] } }] }],
    [
      'reasoning and other members',
      { ...chat, system_fingerprint: 'fp', choices: [{ ...chat.choices[0], message: { ...chat.choices[0]?.message, reasoning_content: 'hm' } }] },
    ],
  ])('keeps %s of a chat completion', (_, body) => {
    const stream = convert(bytesOf(body), buffered('completions'), streamed('completions'))
    expect(JSON.parse(String(convert(stream ?? Buffer.alloc(0), streamed('completions'), buffered('completions'))))).toEqual(body)
  })

  test.each(['redacted_thinking', 'web_search_tool_result'])('keeps blocks of type %s and citations of a message', (type) => {
    const body = {
      ...message,
      content: [
        { type, data: 'x' },
        { type: 'text', text: 'a', citations: [{ type: 'char_location', cited_text: 'b' }] },
      ],
    }
    const stream = convert(bytesOf(body), buffered('messages'), streamed('messages'))
    expect(JSON.parse(String(convert(stream ?? Buffer.alloc(0), streamed('messages'), buffered('messages'))))).toEqual(body)
  })

  test.each(formats.flatMap((from) => formats.flatMap((to) => [false, true].flatMap((a) => [false, true].map((b) => [from, a, to, b] as const)))))(
    'of %s (stream: %s) is read by the SDK of %s (stream: %s)',
    async (from, isStored, to, isRead) => {
      const form = { format: from, isStreaming: isStored }
      const stored = isStored ? convert(bytesOf(examples[from]), buffered(from), form) : bytesOf(examples[from])
      const body = convert(stored ?? Buffer.alloc(0), form, { format: to, isStreaming: isRead })
      expect(await readers[to](body ?? Buffer.alloc(0), isRead)).toEqual({ text: 'Grüß Gott 👋', call: ['call_1', 'f', { a: 1 }], stop: 'tools', output: 5 })
    },
  )

  test.each([
    ['completions', 'messages', 'messagesText', 'Hellö'],
    ['messages', 'completions', 'completionsReasoning', 'Hello'],
    ['responses', 'converse', 'converseText', 'Hellö'],
    ['completions', 'completions', 'completionsText', 'Grüß Gott 👋'],
  ] as const)('as a stream of %s over %s is read buffered', (format, upstream, name, text) => {
    const stream = pair(format, upstream).stream(responseContext())
    const stored = renderEvents([...stream.push(streams[name]), ...stream.end()])
    expect(String(convert(stored, streamed(format), buffered(format)))).toContain(text)
  })
})

describe('a stored response is not converted', () => {
  test.each<[string, Json, ChatFormat, ReplyForm]>([
    ['with several choices', { ...chat, choices: [chat.choices[0], chat.choices[0]] }, 'completions', buffered('messages')],
    ['with annotations', { ...chat, choices: [{ message: { content: 'a', annotations: [{ type: 'url_citation' }] } }] }, 'completions', buffered('messages')],
    ['with log probabilities', { ...chat, choices: [{ message: { content: 'a' }, logprobs: { content: [] } }] }, 'completions', buffered('responses')],
    ['with a refusal', { ...chat, choices: [{ message: { content: null, refusal: 'no' } }] }, 'completions', buffered('messages')],
    ['with redacted thinking', { ...message, content: [{ type: 'redacted_thinking', data: 'x' }] }, 'messages', buffered('completions')],
    ['with citations', { ...message, content: [{ type: 'text', text: 'a', citations: [{}] }] }, 'messages', streamed('completions')],
    ['with a search', { ...response, output: [{ type: 'web_search_call', id: 'x' }] }, 'responses', buffered('completions')],
    ['that is not complete', { ...response, status: 'in_progress' }, 'responses', streamed('responses')],
    ['that is no object', [] as unknown as Json, 'completions', buffered('messages')],
  ])('%s', (_, body, format, to) => {
    expect(convert(bytesOf(body), buffered(format), to)).toBeUndefined()
  })

  test.each([
    ['no JSON', Buffer.from('{'), buffered('completions')],
    ['binary', Buffer.from([0xff, 0xfe, 0, 1]), buffered('messages')],
    ['a stream without content', Buffer.from('data: [DONE]\n\n'), streamed('completions')],
    ['a stream of errors', Buffer.from('data: {"error":{"message":"x"}}\n\n'), streamed('completions')],
    [
      'a piece without its block',
      Buffer.from('event: content_block_delta\ndata: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}}\n\n'),
      streamed('messages'),
    ],
    ['an unfinished stream', Buffer.from('event: response.created\ndata: {"type":"response.created","response":{}}\n\n'), streamed('responses')],
    ['deep nesting', Buffer.from('['.repeat(100_000)), buffered('completions')],
  ])('if it is %s', (_, stored, from) => {
    expect(convert(stored, from, { ...from, isStreaming: !from.isStreaming })).toBeUndefined()
  })

  test('but two calls with one index and different ids stay two calls', () => {
    const stored = Buffer.from(chunk({ tool_calls: [{ index: 0, id: 'a' }] }) + chunk({ tool_calls: [{ index: 0, id: 'b' }] }))
    expect(String(convert(stored, streamed('completions'), buffered('completions')))).toContain('"tool_calls":[{"id":"a"},{"id":"b"}]')
  })

  test('and a member __proto__ stays a member', () => {
    const stored = Buffer.from('{"choices":[{"index":0,"message":{"role":"assistant","content":"a","__proto__":{"x":1}}}],"model":"m"}')
    const stream = convert(stored, buffered('completions'), streamed('completions'))
    expect(String(stream)).toContain('"__proto__":{"x":1}')
    expect(convert(stream ?? Buffer.alloc(0), streamed('completions'), buffered('completions'))?.toString()).toContain('"__proto__":{"x":1}')
    expect(({} as Json)['x']).toBeUndefined()
  })
})

function chunk(delta: Json): string {
  return `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta }] })}\n\n`
}

interface Read {
  readonly text: string | null | undefined
  readonly call: readonly unknown[]
  readonly stop: string
  readonly output: number | undefined
}

const question = [{ role: 'user' as const, content: 'hi' }]

/** What the vendors' SDKs read. Nothing is sent over the network. */
const readers: Readonly<Record<ChatFormat, (body: Buffer, isStreaming: boolean) => Promise<Read>>> = {
  async completions(body, isStreaming) {
    const { chat: api } = new OpenAI({ apiKey: 'x', fetch: answer(body, isStreaming), maxRetries: 0 })
    const read = isStreaming
      ? await api.completions.stream({ model: 'm', messages: question }).finalChatCompletion()
      : await api.completions.create({ model: 'm', messages: question })
    const [choice] = read.choices
    const made = choice?.message.tool_calls?.[0]
    const called = made?.type === 'function' ? [made.id, made.function.name, JSON.parse(made.function.arguments)] : []
    return { text: choice?.message.content, call: called, stop: choice?.finish_reason === 'tool_calls' ? 'tools' : '', output: read.usage?.completion_tokens }
  },
  async messages(body, isStreaming) {
    const { messages: api } = new Anthropic({ apiKey: 'x', fetch: answer(body, isStreaming), maxRetries: 0 })
    const request = { model: 'm', max_tokens: 9, messages: question }
    const read = isStreaming ? await api.stream(request).finalMessage() : await api.create(request)
    const text = read.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
    const [called = []] = read.content.flatMap((block) => (block.type === 'tool_use' ? [[block.id, block.name, block.input]] : []))
    return { text, call: called, stop: read.stop_reason === 'tool_use' ? 'tools' : '', output: read.usage.output_tokens }
  },
  async gemini(body, isStreaming) {
    const { models } = new GoogleGenAI({ apiKey: 'x' })
    const { fetch } = globalThis
    globalThis.fetch = answer(body, isStreaming)
    try {
      const request = { model: 'm', contents: 'hi' }
      const pieces = isStreaming ? [] : [await models.generateContent(request)]
      if (isStreaming) for await (const piece of await models.generateContentStream(request)) pieces.push(piece)
      const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
      const called = parts.find(({ functionCall }) => functionCall !== undefined)?.functionCall
      const text = parts.map((part) => (part.thought === true ? '' : (part.text ?? ''))).join('')
      return { text, call: [called?.id, called?.name, called?.args], stop: 'tools', output: pieces.at(-1)?.usageMetadata?.candidatesTokenCount }
    } finally {
      globalThis.fetch = fetch
    }
  },
  async responses(body, isStreaming) {
    const { responses: api } = new OpenAI({ apiKey: 'x', fetch: answer(body, isStreaming), maxRetries: 0 })
    const read = isStreaming ? await api.stream({ model: 'm', input: 'hi' }).finalResponse() : await api.create({ model: 'm', input: 'hi' })
    const [called = []] = read.output.flatMap((item) => (item.type === 'function_call' ? [[item.call_id, item.name, JSON.parse(item.arguments)]] : []))
    return { text: read.output_text, call: called, stop: read.status === 'completed' ? 'tools' : '', output: read.usage?.output_tokens }
  },
}

function answer(body: Buffer, isStreaming: boolean): Fetch {
  const headers = { 'content-type': isStreaming ? 'text/event-stream' : 'application/json' }
  return () => Promise.resolve(new Response(new Uint8Array(body), { headers }))
}
