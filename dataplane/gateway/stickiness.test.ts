import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { BackendFull, Policy, Route, Service, SessionPersistence } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../config/store.ts'
import { HeaderList } from '../http/headers.ts'
import { UpstreamError } from '../net/upstream/types.ts'
import { Exchange, type Connection } from '../request/exchange/exchange.ts'
import { testConnection, testRequest } from '../testing/exchange.ts'
import { testGateway, testListener, testRoute } from '../testing/messages.ts'
import { replaceMessages } from '../testing/store.ts'
import { Gateway } from './gateway.ts'

const service = (name: string, ...hosts: string[]): ConfigMessage => ({
  kind: 'service',
  message: { key: `ns/${name}`, ports: [{ port: 80, endpoints: hosts.map((address) => ({ address, port: 80 })) }] },
})
const policy = (backend: BackendFull, name = 'p', target: Policy['target'] = testGateway): ConfigMessage => ({
  kind: 'policy',
  message: { key: name, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, target, backend },
})
const byCookie: BackendFull = { loadBalancer: { type: 'ConsistentHash', consistentHash: { type: 'Cookie', name: 'c' } } }
const byHeader: BackendFull = { loadBalancer: { type: 'ConsistentHash', consistentHash: { type: 'Header', name: 'X-User' } } }
const backends: Route['backends'] = [
  { ref: { service: 'ns/a', port: 80 }, weight: 9 },
  { ref: { service: 'ns/b', port: 80 }, weight: 1 },
]

/** A gateway whose endpoints respond with their address. */
function start(...messages: ConfigMessage[]) {
  return startWith({}, ...messages)
}

interface World {
  readonly loopSecret?: Buffer
  readonly epochMs?: () => number
  /** Whether calls of an endpoint fail. */
  readonly isDown?: (host: string) => boolean
}

function startWith({ loopSecret, epochMs = () => 0, isDown = () => false }: World, ...messages: ConfigMessage[]) {
  const store = createConfigStore()
  const gateway = new Gateway({
    loopSecret,
    clocks: { epochMs },
    createPool: (_, { host }) => ({
      size: 0,
      close: () => {},
      call: () => ({
        response: isDown(host)
          ? Promise.reject(new UpstreamError('connect', 'refused'))
          : Promise.resolve({ status: 200, headers: new HeaderList(['x-endpoint', host]), body: undefined, upgraded: undefined }),
        cancel: () => {},
      }),
    }),
  })
  store.subscribe((snapshot) => gateway.update(snapshot))
  const replace = (...next: ConfigMessage[]): void => void replaceMessages(store, [...testListener, ...next])
  replace(...messages)
  const ask = async (
    headers: Readonly<Record<string, string>> = {},
    change: Partial<Connection> = {},
  ): Promise<{ endpoint: string | undefined; cookies: readonly string[]; token?: string | undefined }> => {
    const exchange = new Exchange({ ...testConnection, ...change }, testRequest({ headers: HeaderList.from(Object.entries(headers)) }), performance.now())
    await gateway.handle(exchange)
    const answered = exchange.response?.headers
    const token = answered?.get('x-session')
    return { endpoint: answered?.get('x-endpoint'), cookies: answered?.getAll('set-cookie') ?? [], ...(token && { token }) }
  }
  return { ask, replace }
}

