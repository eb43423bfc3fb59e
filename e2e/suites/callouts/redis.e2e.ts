import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { send as sendTo } from '../../harness/client.ts'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { Redis } from './redis.ts'

let directory: string
let mock: MockProvider
let redis: Redis
let upstream: Server
/** Requests that reached the plain upstream. */
let received = 0

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cache-redis-'))
  mock = await startMockProvider({})
  redis = await Redis.start()
  upstream = createServer((request, response) => {
    received++
    response.setHeader('cache-control', 'max-age=600').setHeader('x-number', String(received))
    response.end(request.method)
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
}, 180_000)
afterAll(async () => {
  await redis.delete()
  await mock.close()
  upstream.closeAllConnections()
  upstream.close()
  await rm(directory, { recursive: true, force: true })
})

/** A plugin that runs the operations of a query in Redis, and responds with their results. */
const COUNT = `export default { setup: ({ kv }) => ({ async request(c) {
  const results = []
  for (const [operation, ...args] of JSON.parse(c.req.query('calls')))
    results.push(await kv[operation](...args).catch((error) => error.message))
  return c.json(results)
} }) }`

interface Running {
  readonly dataplane: Dataplane
  /** Sends a chat. Returns the age of its response; undefined: of the provider. */
  chat(content: string, path?: string, stream?: boolean): Promise<string | undefined>
  /** Returns the number of the response of the upstream. */
  get(path: string, method?: string): Promise<string | undefined>
  /** Runs operations of `kv` in the plugin. */
  keyValues(...calls: readonly (readonly unknown[])[]): Promise<unknown>
  failures(): Promise<number>
}

