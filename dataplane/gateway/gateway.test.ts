import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import type { Listener, Policy, Route, Service } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../config/store.ts'
import { Exchange, type Connection } from '../request/exchange/exchange.ts'
import { Gateway } from './gateway.ts'
import { BufferBody, readBody } from '../http/body.ts'
import { bodyBudget } from '../http/budget.ts'
import { HeaderList } from '../http/headers.ts'
import type { RequestHead } from '../http/message.ts'
import { ManualBody } from '../testing/body.ts'
import { testConnection, testRequest } from '../testing/exchange.ts'
import type { UpstreamPool } from '../net/upstream/types.ts'
import { replaceMessages } from '../testing/store.ts'
import { gatewayTelemetry } from '../observe/telemetry/gateway.ts'
import { createRegistry } from '../observe/telemetry/metrics/registry.ts'
import { pluginMetrics } from '../policy/plugins/metrics.ts'

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

const gatewayTarget = { kind: 'Gateway', namespace: 'ns', name: 'gw' } as const

function policy(traffic: Policy['traffic'], name = 'p', target: Policy['target'] = gatewayTarget, frontend?: Policy['frontend']): ConfigMessage {
  return {
    kind: 'policy',
    message: {
      key: `traffic/ns/${name}:0`,
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name },
      target,
      ...(traffic && { traffic }),
      ...(frontend && { frontend }),
    },
  }
}

const ofRoute = (traffic: Policy['traffic']): ConfigMessage => policy(traffic, 'of-route', { kind: 'HTTPRoute', namespace: 'ns', name: 'a' })

function policyMessage(section: Partial<Policy>, name = 'p'): Policy {
  return {
    key: `any/ns/${name}:0`,
    policy: { kind: 'ProxyPolicy', namespace: 'ns', name },
    target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
    ...section,
  }
}