describe('consistent hashing of a rule', () => {
  const services = [service('a', '10.0.0.1', '10.0.0.2'), service('b', '10.0.1.1')]

  test('selects backend and endpoint by the key, in proportion to the weights', async () => {
    const { ask } = start(testRoute({ service: 'ns/a', port: 80 }, { backends }), ...services, policy(byHeader))
    const counts = new Map<string | undefined, number>()
    for (let i = 0; i < 400; i++) {
      const { endpoint } = await ask({ 'x-user': `user-${i}` })
      counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1)
      expect((await ask({ 'x-user': `user-${i}` })).endpoint).toBe(endpoint)
    }
    expect(new Set(counts.keys())).toEqual(new Set(['10.0.0.1', '10.0.0.2', '10.0.1.1']))
    expect(counts.get('10.0.1.1')).toBeLessThan(100)
  })

  test('with a cookie, the first response sets the cookie that leads to its endpoint', async () => {
    const { ask } = start(testRoute({ service: 'ns/a', port: 80 }, { backends }), ...services, policy(byCookie))
    for (let i = 0; i < 20; i++) {
      const first = await ask()
      expect(first.cookies).toEqual([expect.stringMatching(/^c=[\da-f-]{36}; Path=\/; HttpOnly; SameSite=Lax$/)])
      expect(await ask({ cookie: first.cookies[0]?.split(';')[0] ?? '' })).toEqual({ endpoint: first.endpoint, cookies: [] })
    }
  })

  test('of a mirror sets no cookie', async () => {
    const mirrors = [{ backend: { service: 'ns/b', port: 80 } }]
    const { ask } = start(
      testRoute({ service: 'ns/a', port: 80 }, { filters: { mirrors } }),
      ...services,
      policy(byCookie, 'p', { kind: 'Service', namespace: 'ns', name: 'b' }),
    )
    expect((await ask()).cookies).toEqual([])
  })

  test('of a policy on the Gateway is replaced by that of a policy on the Service', async () => {
    const ofService = policy({ loadBalancer: { type: 'RoundRobin' } }, 'q', { kind: 'Service', namespace: 'ns', name: 'a' })
    const { ask } = start(testRoute({ service: 'ns/a', port: 80 }), ...services, policy(byHeader), ofService)
    const endpoints = [await ask({ 'x-user': 'ann' }), await ask({ 'x-user': 'ann' })].map(({ endpoint }) => endpoint)
    expect(new Set(endpoints)).toEqual(new Set(['10.0.0.1', '10.0.0.2']))
  })
})

