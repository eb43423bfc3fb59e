import { once } from 'node:events'
import { expect } from '@jest/globals'
import { WebSocket } from 'ws'
import { expectations } from '../../harness/example/expectations.ts'
import { sendRaw } from '../../harness/client.ts'

export default expectations({
  'text frames, binary frames and the close code are relayed in both directions': async (run) => {
    const client = new WebSocket(`ws://127.0.0.1:${run.port(8080)}/chat?room=1`)
    const [greeting] = await once(client, 'message')
    expect(JSON.parse(String(greeting))).toMatchObject({ name: 'chat', path: '/chat?room=1', headers: { 'x-room': 'lobby' } })
    for (const text of ['one', 'two']) {
      client.send(text)
      expect(String((await once(client, 'message'))[0])).toBe(text)
    }
    const bytes = Buffer.alloc(200_000, 7)
    client.send(bytes)
    expect(bytes.equals((await once(client, 'message'))[0] as Buffer)).toBe(true)
    client.close(4001, 'done')
    expect((await once(client, 'close'))[0]).toBe(4001)
  },
  'an upgrade on a path without a route gets 404': async (run) => {
    const client = new WebSocket(`ws://127.0.0.1:${run.port(8080)}/elsewhere`)
    const [error] = await once(client, 'error')
    expect(String(error)).toContain('404')
  },
  'the client gets 502 if the upstream does not switch protocols': async (run) => {
    const head = 'GET /chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: unknown\r\n\r\n'
    expect(await sendRaw(run.port(8080), head, { until: /\r\n\r\n/ })).toMatch(/^HTTP\/1\.1 (502|400) /)
  },
})
