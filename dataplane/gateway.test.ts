import { describe, expect, test } from '@jest/globals'
import type { Listener, Policy, Route } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from './config/store.ts'
import { Exchange, type Connection } from './exchange.ts'
import { Gateway } from './gateway.ts'
import { readBody } from './http/body.ts'
import { HeaderList } from './http/headers.ts'
import type { RequestHead } from './http/message.ts'
import { testConnection, testRequest } from './testing/exchange.ts'
import type { UpstreamPool } from './upstream/types.ts'

const bind = { kind: 'bind', message: { key: 'b', port: 80 } } as const

function listener(name: string, change: Partial<Listener> = {}): ConfigMessage {
  return { kind: 'listener', message: { key: `ns/gw.${name}`, bind: 'b', gateway: { namespace: 'ns', name: 'gw' }, name, protocol: 'HTTP', ...change } }
}

function route(name: string, change: Partial<Route> = {}): ConfigMessage {
  const message: Route = { key: `ns/${name}.00`, listeners: ['ns/gw.http'], route: { kind: 'HTTPRoute', namespace: 'ns', name, ruleIndex: 0 }, ...change }
  return { kind: 'route', message: { backends: [{ ref: { service: `ns/${name}`, port: 80 } }], ...message } }
}

function service(name: string, addresses: string[] = ['10.0.0.1']): ConfigMessage {
  return { kind: 'service', message: { key: `ns/${name}`, ports: [{ port: 80, endpoints: addresses.map((address) => ({ address, port: 80 })) }] } }
}

function policy(traffic: Policy['traffic'], name = 'p'): ConfigMessage {
  return {
    kind: 'policy',
    message: {
      key: `traffic/ns/${name}:0`,
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name },
      target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
      ...(traffic && { traffic }),
    },
  }
}

/** A gateway whose upstreams answer 200 and are remembered by the address that they were reached at. */
function start(...messages: ConfigMessage[]) {
  const store = createConfigStore()
  const pools: string[] = []
  const gateway = new Gateway({
    createPool: (kind, { host }): UpstreamPool => {
      pools.push(`${host} ${kind}`)
      return {
        size: 0,
        close: () => {},
        call: () => ({
          response: Promise.resolve({ status: 200, headers: new HeaderList(['x-endpoint', host]), body: undefined, upgraded: undefined }),
          cancel: () => {},
        }),
      }
    },
  })
  store.subscribe((snapshot) => gateway.update(snapshot))
  const replace = (...next: ConfigMessage[]): void => void store.replace('file', next)
  replace(...messages)
  const ask = async (request: Partial<RequestHead> = {}, connection: Partial<Connection> = {}): Promise<string> => {
    const exchange = new Exchange({ ...testConnection, bind: 'b', ...connection }, testRequest(request), performance.now())
    await gateway.handle(exchange)
    const { status, body, headers } = exchange.response ?? { status: 0, headers: new HeaderList(), body: undefined }
    return `${status} ${(await readBody(body, 10_000)).bytes.toString() || (headers.get('x-endpoint') ?? headers.get('grpc-message') ?? '')}`
  }
  return { gateway, ask, replace, pools }
}

