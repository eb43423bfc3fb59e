import { describe, expect, test } from '@jest/globals'
import { HTTPException } from 'hono/http-exception'
import { definePlugin } from './index.ts'
import { replay, testPlugin } from './testing.ts'

const tenants = definePlugin<{ tenants: string[]; header: string }>({
  configSchema: { type: 'object', properties: { tenants: { type: 'array' }, header: { type: 'string', default: 'x-tenant' } }, required: ['tenants'] },
  setup: ({ config, log, metrics, kv, fetch, secrets }) => ({
    async request(c, next) {
      const tenant = c.req.header(config.header) ?? ''
      if (tenant === 'asked') return fetch('http://users/check')
      if (tenant === 'rejected') throw new HTTPException(418, { message: 'no' })
      if (!config.tenants.includes(tenant)) {
        log.warn('unknown', { tenant })
        metrics.count('unknown', { detail: c.req.method })
        metrics.observe('length', tenant.length)
        return c.json({ error: 'unknown tenant' }, 403)
      }
      c.req.raw.headers.set('x-key', secrets['key'] ?? '')
      await next()
      c.header('x-count', String(await kv.increment(tenant, 2, { ttl: 10 })))
      return undefined
    },
  }),
})
const config = { tenants: ['a'] } as { tenants: string[]; header: string }
const of = (tenant: string): { init: RequestInit } => ({ init: { headers: { 'x-tenant': tenant } } })

describe('testPlugin', () => {
  test('shows what the client receives, and what the upstream received', async () => {
    let time = 0
    const { send, kv } = await testPlugin(tenants, { config, secrets: { key: 'k' }, now: () => time })
    const upstream = async (request: Request): Promise<Response> => new Response(await request.text(), { status: 201, headers: { 'x-up': 'u' } })
    const { response, forwarded } = await send('/a?b=1', { upstream, init: { method: 'POST', body: 'text', headers: { 'x-tenant': 'a' } } })
    expect([response.status, await response.text(), response.headers.get('x-up'), response.headers.get('x-count')]).toEqual([201, 'text', 'u', '2'])
    expect([forwarded?.url, forwarded?.method, forwarded?.headers.get('x-key'), await forwarded?.text()]).toEqual([
      'http://localhost/a?b=1',
      'POST',
      'k',
      'text',
    ])
    expect((await send('/', of('a'))).response.headers.get('x-count')).toBe('4')
    time = 10_000
    expect(await kv.get('a')).toBeUndefined()
  })

  test('shows responses, logs and metrics of the plugin', async () => {
    const { send, logs, counts, observed } = await testPlugin(tenants, { config, fetch: ({ url }) => new Response(url) })
    const { response, forwarded } = await send('/', of('bb'))
    expect([response.status, await response.json(), forwarded]).toEqual([403, { error: 'unknown tenant' }, undefined])
    expect([logs, [...counts], [...observed]]).toEqual([['warn: unknown {"tenant":"bb"}'], [['unknown GET', 1]], [['length', [2]]]])
    expect(await (await send('/', of('asked'))).response.text()).toBe('http://users/check')
    expect((await send('/', of('rejected'))).response.status).toBe(418)
  })

  test('rejects what the gateway rejects', async () => {
    await expect(testPlugin(tenants, { config: {} as typeof config })).rejects.toThrow("config must have required property 'tenants'")
    const { send } = await testPlugin(tenants, { config })
    await expect(send('/', of('asked'))).rejects.toThrow('http://users/check: the test gives no fetch')
    const reader = definePlugin({ setup: () => ({ request: async (c) => c.text(await c.req.text()) }) })
    const post = { init: { method: 'POST', body: 'text' } }
    await expect((await testPlugin(reader)).send('/', post)).rejects.toThrow('set body: Buffered')
    expect(await (await (await testPlugin(reader, { body: 'Buffered' })).send('/', post)).response.text()).toBe('text')
  })

  test('rejects a streamed body that the plugin reads and does not pass on', async () => {
    const reading = (passes: boolean) =>
      definePlugin({
        setup: () => ({
          async request(c, next) {
            const { raw } = c.req
            const body = await raw.text()
            if (passes) c.req.raw = new Request(raw.url, { method: raw.method, headers: raw.headers, body })
            await next()
          },
        }),
      })
    const post = { init: { method: 'POST', body: 'text' } }
    await expect((await testPlugin(reading(false), { body: 'Streamed' })).send('/', post)).rejects.toThrow('did not pass it on')
    expect(await (await (await testPlugin(reading(true), { body: 'Streamed' })).send('/', post)).forwarded?.text()).toBe('text')
  })

  test('forwards a body that the plugin replaced', async () => {
    const plugin = definePlugin({
      setup: () => ({
        async request(c, next) {
          c.req.raw = new Request('http://localhost/other', { method: 'PUT', headers: c.req.raw.headers, body: (await c.req.text()).toUpperCase() })
          await next()
        },
      }),
    })
    const { send } = await testPlugin(plugin, { body: 'Buffered' })
    const { forwarded } = await send('/', { init: { method: 'POST', body: 'text' } })
    expect([forwarded?.method, forwarded?.url, await forwarded?.text()]).toEqual(['PUT', 'http://localhost/other', 'TEXT'])
  })
})

describe('replay', () => {
  const entry = (tenant: string, text: string, encoding?: string) => ({
    request: {
      method: 'POST',
      url: 'https://app.example/orders',
      headers: [
        { name: ':authority', value: 'app.example' },
        { name: 'X-Tenant', value: tenant },
      ],
      postData: { text: 'order' },
    },
    response: {
      status: 201,
      headers: [
        { name: 'Content-Encoding', value: 'gzip' },
        { name: 'X-Up', value: 'u' },
      ],
      content: { text, ...(encoding !== undefined && { encoding }) },
    },
  })

  test('sends recorded requests, and responds with the recorded responses', async () => {
    const tester = await testPlugin(tenants, { config })
    const [first, second, third] = await replay(tester, { log: { entries: [entry('a', 'done'), entry('b', ''), entry('a', 'AQI=', 'base64')] } })
    expect([first?.response.status, await first?.response.text(), Object.fromEntries(first?.response.headers ?? [])]).toEqual([
      201,
      'done',
      expect.objectContaining({ 'x-up': 'u', 'x-count': '2' }),
    ])
    expect(first?.response.headers.has('content-encoding')).toBe(false)
    expect([first?.forwarded?.url, await first?.forwarded?.text()]).toEqual(['https://app.example/orders', 'order'])
    expect([second?.response.status, second?.forwarded]).toEqual([403, undefined])
    expect([...new Uint8Array((await third?.response.arrayBuffer()) ?? [])]).toEqual([1, 2])
  })

  test('rejects files that are no archive', async () => {
    const tester = await testPlugin(tenants, { config })
    await expect(replay(tester, {} as never)).rejects.toThrow('not an HTTP archive (HAR): log.entries is not a list')
  })
})