async function start(name: string, change: object = {}, env: Readonly<Record<string, string>> = {}): Promise<Running> {
  const [port = 0] = await findFreePorts(1)
  const file = join(directory, `${name}.json`)
  const { port: upstreamPort } = upstream.address() as AddressInfo
  const ai = { routes: { '/v1/messages': 'Messages', '*': 'Completions' }, cache: { tenant: '"all"', store: 'Redis' } }
  const config = {
    config: { redis: { url: `rediss://localhost:${redis.port}`, passwordFile: redis.files.password, caFile: redis.files.authority, ...change } },
    binds: [
      {
        port,
        addresses: ['127.0.0.1'],
        listeners: [
          {
            routes: [
              {
                name: 'llm',
                matches: [{ path: { type: 'PathPrefix', value: '/v1' } }],
                backends: [{ ai: { provider: { providerA: {}, host: '127.0.0.1', port: mock.port } }, policies: { auth: { key: 'k' }, ai } }],
              },
              {
                name: 'count',
                matches: [{ path: { type: 'Exact', value: '/count' } }],
                backends: [{ host: `127.0.0.1:${upstreamPort}` }],
                policies: { plugins: [{ name: 'count', source: { file: 'count.ts' }, kv: 'Redis' }] },
              },
              { name: 'plain', backends: [{ host: `127.0.0.1:${upstreamPort}` }], policies: { cache: { store: 'Redis' } } },
            ],
          },
        ],
      },
    ],
  }
  await writeFile(join(directory, 'count.ts'), COUNT)
  await writeFile(file, JSON.stringify(config))
  const dataplane = await startDataplane({ config: { file }, env })
  const send = (path: string, init: RequestInit) => fetch(`http://127.0.0.1:${port}${path}`, init)
  return {
    dataplane,
    async chat(content, path = '/v1/chat/completions', stream = false) {
      const body = JSON.stringify({ model: 'm', max_tokens: 9, stream, messages: [{ role: 'user', content }] })
      const response = await send(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
      expect([response.status, (await response.text()).includes(content)]).toEqual([200, true])
      return response.headers.get('age') ?? undefined
    },
    async get(path, method = 'GET') {
      // The authority is part of the key.
      const response = await sendTo({ port, host: 'page.example', path, method })
      expect([response.status, response.body]).toEqual([200, method])
      return String(response.headers['x-number'])
    },
    async keyValues(...calls) {
      return (await send(`/count?calls=${encodeURIComponent(JSON.stringify(calls))}`, {})).json()
    },
    async failures() {
      const lines = (await dataplane.metrics()).split('\n').filter((line) => /^proxy_redis_commands_total\{.*result="failed"/.test(line))
      return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    },
  }
}

const logOf = ({ dataplane }: Running): string => dataplane.program.lines.map(({ text }) => text).join('\n')
/** Until the connection is there, requests are misses. */
const isCached = (running: Running, content: string) => async () => (await running.chat(content)) !== undefined

describe('caches in Redis', () => {
  test('are shared by data planes, and survive one', async () => {
    const [one, two] = await Promise.all([start('one'), start('two', {}, { WORKERS: '2' })])
    try {
      await waitUntil('one has stored a response', isCached(one, 'shared'))
      await waitUntil('two finds it', isCached(two, 'shared'))
      const { length } = mock.requests
      for (const path of ['/v1/messages', '/v1/chat/completions'])
        for (const stream of [true, false]) expect(await two.chat('shared', path, stream)).toMatch(/^\d+$/)
      expect(mock.requests).toHaveLength(length)

      const number = await one.get('/page')
      await waitUntil('two has the page', async () => (await two.get('/page')) === number)
      await two.get('/page', 'POST')
      await waitUntil('the page is invalid everywhere', async () => (await one.get('/page')) !== number)
      const later = await one.get('/page')
      await one.dataplane.stop()
      expect(await two.get('/page')).toBe(later)
      expect(await two.chat('shared')).toMatch(/^\d+$/)
    } finally {
      await Promise.all([one.dataplane.stop(), two.dataplane.stop()])
    }
  })

  test('miss while the server is away or hangs, and are used again later', async () => {
    const running = await start('failing')
    try {
      await waitUntil('a response is stored', isCached(running, 'before'))
      await redis.stop()
      await waitUntil('the log has the failure', async () => {
        await running.chat('before')
        return logOf(running).includes('PX4036')
      })
      expect(await running.chat('before')).toBeUndefined()
      expect(await running.get('/away')).not.toBe(await running.get('/away'))
      expect(await running.failures()).toBeGreaterThan(0)
      await redis.resume()
      await waitUntil('a response is stored again', isCached(running, 'after'))
      await waitUntil('the log has the recovery', () => logOf(running).includes('Redis can be used again'))

      redis.signal('SIGSTOP')
      const began = performance.now()
      expect(await running.chat('after')).toBeUndefined()
      for (let nth = 0; nth < 10; nth++) expect(await running.chat('after')).toBeUndefined()
      expect(performance.now() - began).toBeLessThan(10_000)
      redis.signal('SIGCONT')
      await waitUntil('the server is asked again', isCached(running, 'after'))
    } finally {
      redis.signal('SIGCONT')
      await running.dataplane.stop()
    }
  })

  test('miss if the store has something else', async () => {
    const running = await start('hostile')
    const socket = { host: 'localhost', port: redis.port, tls: true as const, ca: readFileSync(redis.files.authority, 'utf8') }
    const client = createClient({ password: 'p@ss:word/1', socket })
    try {
      await client.connect()
      await waitUntil('a response is stored', isCached(running, 'hostile'))
      await running.get('/hostile')
      let names: string[] = []
      await waitUntil('both responses are stored', async () => (names = await client.keys('proxy:*')).length >= 3)
      for (const [nth, name] of names.entries()) {
        await client.del(name)
        if (nth % 3 === 0) await client.hSet(name, 'a', 'b')
        else await client.set(name, nth % 3 === 1 ? 'x'.repeat(3_000_000) : '\u0001\0\0\0{')
      }
      expect(await running.chat('hostile')).toBeUndefined()
      await running.get('/hostile')
    } finally {
      client.destroy()
      await running.dataplane.stop()
    }
  })

  test.each([
    ['another certificate', { caFile: undefined }, /PX4036|certificate/],
    ['a wrong password', { passwordFile: undefined, url: 'rediss://:wrong@localhost:PORT' }, /WRONGPASS|invalid/],
  ])('serve requests with %s, and the log names the cause', async (name, change, message) => {
    const url = 'url' in change && change.url !== undefined ? change.url.replace('PORT', String(redis.port)) : `rediss://localhost:${redis.port}`
    const running = await start(name.replaceAll(' ', '-'), { ...change, url })
    try {
      expect(await running.chat('x')).toBeUndefined()
      await waitUntil('the log has the cause', () => /PX4036/.test(logOf(running)) && message.test(logOf(running)))
      expect(await running.chat('x')).toBeUndefined()
      expect(logOf(running)).not.toContain('wrong@')
    } finally {
      await running.dataplane.stop()
    }
  })

  test('end the start if the certificates cannot be read', async () => {
    await expect(start('missing', { caFile: '/missing/ca.crt' })).rejects.toThrow(/config\.redis\.caFile is "\/missing\/ca\.crt": there is no such file/)
  })
})

describe('values of plugins in Redis', () => {
  test('are shared by data planes and workers, expire, and outlive a data plane', async () => {
    const [one, two] = await Promise.all([start('kv-one'), start('kv-two', {}, { WORKERS: '2' })])
    try {
      await waitUntil('both can use Redis', async () => {
        const results = await Promise.all([one.keyValues(['set', 'ready', 'yes']), two.keyValues(['set', 'ready', 'yes'])])
        return results.every((result) => JSON.stringify(result) === '[null]')
      })
      const many = Array.from({ length: 50 }, () => ['increment', 'n'])
      await Promise.all([one.keyValues(...many), two.keyValues(...many), two.keyValues(...many)])
      expect(await one.keyValues(['get', 'n'], ['increment', 'n', -50], ['get', 'none'])).toEqual(['150', 100, null])
      const odd = 'ä"\n{}'
      expect(await two.keyValues(['set', odd, odd, { ttl: 3600 }], ['set', 'empty', ''], ['set', 'big', 'x'.repeat(4000)])).toEqual([null, null, null])
      expect(await one.keyValues(['get', odd], ['get', 'empty'], ['delete', 'big'], ['delete', 'big'])).toEqual([odd, '', true, false])
      expect(await one.keyValues(['set', 'word', '1x'], ['increment', 'word'], ['set', 'max', String(2 ** 53 - 1)], ['increment', 'max'])).toEqual([
        null,
        'the value is not an integer and cannot be incremented',
        null,
        'the sum is beyond the range of integers',
      ])
      await two.keyValues(['set', 'short', 'x', { ttl: 0.05 }], ['increment', 'window', 1, { ttl: 0.05 }])
      await waitUntil('the values expire', async () => JSON.stringify(await one.keyValues(['get', 'short'], ['get', 'window'])) === '[null,null]')
      await one.dataplane.stop()
      expect(await two.keyValues(['get', 'n'])).toEqual(['100'])
    } finally {
      await Promise.all([one.dataplane.stop(), two.dataplane.stop()])
    }
  })

  test('reject while the server is away, and are used again later', async () => {
    const running = await start('kv-failing')
    try {
      await waitUntil('Redis can be used', async () => JSON.stringify(await running.keyValues(['set', 'k', 'v'])) === '[null]')
      await redis.stop()
      expect(await running.keyValues(['get', 'k'])).toEqual([expect.stringMatching(/^kv cannot be used: /)])
      await redis.resume()
      await waitUntil('Redis can be used again', async () => JSON.stringify(await running.keyValues(['set', 'k', 'v'], ['get', 'k'])) === '[null,"v"]')
    } finally {
      await running.dataplane.stop()
    }
  })
})
