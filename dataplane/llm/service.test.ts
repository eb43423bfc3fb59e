import { afterEach, describe, expect, test } from '@jest/globals'
import { chat, startWorld, type World, type WorldOptions } from './testing/world.ts'

const open: World[] = []
afterEach(async () => {
  for (const world of open.splice(0)) await world.close()
})
const start = async (options: WorldOptions = {}): Promise<World> => {
  const world = await startWorld(options)
  open.push(world)
  return world
}

describe('a chat with providerA', () => {
  test('goes to its path byte for byte, and comes back', async () => {
    const { post, mock } = await start()
    const body = '{ "model":"gpt-4o", "messages":[{"role":"user","content":"hi you"}], "seed": 12345678901234567890, "x_unknown": {"a": 1.0} }'
    const { status, json, headers } = await post({ path: '/anything?q=1', body })
    expect([status, json['choices']?.[0]?.['message']?.['content'], headers['content-type']]).toEqual([200, 'echo: hi you', 'application/json'])
    const [request] = mock.requests
    expect([request?.path, request?.raw.toString()]).toEqual(['/v1/chat/completions?q=1', body])
    expect(request?.headers['host']).toBe(`127.0.0.1:${mock.port}`)
  })

  test('streams, and asks for usage', async () => {
    const { post, mock } = await start()
    const { status, text, headers } = await post({ body: chat('one two', { stream: true }) })
    expect([status, headers['content-type'], headers['content-length']]).toEqual([200, 'text/event-stream', undefined])
    expect(text).toContain('"content":"one "')
    expect(text).toContain('"total_tokens":5')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(mock.requests[0]?.body?.['stream_options']).toEqual({ include_usage: true })
  })
})