describe('session persistence', () => {
  const services = [service('a', '10.0.0.1', '10.0.0.2', '10.0.0.3'), service('b', '10.0.1.1')]
  const sticky = (change: Partial<SessionPersistence> = {}, more: Partial<Route> = {}): ConfigMessage =>
    testRoute({ service: 'ns/a', port: 80 }, { sessionPersistence: { type: 'Cookie', name: 's', ...change }, ...more })
  const valueOf = (cookies: readonly string[]): string => /^s=([^;]*)/.exec(cookies[0] ?? '')?.[1] ?? ''
  const withCookie = (value: string): Record<string, string> => ({ cookie: `other=1; s=${value}` })

  test('keeps a client on the endpoint of its first response, and sets the cookie once', async () => {
    const { ask } = start(sticky(), ...services)
    const clients = await Promise.all(Array.from({ length: 30 }, () => ask()))
    expect(new Set(clients.map(({ endpoint }) => endpoint)).size).toBe(3)
    for (const { endpoint, cookies } of clients) {
      expect(cookies).toEqual([expect.stringMatching(/^s=[A-Za-z0-9+/=]+; Path=\/; HttpOnly; SameSite=Strict$/)])
      for (let i = 0; i < 3; i++) expect(await ask(withCookie(valueOf(cookies)))).toEqual({ endpoint, cookies: [] })
    }
  })

  test.each<[string, Partial<SessionPersistence>, Partial<Connection>, RegExp]>([
    [
      'over TLS',
      {},
      { tls: { sni: undefined, alpn: undefined, protocol: undefined, clientCertificate: undefined } },
      /; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    ],
    ['with a path', { path: '/shop' }, {}, /; Path=\/shop; HttpOnly; SameSite=Strict$/],
    ['if it is permanent', { isPermanent: true, absoluteTimeoutMs: 60_000 }, {}, /; Path=\/; Max-Age=60; HttpOnly; SameSite=Strict$/],
    ['of a session with a timeout', { absoluteTimeoutMs: 60_000 }, {}, /; Path=\/; HttpOnly; SameSite=Strict$/],
  ])('has the attributes of the cookie %s', async (_, change, connection, attributes) => {
    expect((await start(sticky(change), ...services).ask({}, connection)).cookies).toEqual([expect.stringMatching(attributes)])
  })

  test('with a header, the client sends back what it received', async () => {
    const { ask } = start(sticky({ type: 'Header', name: 'x-session' }), ...services)
    for (let i = 0; i < 10; i++) {
      const { endpoint, cookies, token = '' } = await ask()
      expect(cookies).toEqual([])
      expect(await ask({ 'x-session': token })).toEqual({ endpoint, cookies: [] })
    }
  })

  test('stays with a backend of weight 0, and with an endpoint that drains', async () => {
    const both = (weight: number): Partial<Route> => ({
      backends: [
        { ref: { service: 'ns/a', port: 80 }, weight: 1 - weight },
        { ref: { service: 'ns/b', port: 80 }, weight },
      ],
    })
    const { ask, replace } = start(sticky({}, both(1)), ...services)
    const { endpoint, cookies } = await ask()
    expect(endpoint).toBe('10.0.1.1')
    const draining = service('b', '10.0.1.1', '10.0.1.2')
    for (const one of (draining.message as Service).ports[0]?.endpoints ?? []) if (one.address === endpoint) one.draining = true
    replace(sticky({}, both(0)), services[0] as ConfigMessage, draining)
    for (let i = 0; i < 5; i++) expect(await ask(withCookie(valueOf(cookies)))).toEqual({ endpoint, cookies: [] })
    expect((await ask()).endpoint).toMatch(/^10\.0\.0\./)
  })

  test('begins anew if the endpoint is gone, and then stays', async () => {
    const { ask, replace } = start(sticky(), ...services)
    const { endpoint, cookies } = await ask()
    replace(sticky(), service('a', ...['10.0.0.1', '10.0.0.2', '10.0.0.3'].filter((host) => host !== endpoint)))
    const next = await ask(withCookie(valueOf(cookies)))
    expect(next.cookies).toHaveLength(1)
    expect(await ask(withCookie(valueOf(next.cookies)))).toEqual({ endpoint: next.endpoint, cookies: [] })
  })

  test('moves to the endpoint that responded to the retry', async () => {
    let down: string | undefined
    const { ask } = startWith({ isDown: (host) => host === down }, sticky({}, { retry: { attempts: 1 } }), ...services)
    const { endpoint, cookies } = await ask()
    down = endpoint
    const next = await ask(withCookie(valueOf(cookies)))
    expect(next.endpoint).not.toBe(endpoint)
    expect(next.cookies).toHaveLength(1)
  })

  test('leaves an evicted endpoint', async () => {
    let down: string | undefined
    const health = policy({ health: { eviction: { duration: '1h', consecutiveFailures: 1 } } })
    const { ask } = startWith({ isDown: (host) => host === down }, sticky(), ...services, health)
    const { endpoint, cookies } = await ask()
    down = endpoint
    await ask(withCookie(valueOf(cookies)))
    const next = await ask(withCookie(valueOf(cookies)))
    expect(next.endpoint).not.toBe(endpoint)
    expect(next.cookies).toHaveLength(1)
  })

  test('ends at the absolute timeout, whatever the client keeps', async () => {
    let nowMs = 1_000_000
    const { ask } = startWith({ epochMs: () => nowMs }, sticky({ absoluteTimeoutMs: 60_000 }), ...services)
    const { cookies } = await ask()
    nowMs += 59_000
    expect((await ask(withCookie(valueOf(cookies)))).cookies).toEqual([])
    nowMs += 1000
    expect((await ask(withCookie(valueOf(cookies)))).cookies).toHaveLength(1)
  })

  test('is the same in all replicas and workers with a common secret, and in no other gateway', async () => {
    const loopSecret = Buffer.alloc(32, 1)
    const { endpoint, cookies } = await startWith({ loopSecret }, sticky(), ...services).ask()
    expect(await startWith({ loopSecret }, sticky(), ...services).ask(withCookie(valueOf(cookies)))).toEqual({ endpoint, cookies: [] })
    expect((await start(sticky(), ...services).ask(withCookie(valueOf(cookies)))).cookies).toHaveLength(1)
  })

  test('of another rule is not valid', async () => {
    const loopSecret = Buffer.alloc(32, 1)
    const { cookies } = await startWith({ loopSecret }, sticky(), ...services).ask()
    const other = sticky({}, { route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', ruleIndex: 1 } })
    expect((await startWith({ loopSecret }, other, ...services).ask(withCookie(valueOf(cookies)))).cookies).toHaveLength(1)
  })

  test('shows no address, and clients cannot choose an endpoint', async () => {
    const { ask } = start(sticky(), ...services)
    const token = valueOf((await ask()).cookies)
    expect(Buffer.from(token, 'base64').toString('latin1')).not.toContain('10.0.')
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.constantFrom('', 'MTAuMC4xLjE6ODA=', '10.0.1.1:80', '0 ns/b 10.0.1.1:80', 'x'.repeat(5000), '%00', token.slice(1), `${token}=`),
          fc.tuple(fc.nat(token.length - 1), fc.constantFrom('A', 'b', '/')).map(([at, char]) => token.slice(0, at) + char + token.slice(at + 1)),
          fc.base64String({ maxLength: 200 }),
        ),
        async (forged) => {
          const { endpoint, cookies } = await ask(withCookie(forged))
          // A forged token is as none.
          expect(endpoint).toMatch(/^10\.0\.0\./)
          expect(cookies).toHaveLength(forged === token ? 0 : 1)
        },
      ),
      { numRuns: 200 },
    )
  })
})
