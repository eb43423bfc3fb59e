import { describe, expect, test } from '@jest/globals'
import type { BackendFull, Policy, Route } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../config/store.ts'
import { HeaderList } from '../http/headers.ts'
import { Exchange } from '../request/exchange/exchange.ts'
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
  const store = createConfigStore()
  const gateway = new Gateway({
    createPool: (_, { host }) => ({
      size: 0,
      close: () => {},
      call: () => ({
        response: Promise.resolve({ status: 200, headers: new HeaderList(['x-endpoint', host]), body: undefined, upgraded: undefined }),
        cancel: () => {},
      }),
    }),
  })
  store.subscribe((snapshot) => gateway.update(snapshot))
  const replace = (...next: ConfigMessage[]): void => void replaceMessages(store, [...testListener, ...next])
  replace(...messages)
  const ask = async (headers: Readonly<Record<string, string>> = {}): Promise<{ endpoint: string | undefined; cookies: readonly string[] }> => {
    const exchange = new Exchange(testConnection, testRequest({ headers: HeaderList.from(Object.entries(headers)) }), performance.now())
    await gateway.handle(exchange)
    return { endpoint: exchange.response?.headers.get('x-endpoint'), cookies: exchange.response?.headers.getAll('set-cookie') ?? [] }
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