/** A gateway whose upstreams answer 200 and are remembered by the address that they were reached at. */
function start(...messages: ConfigMessage[]) {
  const store = createConfigStore()
  const pools: string[] = []
  const registry = createRegistry()
  const gateway = new Gateway({
    nodeName: 'n1',
    registry,
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
  const replace = (...next: ConfigMessage[]): void => void replaceMessages(store, next)
  replace(...messages)
  const ask = async (request: Partial<RequestHead> = {}, connection: Partial<Connection> = {}): Promise<string> => {
    const exchange = new Exchange({ ...testConnection, bind: 'b', ...connection }, testRequest(request), performance.now())
    await gateway.handle(exchange)
    const { status, body, headers } = exchange.response ?? { status: 0, headers: new HeaderList(), body: undefined }
    return `${status} ${(await readBody(body, 10_000)).bytes.toString() || (headers.get('x-endpoint') ?? headers.get('grpc-message') ?? '')}`
  }
  return { gateway, ask, replace, pools, registry }
}

describe('Gateway', () => {
  const basic = [bind, listener('http', { hostname: '*.example.com' }), route('a'), service('a')]

  test.each<[string, Partial<RequestHead>, Partial<Connection>, string]>([
    ['a known host is forwarded', { authority: 'a.example.com' }, {}, '200 10.0.0.1'],
    ['an unknown host is 404', { authority: 'other.org' }, {}, '404 listener not found'],
    ['an unknown bind is 404', { authority: 'a.example.com' }, { bind: 'gone' }, '404 bind not found'],
    ['no host at all', { authority: '' }, {}, '400 invalid request: no authority or host'],
    ['CONNECT is refused', { authority: 'a.example.com:443', method: 'CONNECT', target: '' }, {}, '405 method not allowed'],
    ['CONNECT to an unknown host, too', { authority: 'other.org:443', method: 'CONNECT', target: '' }, {}, '405 method not allowed'],
  ])('%s', async (_, request, connection, expected) => expect(await start(...basic).ask(request, connection)).toBe(expected))

  test('tidy ends plugins that the config no longer has', async () => {
    const code = `export default { setup: () => ({ request: (c) => c.text('plugin') }) }`
    const source = { configMapRef: { code, file: 'index.ts', owner: 'ns/p' } }
    const { gateway, ask, replace, registry } = start(...basic, policy({ plugins: [{ name: 'a', source, limits: { timeout: '20s' } }] }))
    expect(await ask({ authority: 'a.example.com' })).toBe('200 plugin')
    const threads = pluginMetrics(registry).threads.series('ns/p/a')
    gateway.tidy()
    await setImmediate()
    await setImmediate()
    expect(threads.value).toBe(1)
    replace(...basic)
    gateway.tidy()
    await setImmediate()
    await setImmediate()
    expect(threads.value).toBe(0)
  }, 60_000)

  test('runs plugins in process only while its listeners permit it', async () => {
    const code = `export default { setup: () => ({ request: (c) => c.text('plugin') }) }`
    const source = { configMapRef: { code, file: 'index.ts', owner: 'ns/p' } }
    const plugins = policy({ plugins: [{ name: 'a', source, isolation: 'InProcess' }] })
    const rest = [bind, route('a'), service('a'), plugins]
    const { ask, replace } = start(...rest, listener('http', { inProcessPlugins: true }))
    expect(await ask({ authority: 'a.example.com' })).toBe('200 plugin')
    replace(...rest, listener('http'))
    expect(await ask({ authority: 'a.example.com' })).toBe('500 plugin failed')
    replace(...rest, listener('http', { inProcessPlugins: true }))
    expect(await ask({ authority: 'a.example.com' })).toBe('200 plugin')
  })

  test('a body beyond maxHeldBytes is rejected, in the format of gRPC for gRPC clients, until the policy changes', async () => {
    const before = bodyBudget.limitBytes
    const reader = policy({ transformation: { request: { set: [{ name: 'x-size', value: 'string(size(request.body))' }] } } }, 'reads')
    const limit = (maxHeldBytes: number): ConfigMessage => policy(undefined, 'limit', gatewayTarget, { http: { maxHeldBytes } })
    const { ask, replace } = start(...basic, reader, limit(3))
    const post = (headers: Record<string, string> = {}): Promise<string> => {
      const body = new ManualBody()
      const asked = ask({ method: 'POST', authority: 'a.example.com', body, headers: HeaderList.from(Object.entries(headers)) })
      body.push('12345')
      body.end()
      return asked
    }
    expect(await post()).toBe('503 too many bytes of bodies are buffered, retry later')
    expect(await post({ 'content-type': 'application/grpc' })).toBe('200 too%20many%20bytes%20of%20bodies%20are%20buffered,%20retry%20later')
    replace(...basic, reader, limit(100))
    expect(await post()).toBe('200 10.0.0.1')
    bodyBudget.limitBytes = before
  })

  test('a refused CONNECT is told of with its listener', async () => {
    const { gateway } = start(...basic, policy(undefined, 'logs', gatewayTarget, { accessLog: { filter: 'true' } }))
    const exchange = new Exchange({ ...testConnection, bind: 'b' }, testRequest({ authority: 'a.example.com:443', method: 'CONNECT', target: '' }), 0)
    await gateway.handle(exchange)
    expect(exchange.labels).toEqual({ gateway: 'ns/gw', listener: 'http' })
    expect(gatewayTelemetry.get(exchange)?.accessLog?.filter).toBeDefined()
  })

  test('no rule for the path is 404, for gRPC callers in their format', async () => {
    const { ask } = start(bind, listener('http'), route('a', { matches: [{ path: { type: 'Exact', value: '/only' } }] }), service('a'))
    expect(await ask({ target: '/else' })).toBe('404 route not found')
    expect(await ask({ target: '/svc/Method', headers: new HeaderList(['content-type', 'application/grpc']) })).toBe('200 route%20not%20found')
  })

  describe('a rule for /admin', () => {
    const admin = [
      bind,
      listener('http'),
      route('a', { matches: [{ path: { type: 'PathPrefix', value: '/admin' } }] }),
      route('b'),
      service('a'),
      service('b', ['10.0.0.2']),
    ]
    const spellings = ['//admin', '/./admin', '/x/../admin', '/%61dmin', '/x/%2e%2e/admin', '/admin/', '/admin/./x?y=//', '///x/..//admin']

    test.each(spellings)('matches the spelling %s', async (target) => expect(await start(...admin).ask({ target })).toBe('200 10.0.0.1'))

    test.each(['/admin%2f', '/admin;x', '/\\admin', '/Admin', '/%2561dmin'])('does not match %s, which may be another path', async (target) =>
      expect(await start(...admin).ask({ target })).toBe('200 10.0.0.2'),
    )

    test.each(spellings.slice(0, 5))('does not match %s without normalization', async (target) => {
      const off = policy(undefined, 'off', gatewayTarget, { http: { pathNormalization: 'Off' } })
      expect(await start(...admin, off).ask({ target })).toBe('200 10.0.0.2')
    })

    test('forwards and logs the normalized path', async () => {
      const { gateway } = start(...admin)
      const exchange = new Exchange({ ...testConnection, bind: 'b' }, testRequest({ target: '//%61dmin?a=%61' }), 0)
      await gateway.handle(exchange)
      expect([exchange.request.target, exchange.receivedTarget]).toEqual(['/admin?a=%61', '/admin?a=%61'])
    })
  })

  test('exchanges have the JSON limits of the frontend', async () => {
    const limits = policy(undefined, 'json', gatewayTarget, { http: { maxJsonDepth: 1000 } })
    const { gateway } = start(bind, listener('l'), route('a'), service('a'), limits)
    const exchange = new Exchange({ ...testConnection, bind: 'b' }, testRequest({}), 0)
    await gateway.handle(exchange)
    expect(exchange.jsonLimits).toEqual({ maxDepth: 1000, maxMembers: 100_000 })
  })

  test('TLS connections answer 421 for a host of another listener and 404 for one of none', async () => {
    const tls = (name: string, hostname: string): ConfigMessage => listener(name, { hostname, protocol: 'HTTPS', tls: { mode: 'Terminate' } })
    const { ask } = start(bind, tls('one', 'one.com'), tls('two', 'two.com'), route('a', { listeners: ['ns/gw.one', 'ns/gw.two'] }), service('a'))
    const on = { listener: 'ns/gw.one' }
    expect(await ask({ authority: 'one.com' }, on)).toBe('200 10.0.0.1')
    expect(await ask({ authority: 'two.com' }, on)).toBe('421 misdirected request')
    expect(await ask({ authority: 'three.com' }, on)).toBe('404 listener not found')
  })

  test('what PreRouting policies say about a connection comes before 421, and they see its answer', async () => {
    const tls = (name: string, hostname: string): ConfigMessage => listener(name, { hostname, protocol: 'HTTPS', tls: { mode: 'Terminate' } })
    const { ask } = start(
      bind,
      tls('one', 'one.com'),
      tls('two', 'two.com'),
      policy({
        phase: 'PreRouting',
        authorization: { policy: { matchExpressions: ['request.path == "/in"'] } },
        transformation: { request: { set: [{ name: ':authority', value: '"one.com"' }] }, response: { body: '"seen " + string(response.code)' } },
      }),
    )
    const on = { listener: 'ns/gw.one' }
    expect(await ask({ authority: 'two.com', target: '/out' }, on)).toBe('403 authorization failed')
    expect(await ask({ authority: 'two.com', target: '/in' }, on)).toBe('421 seen 421')
  })

  test('a traffic policy of an InferencePool applies to requests for that pool, below policies of the route', async () => {
    const pool = { kind: 'Service', namespace: 'ns', name: 'm.inference' } as const
    const deny = (expression: string): Policy['traffic'] => ({ authorization: { action: 'Deny', policy: { matchExpressions: [expression] } } })
    const rule = (ruleIndex: number, weights: readonly [pool: number, plain: number]): ConfigMessage =>
      route('a', {
        key: `ns/a.0${ruleIndex}`,
        route: { kind: 'HTTPRoute', namespace: 'ns', name: 'a', ruleIndex },
        matches: [{ path: { type: 'Exact', value: `/${ruleIndex}` } }],
        backends: ['m.inference', 'a'].map((name, index) => ({ ref: { service: `ns/${name}`, port: 80 }, weight: weights[index] ?? 0 })),
      })
    const messages = [bind, listener('http'), rule(0, [1, 0]), rule(1, [0, 1]), service('a'), service('m.inference', ['10.0.0.2'])]
    const { ask, replace } = start(...messages, policy(deny('request.method == "PUT"'), 'of-pool', pool))
    expect([await ask({ target: '/0', method: 'PUT' }), await ask({ target: '/0' })]).toEqual(['403 authorization failed', '200 10.0.0.2'])
    expect(await ask({ target: '/1', method: 'PUT' })).toBe('200 10.0.0.1')
    const response = (body: string): Policy['traffic'] => ({ directResponse: { status: 203, body } })
    replace(...messages, policy(response('pool'), 'of-pool', pool), policy(response('gateway')))
    expect([await ask({ target: '/0' }), await ask({ target: '/1' })]).toEqual(['203 pool', '203 gateway'])
    replace(...messages, policy(response('pool'), 'of-pool', pool), ofRoute(response('route')))
    expect([await ask({ target: '/0' }), await ask({ target: '/1' })]).toEqual(['203 route', '203 route'])
  })

  test.each<[string, Partial<Route>, ConfigMessage[], string]>([
    ['a rule without backends is 500', { backends: [] }, [], '500 no valid backends'],
    ['all weights 0 is 500', { backends: [{ ref: { service: 'ns/a', port: 80 }, weight: 0 }] }, [service('a')], '500 no valid backends'],
    ['an invalid reference is 500', { backends: [{ ref: { invalid: 'BACKEND_NOT_FOUND' } }] }, [], '500 backend does not exist'],
    ['a service that has not arrived is 500', {}, [], '500 service not found'],
    ['a service without endpoints is 503', {}, [service('a', [])], '503 no healthy backends'],
    ['a rule that cannot be honoured is 500', { filters: { invalid: 'no such filter' } }, [service('a')], '500 failed to apply filters: no such filter'],
  ])('%s', async (_, change, more, expected) => expect(await start(bind, listener('http'), route('a', change), ...more).ask()).toBe(expected))

  test('policies of a route know the backend that it was chosen with; those before the route do not', async () => {
    const by = (name: string): Policy['traffic'] => ({
      authorization: { policy: { matchExpressions: [`backend.name == "${name}" && backend.type == "service"`] } },
    })
    const chosen = start(bind, listener('http'), route('a'), service('a'), ofRoute(by('ns/a:80')))
    expect(await chosen.ask()).toBe('200 10.0.0.1')
    const two = { backends: ['a', 'b'].map((name, weight) => ({ ref: { service: `ns/${name}`, port: 80 }, weight })) }
    const weighted = start(bind, listener('http'), route('a', two), service('a'), service('b', ['10.0.0.2']), ofRoute(by('ns/b:80')))
    expect(await weighted.ask()).toBe('200 10.0.0.2')
    const early = start(bind, listener('http'), route('a'), service('a'), policy({ ...by('ns/a:80'), phase: 'PreRouting' }))
    expect(await early.ask()).toBe('403 authorization failed')
  })

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

  test('a Service is asked where it wants to be asked: on the own node, or in the zone that the node is found to be in', async () => {
    const endpoints = [
      { address: '10.0.0.1', port: 80, node: 'n2', zone: 'b' },
      { address: '10.0.0.2', port: 80, node: 'n3', zone: 'a' },
    ]
    const of = (name: string, more: Partial<Service>): ConfigMessage => ({
      kind: 'service',
      message: { key: `ns/${name}`, ports: [{ port: 80, endpoints }], ...more },
    })
    const own: ConfigMessage = {
      kind: 'service',
      message: { key: 'ns/own', ports: [{ port: 80, endpoints: [{ address: '10.0.0.3', port: 80, node: 'n1', zone: 'a' }] }] },
    }
    const { ask, replace } = start(bind, listener('http'), route('a'), of('a', { trafficDistribution: 'PreferSameZone' }))
    const asked = async (): Promise<string[]> => [...new Set(await Promise.all(Array.from({ length: 40 }, () => ask())))].toSorted()
    expect(await asked()).toEqual(['200 10.0.0.1', '200 10.0.0.2'])
    replace(bind, listener('http'), route('a'), of('a', { trafficDistribution: 'PreferSameZone' }), own)
    expect(await asked()).toEqual(['200 10.0.0.2'])
    replace(bind, listener('http'), route('a'), of('a', { internalTrafficPolicy: 'Local' }), own)
    expect(await asked()).toEqual(['503 no healthy backends'])
  })

  test('a security policy whose server does not resolve lets nobody in, and its removal does', async () => {
    const messages = [bind, listener('http'), route('a'), service('a')]
    const { ask, replace } = start(...messages, policy({ extAuth: { backendRef: { invalid: 'BACKEND_NOT_FOUND' }, grpc: {} } }))
    expect(await ask()).toBe('403 external authorization failed')
    replace(...messages)
    expect(await ask()).toBe('200 10.0.0.1')
  })

  test('a PreRouting policy acts before the route is chosen', async () => {
    const only = route('a', { matches: [{ path: { type: 'Exact', value: '/only' } }] })
    const toOnly: Policy['traffic'] = { phase: 'PreRouting', transformation: { request: { set: [{ name: ':path', value: '"/only"' }] } } }
    expect(await start(bind, listener('http'), only, service('a'), policy(toOnly)).ask()).toBe('200 10.0.0.1')
    expect(await start(bind, listener('http'), policy({ phase: 'PreRouting', authorization: rules('false') })).ask()).toBe('403 authorization failed')
  })

  const rules = (expression: string) => ({ policy: { matchExpressions: [expression] } })
  test.each([
    [4, '200'],
    [3, '403'],
  ])('bodies are read up to the buffer size of the frontend: %s bytes of 4', async (maxBufferSize, status) => {
    const frontend = policy(undefined, 'frontend', gatewayTarget, { http: { maxBufferSize } })
    for (const phase of ['PreRouting', 'PostRouting'] as const) {
      const { ask } = start(bind, listener('http'), route('a'), service('a'), frontend, policy({ phase, authorization: rules('size(request.body) == 4') }))
      expect((await ask({ method: 'POST', body: new BufferBody('body') })).slice(0, 3)).toBe(status)
    }
  })

  test.each<[string, ConfigMessage[], string]>([
    ['Gateway Allow A, route Allow B, only B is true (row 23)', [policy({ authorization: rules('false') }), ofRoute({ authorization: rules('true') })], '200'],
    [
      'a route cannot lift a Deny of its Gateway',
      [policy({ authorization: { ...rules('true'), action: 'Deny' } }), ofRoute({ authorization: rules('true') })],
      '403',
    ],
    [
      'PreRouting Allow A, PostRouting Allow B, only B is true (row 24)',
      [policy({ phase: 'PreRouting', authorization: rules('false') }), ofRoute({ authorization: rules('true') })],
      '403',
    ],
    [
      'PreRouting Allow A, PostRouting Allow B, only A is true (row 24)',
      [policy({ phase: 'PreRouting', authorization: rules('true') }), ofRoute({ authorization: rules('false') })],
      '403',
    ],
    ['both phases allow', [policy({ phase: 'PreRouting', authorization: rules('true') }), ofRoute({ authorization: rules('true') })], '200'],
    [
      'rules may ask where the request is',
      [ofRoute({ authorization: rules('proxy.route.name == "a" && proxy.route.kind == "HTTPRoute" && proxy.listener.name == "http"') })],
      '200',
    ],
    ['before routing too', [policy({ phase: 'PreRouting', authorization: rules('proxy.gateway.name == "gw" && proxy.listener.name == "http"') })], '200'],
  ])('authorization: %s', async (_, policies, status) => {
    expect((await start(bind, listener('http'), route('a'), service('a'), ...policies).ask()).slice(0, 3)).toBe(status)
  })
})

describe('state of policies over config versions:', () => {
  const routes = [bind, listener('http'), route('a'), route('b', { matches: [{ path: { type: 'Exact', value: '/b' } }] }), service('a'), service('b')]
  const limit = (requests: number) => policy({ rateLimit: { local: [{ requests, unit: 'Hours' }] } })
  const keys = (key: string): ConfigMessage => ({ kind: 'secret', message: { key: 'opaque/ns/keys', type: 'opaque', data: { one: key } } })
  const status = async (answer: Promise<string>): Promise<string> => (await answer).slice(0, 3)

  test('one budget for all routes of a target, whatever else changes; a new one with the policy', async () => {
    const { ask, replace } = start(...routes, limit(2))
    expect([await status(ask()), await status(ask({ target: '/b' })), await status(ask())]).toEqual(['200', '200', '429'])
    replace(...routes, service('c'), keys('k'), limit(2), policy({ csrf: {} }, 'other'))
    expect([await status(ask()), await status(ask({ target: '/b' }))]).toEqual(['429', '429'])
    replace(...routes, limit(1))
    expect([await status(ask()), await status(ask())]).toEqual(['200', '429'])
  })

  test('a budget for each target', async () => {
    const { kind, message } = limit(1) as Extract<ConfigMessage, { kind: 'policy' }>
    const of = (name: string): ConfigMessage => ({
      kind,
      message: { ...structuredClone(message), key: name, target: { kind: 'HTTPRoute', namespace: 'ns', name } },
    })
    const { ask } = start(...routes, of('a'), of('b'))
    expect([await status(ask()), await status(ask({ target: '/b' })), await status(ask())]).toEqual(['200', '200', '429'])
  })

  test('a changed Secret counts from the next request on', async () => {
    const access = policy({ apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } })
    const { ask, replace } = start(...routes, access, keys('old'))
    const askWith = (key: string) => status(ask({ headers: HeaderList.from([['authorization', `Bearer ${key}`]]) }))
    expect([await askWith('old'), await askWith('new')]).toEqual(['200', '401'])
    replace(...routes, access, keys('new'))
    expect([await askWith('old'), await askWith('new')]).toEqual(['401', '200'])
    replace(...routes, access)
    expect(await askWith('new')).toBe('401')
  })
})

test('a request that one authentication rejects costs no other and no budget, and has CORS headers', async () => {
  const { ask } = start(
    bind,
    listener('http'),
    route('a'),
    service('a'),
    policy({
      cors: { allowOrigins: ['https://a.com'] },
      jwtAuthentication: { providers: [{ issuer: 'i', jwks: { inline: '{"keys":[]}' } }] },
      basicAuthentication: { users: ['bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ='] },
      rateLimit: { local: [{ requests: 1, unit: 'Hours' }] },
      directResponse: { status: 200 },
    }),
  )
  const authorization = `Basic ${Buffer.from('bob:secret').toString('base64')}`
  for (let i = 0; i < 3; i++)
    expect(await ask({ headers: HeaderList.from([['authorization', authorization]]) })).toBe('401 authentication failure: no bearer token found')
  expect(await ask({ method: 'OPTIONS', headers: HeaderList.from([['origin', 'https://a.com']]) })).toBe('200 ')
})

describe('checks of health', () => {
  const active = { interval: '1ms', jitter: '0s', unhealthyThreshold: 1, http: { path: '/health' } }
  const health = { health: { active } }
  const forService: ConfigMessage = { kind: 'policy', message: policyMessage({ target: { kind: 'Service', namespace: 'ns', name: 'a' }, backend: health }) }
  const tcpRoute: ConfigMessage = {
    kind: 'tcpRoute',
    message: {
      key: 'ns/t',
      listeners: ['ns/gw.http'],
      route: { kind: 'TCPRoute', namespace: 'ns', name: 't', ruleIndex: 0 },
      backends: [{ ref: { service: 'ns/a', port: 80 } }],
    },
  }
  const withBackend = [
    route('b', { backends: [{ ref: { backend: 'ns/b' } }] }),
    { kind: 'backend', message: { key: 'ns/b', static: { host: '10.0.0.1', port: 80 }, policies: health } },
  ] as const satisfies readonly ConfigMessage[]
  const basic = [bind, listener('http'), route('a'), service('a')]

  test.each<[string, readonly ConfigMessage[]]>([
    ['a policy on a Service', [...basic, forService]],
    ['a policy on a Gateway', [...basic, { kind: 'policy', message: policyMessage({ backend: health }) }]],
    ['a policy of a backend', [bind, listener('http'), ...withBackend]],
    ['a Service of a TCP route', [bind, listener('http'), tcpRoute, service('a'), forService]],
  ])('begin before the first request, by %s, and end with the config', async (_, messages) => {
    const { gateway, pools, replace } = start(...messages)
    if (pools.length === 0) await new Promise((resolve) => setTimeout(resolve, 0))
    for (const startedAtMs = performance.now(); pools.length === 0 && performance.now() - startedAtMs < 20_000;)
      await new Promise((resolve) => setTimeout(resolve, 1))
    expect(pools).toEqual(['10.0.0.1 http1'])
    replace(...basic)
    gateway.tidy()
    expect([...gateway.destinations.list()].flatMap(({ endpoints }) => endpoints.filter(({ check }) => check !== undefined))).toEqual([])
  })

  test('begin with a backend that gets them after its route', async () => {
    const [own, { message }] = withBackend
    const { pools, replace } = start(bind, listener('http'), own, { kind: 'backend', message: { ...message, policies: {} } })
    replace(bind, listener('http'), ...withBackend)
    for (const startedAtMs = performance.now(); pools.length === 0 && performance.now() - startedAtMs < 20_000;)
      await new Promise((resolve) => setTimeout(resolve, 1))
    expect(pools).toEqual(['10.0.0.1 http1'])
  })
})

describe('backend policies', () => {
  test.each<[string, Partial<Policy>, string]>([
    ['on the Gateway', { target: { kind: 'Gateway', namespace: 'ns', name: 'gw' } }, 'http2'],
    ['on the route', { target: { kind: 'HTTPRoute', namespace: 'ns', name: 'a' } }, 'http2'],
    ['on another route', { target: { kind: 'HTTPRoute', namespace: 'ns', name: 'other' } }, 'http1'],
  ])('a backend policy %s decides how its backends are spoken to', async (_, where, kind) => {
    const attached = { ...policyMessage({ backend: { http: { version: 'HTTP2' } } }), ...where }
    const { ask, pools } = start(bind, listener('http'), route('a'), service('a'), { kind: 'policy', message: attached })
    expect(await ask()).toBe('200 10.0.0.1')
    expect(pools).toEqual([`10.0.0.1 ${kind}`])
  })

  test('the backend’s own policy is stronger than one on the way to it', async () => {
    const onGateway = policyMessage({ backend: { http: { version: 'HTTP2' } } }, 'weak')
    const onService = {
      ...policyMessage({ backend: { http: { version: 'HTTP1' } } }, 'strong'),
      target: { kind: 'Service', namespace: 'ns', name: 'a' },
    } as const
    const { ask, pools } = start(
      bind,
      listener('http'),
      route('a'),
      service('a'),
      { kind: 'policy', message: onGateway },
      { kind: 'policy', message: onService },
    )
    await ask()
    expect(pools).toEqual(['10.0.0.1 http1'])
  })
})
