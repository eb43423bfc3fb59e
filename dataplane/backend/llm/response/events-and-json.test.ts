import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { startMockServer, type Answer, type MockServer } from '../../../../e2e/harness/llm/server.ts'
import { BufferBody, readBody } from '../../../http/body.ts'
import { startLlmGateway, type LlmGateway } from '../testing/gateway.ts'
import { chat, sdkRoutes, send, type TestResponse } from '../testing/test-bed.ts'
import { kindOf, SniffedBody } from './sniffed-body.ts'

/** Servers that return JSON to a streaming request, or an event stream to another one, with any content-type (llm.md §8.1). */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(answer: Answer, provider: Omit<NamedLLMProvider, 'name'> = { providerA: {} }): Promise<{ gateway: LlmGateway; upstream: MockServer }> {
  const upstream = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { ...provider, host: '127.0.0.1', port: upstream.port } },
    policies: { auth: { key: 'k' }, ai: { routes: sdkRoutes } },
  })
  open.push(upstream, gateway)
  return { gateway, upstream }
}
const answerWith =
  (type: string | undefined, body: string | Buffer, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response.writeHead(200, { ...(type !== undefined && { 'content-type': type }), ...headers }).end(body)

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const reply = {
  id: 'x',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'good', tool_calls: [call] }, finish_reason: 'tool_calls' }],
  usage,
}
const chunk = (delta: object, finish: string | null = null): object => ({
  id: 'x',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
})
const sse = (...events: readonly object[]): string => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
const stream = `${sse(
  chunk({ role: 'assistant', content: 'go' }),
  chunk({ content: 'od' }),
  chunk({ tool_calls: [{ index: 0, ...call }] }),
  chunk({}, 'tool_calls'),
  { id: 'x', model: 'm', choices: [], usage },
)}data: [DONE]\n\n`
const requests: [string, object][] = [
  ['/v1/chat/completions', chat()],
  ['/v1/messages', { ...chat(), max_tokens: 9 }],
]
const responses = ['/v1/responses', { model: 'm', input: 'x' }] as const
const types = ['application/json', 'application/json; charset=utf-8', 'text/event-stream', 'text/plain', undefined]
const cases = (table: readonly (readonly [string, object])[]) => table.flatMap(([path, body]) => types.map((type) => [path, type, body] as const))

/** The text, the arguments and the stop reason that a client reads from a stream. */
function read({ text }: TestResponse): unknown[] {
  const data = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as Record<string, never>] : []))
  const texts = (pattern: RegExp): string => [...text.matchAll(pattern)].map(([, part]) => part).join('')
  return [texts(/"(?:content|text)":"(\w+)"/g), data.some((event) => JSON.stringify(event).includes('\\"a\\":1')), /"(?:tool_calls|tool_use)"/.test(text)]
}

describe('JSON for a streaming request', () => {
  test.each(cases(requests))('is an event stream for %s, with the type %s', async (path, type, body) => {
    const { gateway } = await start(answerWith(type, JSON.stringify(reply)))
    const answer = await send(gateway.port, { path, body: { ...body, stream: true } })
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect(read(answer)).toEqual(['good', true, true])
    expect(answer.text.trimEnd()).toMatch(path === '/v1/messages' ? /event: message_stop\ndata: .*$/ : /data: \[DONE\]$/)
  })

  test('behind blanks, as servers send them to keep the connection open, is an event stream', async () => {
    const { gateway } = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n   \n')
      setTimeout(() => response.end(JSON.stringify(reply)), 20)
    })
    expect(read(await send(gateway.port, { body: chat('x', { stream: true }) }))).toEqual(['good', true, true])
  })

  test('that is compressed is an event stream', async () => {
    const { gateway } = await start(answerWith('application/json', gzipSync(JSON.stringify(reply)), { 'content-encoding': 'gzip' }))
    expect(read(await send(gateway.port, { body: chat('x', { stream: true }) }))).toEqual(['good', true, true])
  })

  test.each([
    ['completed', null],
    ['incomplete', { reason: 'max_output_tokens' }],
  ])('of the Responses API that is %s ends with that event', async (status, details) => {
    const item = { type: 'message', id: 'i', role: 'assistant', status, content: [{ type: 'output_text', text: 'good', annotations: [] }] }
    const body = { id: 'r', object: 'response', model: 'm', status, incomplete_details: details, output: [item], usage: { input_tokens: 1, output_tokens: 1 } }
    const { gateway } = await start(answerWith('application/json', JSON.stringify(body)))
    const { text, headers } = await send(gateway.port, { path: responses[0], body: { ...responses[1], stream: true } })
    expect(headers['content-type']).toBe('text/event-stream')
    expect(text).toContain('"type":"response.output_text.delta"')
    expect(text).toMatch(new RegExp(`event: response.${status}\\n.*\\n\\n$`))
  })

  test('of Messages is an event stream for all clients', async () => {
    const body = { id: 'm', type: 'message', role: 'assistant', model: 'c', content: [{ type: 'text', text: 'good' }], stop_reason: 'end_turn', usage: {} }
    const { gateway } = await start(answerWith('application/json', JSON.stringify(body)), { providerC: {} })
    for (const [path, request] of requests) {
      const { text } = await send(gateway.port, { path, body: { ...request, stream: true } })
      expect(text).toMatch(/"(?:text|content)":"good"/)
      expect(text).toMatch(/message_stop|\[DONE\]/)
    }
  })

  test.each(requests)('that is an error is 502 for %s', async (path, body) => {
    const { gateway } = await start(answerWith('text/event-stream', '{"error":{"message":"overloaded"}}'))
    const answer = await send(gateway.port, { path, body: { ...body, stream: true }, headers: { accept: 'application/json' } })
    expect([answer.status, answer.text.includes('overloaded')]).toEqual([502, true])
  })

  test('that has no choices is 502', async () => {
    const { gateway } = await start(answerWith('application/json', '{"hello":1}'))
    expect((await send(gateway.port, { body: chat('x', { stream: true }) })).status).toBe(502)
  })
})

