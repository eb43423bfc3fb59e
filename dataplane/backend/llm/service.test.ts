import { afterEach, describe, expect, test } from '@jest/globals'
import type { AIBackend, NamedLLMProvider } from '#gen/config/types.ts'
import { chat, startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

describe('a chat request to providerA', () => {
  test('is sent to its path byte for byte, and its response returned', async () => {
    const { post, mock } = await start()
    const body = '{ "model":"gpt-4o", "messages":[{"role":"user","content":"hi you"}], "seed": 12345678901234567890, "x_unknown": {"a": 1.0} }'
    const { status, json, headers } = await post({ path: '/anything?q=1', body })
    expect([status, json['choices']?.[0]?.['message']?.['content'], headers['content-type']]).toEqual([200, 'echo: hi you', 'application/json'])
    const [request] = mock.requests
    expect([request?.path, request?.raw.toString()]).toEqual(['/v1/chat/completions?q=1', body])
    expect(request?.headers['host']).toBe(`127.0.0.1:${mock.port}`)
  })

  test('is streamed, with usage requested', async () => {
    const { post, mock } = await start()
    const { status, text, headers } = await post({ body: chat('one two', { stream: true }) })
    expect([status, headers['content-type'], headers['content-length']]).toEqual([200, 'text/event-stream', undefined])
    expect(text).toContain('"content":"one "')
    expect(text).toContain('"total_tokens":5')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(mock.requests[0]?.body?.['stream_options']).toEqual({ include_usage: true })
  })
})

describe('a config update under traffic', () => {
  const transformation = { response: { set: [{ name: 'x-from', value: '"provider"' }] } }

  test("adds a provider's transformation although the rule's chain was compiled without one", async () => {
    const { post, gateway, mock } = await start()
    const before = await post({ body: chat() })
    const placed = { name: 'one', host: '127.0.0.1', port: mock.port, providerA: {} }
    const grouped = (provider: NamedLLMProvider): AIBackend => ({ groups: [{ providers: [provider] }] })
    gateway.update({ ai: grouped({ ...placed, policies: { transformation } }) })
    const inline = await post({ body: chat() })
    gateway.update({ ai: grouped(placed) })
    const removed = await post({ body: chat() })
    gateway.update({ onProvider: { one: { transformation } } })
    const attached = await post({ body: chat() })
    expect([before, inline, removed, attached].map(({ headers }) => headers['x-from'])).toEqual([undefined, 'provider', undefined, 'provider'])
  })
})
