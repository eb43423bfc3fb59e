import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { OpenAPIHono } from '@hono/zod-openapi'
import type { ConsoleApp, ConsoleContext } from './context.ts'
import { registerTry } from './try.ts'

test('a streamed response that ends within a character has a replacement character at its end', async () => {
  const server = createServer((_, response) => void response.end(Buffer.from('a€').subarray(0, 3)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const listener = { key: 'ns/gw.http', bind: 'b', protocol: 'HTTP', gateway: { namespace: 'ns', name: 'gw' } }
    const bind = { key: 'b', port: (server.address() as AddressInfo).port, addresses: ['127.0.0.1'] }
    const snapshot = () => ({ listeners: new Map([[listener.key, listener]]), binds: new Map([['b', bind]]), policies: new Map() })
    const app: ConsoleApp = new OpenAPIHono()
    registerTry(app, { snapshot, trace: () => Promise.resolve(undefined) } as unknown as ConsoleContext)
    const body = JSON.stringify({ listener: listener.key, method: 'GET', host: 'shop.example', path: '/', headers: [], body: '' })
    const response = await app.request('/api/v1/try/stream', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const events = (await response.text()).matchAll(/event: data\ndata: (.*)/g)
    const texts = [...events].map(([, data = '{}']) => (JSON.parse(data) as { text: string }).text)
    expect(texts.join('')).toBe('a\uFFFD')
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
})

describe('a request to try out', () => {
  const listener = { key: 'ns/gw.http', bind: 'b', protocol: 'HTTP', gateway: { namespace: 'ns', name: 'gw' } }
  // Nothing listens there: a request that were sent would fail with another error.
  const bind = { key: 'b', port: 1, addresses: ['127.0.0.1'] }
  const snapshot = () => ({ listeners: new Map([[listener.key, listener]]), binds: new Map([['b', bind]]), policies: new Map() })
  const app: ConsoleApp = new OpenAPIHono()
  registerTry(app, { snapshot, trace: () => Promise.resolve(undefined) } as unknown as ConsoleContext)

  test.each([
    [{ method: 'CONNECT' }, 'method: CONNECT cannot be tried out; use another method'],
    [{ method: 'connect' }, 'method: CONNECT cannot be tried out; use another method'],
    [{ method: 'TRACE' }, 'method: TRACE cannot be tried out; use another method'],
    [{ headers: [['Upgrade', 'websocket']] }, 'headers: Upgrade cannot be tried out, because the connection does not return to HTTP; remove it'],
  ])('is rejected with the reason if it would not end: %o', async (change, error) => {
    const body = JSON.stringify({ listener: listener.key, method: 'GET', host: 'shop.example', path: '/', headers: [], body: '', ...change })
    for (const path of ['/api/v1/try', '/api/v1/try/stream']) {
      const response = await app.request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      expect([response.status, await response.json()]).toEqual([400, { error }])
    }
  })
})
