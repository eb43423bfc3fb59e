import Anthropic from '@anthropic-ai/sdk'
import { describe, expect, test } from '@jest/globals'
import OpenAI from 'openai'
import { renderEvents } from '../stream/event.ts'
import type { ClientFormat, UpstreamFormat } from '../common/types.ts'
import { streams } from './testdata/streams.ts'
import { pair, responseContext } from './testing.ts'

/** Verifies that the vendors' SDKs can read translated responses. Nothing is sent over the network. */

type Fetch = typeof globalThis.fetch

function answerWith(body: string, contentType: string, status = 200): Fetch {
  return () => Promise.resolve(new Response(body, { status, headers: { 'content-type': contentType } }))
}

function translate(from: ClientFormat, to: UpstreamFormat, bytes: Buffer): Fetch {
  const stream = pair(from, to).stream(responseContext({ toolNames: new Map([['a_b', 'a.b']]) }))
  return answerWith(renderEvents([...stream.push(bytes), ...stream.end()]).toString(), 'text/event-stream')
}

const openai = (fetch: Fetch): OpenAI => new OpenAI({ apiKey: 'x', fetch, maxRetries: 0 })
const anthropic = (fetch: Fetch): Anthropic => new Anthropic({ apiKey: 'x', fetch, maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'hi' }]

describe('streams', () => {
  test.each([
    [
      'messages',
      streams.messagesText,
      'Hellö',
      [
        ['f', '{"a":1}'],
        ['g', '{}'],
      ],
      16,
    ],
    ['converse', streams.converseText, 'Hellö', [['a.b', '{"a":1}']], 14],
    ['completions', streams.completionsText, 'Grüß Gott 👋', undefined, 14],
  ] as const)("of OpenAI's chat over %s are read by its SDK", async (to, bytes, content, calls, total) => {
    const completion = await openai(translate('completions', to, bytes))
      .chat.completions.stream({ model: 'm', messages })
      .finalChatCompletion()
    const [choice] = completion.choices
    expect(choice?.message.content).toBe(content)
    expect(choice?.message.tool_calls?.map((call) => (call.type === 'function' ? [call.function.name, call.function.arguments] : []))).toEqual(calls)
    expect(choice?.finish_reason).toBe(calls === undefined ? 'stop' : 'tool_calls')
    expect(completion.usage?.total_tokens).toBe(total)
  })

  test.each([
    ['completions', streams.completionsTools, ['message', 'function_call', 'function_call'], 'Let me see.'],
    ['converse', streams.converseText, ['reasoning', 'message', 'function_call'], 'Hellö'],
    ['completions', streams.completionsReasoning, ['reasoning', 'message', 'function_call'], 'Hello'],
  ] as const)("of OpenAI's responses over %s are read by its SDK", async (to, bytes, items, text) => {
    const response = await openai(translate('responses', to, bytes))
      .responses.stream({ model: 'm', input: 'hi' })
      .finalResponse()
    expect([response.status, response.output_text]).toEqual(['completed', text])
    expect(response.output.map(({ type }) => type)).toEqual(items)
  })

  test.each([
    ['completions', streams.completionsTools, ['text', 'tool_use', 'tool_use'], 'tool_use'],
    ['completions', streams.completionsInterleaved, ['tool_use', 'tool_use'], 'tool_use'],
    ['completions', streams.completionsReasoning, ['thinking', 'text', 'tool_use'], 'tool_use'],
    ['converse', streams.converseText, ['thinking', 'text', 'tool_use'], 'tool_use'],
    ['messages', streams.messagesText, ['thinking', 'text', 'tool_use', 'tool_use'], 'tool_use'],
  ] as const)("of Anthropic's messages over %s are read by its SDK", async (to, bytes, blocks, stop) => {
    const message = await anthropic(translate('messages', to, bytes))
      .messages.stream({ model: 'm', max_tokens: 9, messages })
      .finalMessage()
    expect(message.content.map(({ type }) => type)).toEqual(blocks)
    expect(message.stop_reason).toBe(stop)
    expect(message.content.find(({ type }) => type === 'tool_use')).toMatchObject({
      input: bytes === streams.completionsInterleaved ? { x: 1 } : bytes === streams.completionsReasoning ? {} : { a: 1 },
    })
  })

  test('with an error event raise an error of the SDK', async () => {
    const chat = openai(translate('completions', 'messages', streams.messagesError)).chat.completions.stream({ model: 'm', messages })
    await expect(chat.finalChatCompletion()).rejects.toThrow('Overloaded')
    const stream = anthropic(translate('messages', 'converse', streams.converseError)).messages.stream({ model: 'm', max_tokens: 9, messages })
    await expect(stream.finalMessage()).rejects.toThrow('slow down')
    const response = openai(translate('responses', 'completions', streams.completionsError)).responses.stream({ model: 'm', input: 'hi' })
    await expect(response.finalResponse()).rejects.toThrow('overloaded')
  })
})

describe('responses', () => {
  test('with an error have the status, type and message that SDKs report', async () => {
    const google = Buffer.from('[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]')
    const { body = '', contentType = '' } = pair('messages', 'completions').error(429, google) ?? {}
    const call = anthropic(answerWith(body, contentType, 429)).messages.create({ model: 'm', max_tokens: 9, messages })
    await expect(call).rejects.toMatchObject({ status: 429, error: { error: { type: 'rate_limit_error', message: 'quota' } } })
    const other = pair('completions', 'converse').error(400, Buffer.from('{"message":"no"}'))
    const called = openai(answerWith(other?.body ?? '', 'application/json', 400)).chat.completions.create({ model: 'm', messages })
    await expect(called).rejects.toMatchObject({ status: 400, type: 'invalid_request_error', message: '400 no' })
  })

  test("with base64 embeddings are decoded by OpenAI's SDK, which requests them by default", async () => {
    let requestBody: unknown
    const fetch: Fetch = (_url, init) => {
      requestBody = JSON.parse(typeof init?.body === 'string' ? init.body : '')
      const conversion = pair('embeddings', 'titanEmbeddings')
      const { memo } = conversion.request(requestBody as Record<string, unknown>, { model: 'm' })
      const { body } = conversion.response({ embedding: [0.5, -1], inputTextTokenCount: 2 }, responseContext(memo))
      return answerWith(JSON.stringify(body), 'application/json')('')
    }
    const { data } = await openai(fetch).embeddings.create({ model: 'm', input: 'hi' })
    expect(requestBody).toMatchObject({ encoding_format: 'base64' })
    expect(data[0]?.embedding).toEqual([0.5, -1])
  })
})