describe('Gateway', () => {
  const basic = [bind, listener('http', { hostname: '*.example.com' }), route('a'), service('a')]

  test.each<[string, Partial<RequestHead>, Partial<Connection>, string]>([
    ['a known host is forwarded', { authority: 'a.example.com' }, {}, '200 10.0.0.1'],
    ['an unknown host is 404', { authority: 'other.org' }, {}, '404 listener not found'],
    ['an unknown bind is 404', { authority: 'a.example.com' }, { bind: 'gone' }, '404 bind not found'],
    ['no host at all', { authority: '' }, {}, '503 processing failed: no authority or host'],
    ['CONNECT is refused', { authority: 'a.example.com:443', method: 'CONNECT', target: '' }, {}, '405 method not allowed'],
  ])('%s', async (_, request, connection, expected) => expect(await start(...basic).ask(request, connection)).toBe(expected))

  test('no rule for the path is 404, for gRPC callers in their format', async () => {
    const { ask } = start(bind, listener('http'), route('a', { matches: [{ path: { type: 'Exact', value: '/only' } }] }), service('a'))
    expect(await ask({ target: '/else' })).toBe('404 route not found')
    expect(await ask({ target: '/svc/Method', headers: new HeaderList(['content-type', 'application/grpc']) })).toBe('200 route%20not%20found')
  })

  test('TLS connections answer 421 for a host of another listener and 404 for one of none', async () => {
    const tls = (name: string, hostname: string): ConfigMessage => listener(name, { hostname, protocol: 'HTTPS', tls: { mode: 'Terminate' } })
    const { ask } = start(bind, tls('one', 'one.com'), tls('two', 'two.com'), route('a', { listeners: ['ns/gw.one', 'ns/gw.two'] }), service('a'))
    const on = { listener: 'ns/gw.one' }
    expect(await ask({ authority: 'one.com' }, on)).toBe('200 10.0.0.1')
    expect(await ask({ authority: 'two.com' }, on)).toBe('421 misdirected request')
    expect(await ask({ authority: 'three.com' }, on)).toBe('404 listener not found')
  })

  test.each<[string, Partial<Route>, ConfigMessage[], string]>([
    ['a rule without backends is 500', { backends: [] }, [], '500 no valid backends'],
    ['all weights 0 is 500', { backends: [{ ref: { service: 'ns/a', port: 80 }, weight: 0 }] }, [service('a')], '500 no valid backends'],
    ['an invalid reference is 500', { backends: [{ ref: { invalid: 'BACKEND_NOT_FOUND' } }] }, [], '500 backend does not exist'],
    ['a service that has not arrived is 500', {}, [], '500 service not found'],
    ['a service without endpoints is 503', {}, [service('a', [])], '503 no healthy backends'],
    ['a rule that cannot be honoured is 500', { filters: { invalid: 'no such filter' } }, [service('a')], '500 failed to apply filters: no such filter'],
  ])('%s', async (_, change, more, expected) => expect(await start(bind, listener('http'), route('a', change), ...more).ask()).toBe(expected))

  test('a service that arrives after its route is used at once', async () => {
    const { ask, replace } = start(bind, listener('http'), route('a'))
    expect(await ask()).toBe('500 service not found')
    replace(bind, listener('http'), route('a'), service('a', ['10.0.0.9']))
    expect(await ask()).toBe('200 10.0.0.9')
  })

  test('a change of endpoints or of other routes keeps connections', async () => {
    const { ask, replace, pools } = start(bind, listener('http'), route('a'), service('a'))
    await ask()
    replace(bind, listener('http'), route('a'), route('b', { matches: [{ path: { type: 'Exact', value: '/b' } }] }), service('a', ['10.0.0.1', '10.0.0.2']))
    for (let i = 0; i < 20; i++) await ask()
    expect(pools.filter((pool) => pool === '10.0.0.1 http1').length).toBe(1)
  })

  test('a security policy that this build does not have lets nobody in, and its removal does', async () => {
    const messages = [bind, listener('http'), route('a'), service('a')]
    const { ask, replace } = start(...messages, policy({ extAuth: { backendRef: { address: 'a:1' }, grpc: {} } }))
    expect(await ask()).toBe('500 failed to apply filters: policy extAuth is not supported by this version')
    replace(...messages)
    expect(await ask()).toBe('200 10.0.0.1')
  })

  test('a PreRouting policy acts before the route is chosen', async () => {
    const { ask } = start(bind, listener('http'), policy({ phase: 'PreRouting', authorization: { policy: { matchExpressions: ['true'] } } }))
    expect(await ask()).toMatch(/^500 failed to apply filters/)
  })
})