describe('an event stream', () => {
  test.each(cases(requests))('for a streaming request passes for %s with the type %s', async (path, type, body) => {
    const { gateway } = await start(answerWith(type, stream))
    const answer = await send(gateway.port, { path, body: { ...body, stream: true } })
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect(read(answer)).toEqual(['good', true, true])
  })

  test.each(cases([...requests, responses]))('for another request is JSON for %s, with the type %s', async (path, type, body) => {
    const provider = path === '/v1/responses' ? { providerD: {} } : { providerA: {} }
    const { gateway } = await start(answerWith(type, `: ping\n\n${stream}`), provider)
    const answer = await send(gateway.port, { path, body })
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json'])
    expect(answer.text).toMatch(/"(?:content|text)":"good"/)
    expect(answer.text).toMatch(/"arguments":"\{\\"a\\":1\}"|"input":\{"a":1\}/)
    expect(answer.text).toMatch(/"(?:prompt|input)_tokens":3/)
  })

  test('that has an error is 502 with its message for a buffered request', async () => {
    const { gateway } = await start(answerWith('text/event-stream', sse(chunk({ content: 'a' }), { error: { message: 'overloaded' } })))
    const { status, text } = await send(gateway.port, { body: chat() })
    expect([status, text]).toEqual([502, expect.stringContaining('overloaded')])
  })

  test('labelled as JSON is sent on event by event', async () => {
    let finish = (): void => undefined
    const { gateway } = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write(sse(chunk({ content: 'first' })))
      finish = () => void response.end(`${sse(chunk({}, 'stop'))}data: [DONE]\n\n`)
    })
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(chat('x', { stream: true })),
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect((await reader?.read())?.value).toContain('first')
    finish()
    expect((await reader?.read())?.value).toContain('stop')
  })
})

test.each([
  ['{"a":1}', 'json'],
  [' \r\n [', 'json'],
  ['\uFEFFdata: x', 'events'],
  [': ping', 'events'],
  ['event:x', 'events'],
  ['<html>', 'other'],
  ['database', 'other'],
  [' \n', undefined],
])('a body that begins with %j is %s', (head, kind) => expect(kindOf(head)).toBe(kind))

test.each([0, 1, 3])('a body that was looked at is complete, in chunks after %i blank ones', async (blanks) => {
  const body = new SniffedBody(new BufferBody([...Array.from({ length: blanks }, () => Buffer.from('\n')), Buffer.from('{"a"'), Buffer.from(':1}')]))
  expect(await body.peek(undefined)).toBe('json')
  expect((await readBody(body, 100)).bytes.toString()).toBe(`${'\n'.repeat(blanks)}{"a":1}`)
})

test('a body without a first character in time is judged by its type', async () => {
  const body = new SniffedBody({ length: undefined, start: () => undefined, pause: () => undefined, resume: () => undefined, cancel: () => undefined })
  expect(await body.peek(performance.now())).toBeUndefined()
})
