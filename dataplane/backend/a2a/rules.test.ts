import { describe, expect, test } from '@jest/globals'
import type { Policy } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { LongBody } from '../../testing/body.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

const backends: Readonly<Record<string, ConfigMessage>> = {
  a2a: { kind: 'backend', message: { key: 'ns/agent', a2a: { host: '10.0.0.1', port: 80 } } },
  static: { kind: 'backend', message: { key: 'ns/agent', static: { host: '10.0.0.1', port: 80 } } },
}

interface Agent {
  readonly kind?: string
  readonly body?: object
  readonly type?: string
}

/** A gateway with a policy in front of an agent that responds with `body`. */
function start(traffic: Policy['traffic'], { kind = 'a2a', body = { result: {} }, type = 'application/json' }: Agent = {}) {
  const registry = createRegistry()
  const gateway = new Gateway({
    registry,
    createPool: () => ({
      size: 0,
      close: () => {},
      call(request) {
        const respond = async () => {
          if (request.body !== undefined) await readBody(request.body, 10_000_000)
          return { status: 200, headers: new HeaderList(['content-type', type]), body: new BufferBody(JSON.stringify(body)), upgraded: undefined }
        }
        return { cancel: () => {}, response: respond() }
      },
    }),
  })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const policy: ConfigMessage = {
    kind: 'policy',
    message: { key: 'ns/p', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' }, target: testGateway, ...(traffic && { traffic }) },
  }
  replaceMessages(store, [...testListener, testRoute({ backend: 'ns/agent' }), backends[kind] as ConfigMessage, policy])
  const send = async (method: string, target: string, content?: string | Body, headers: Record<string, string> = {}) => {
    const request = { method, target, body: typeof content === 'string' ? new BufferBody(content) : content }
    const exchange = new Exchange(testConnection, testRequest(request, headers), performance.now())
    await gateway.handle(exchange)
    const { response } = exchange
    if (response?.body !== undefined) await readBody(response.body, 10_000_000)
    return { exchange, status: response?.status }
  }
  return { registry, send }
}

const rpc = (method: string): string => JSON.stringify({ jsonrpc: '2.0', id: 1, method })
const allow = (...matchExpressions: string[]): Policy['traffic'] => ({ authorization: { policy: { matchExpressions } } })
const methods = allow('a2a.method in ["GetTask", "CancelTask", "SendMessage"]')

describe('a rule that reads a2a.method', () => {
  test.each<[string, string, string | undefined, number]>([
    ['POST', '/', rpc('GetTask'), 200],
    ['POST', '/', rpc('ListTasks'), 403],
    ['POST', '/', '{"jsonrpc":"2.0"}', 403],
    ['GET', '/', undefined, 403],
    ['GET', '/tasks/1', undefined, 200],
    ['GET', '/tasks', undefined, 403],
    ['POST', '/message:send', '{"message":{"parts":[]}}', 200],
    ['POST', '/tasks/1%3Acancel', '{}', 200],
    ['POST', '/tasks/1:cancel', undefined, 200],
    ['POST', '/message:stream', '{}', 403],
    ['POST', '/message:stream', rpc('GetTask'), 400],
    ['POST', '/', '{"method":"GetTask","method":"ListTasks"}', 400],
    ['POST', '/', '{"method":"GetTask","Method":"ListTasks"}', 400],
    ['POST', '/', `[${rpc('GetTask')}]`, 400],
    ['POST', '/', 'x', 400],
  ])('decides about %s %s with %s', async (method, target, body, status) => {
    expect((await start(methods).send(method, target, body)).status).toBe(status)
  })

  test('decides about a gRPC request by its path', async () => {
    const { send } = start(methods)
    const grpc = (method: string) => send('POST', `/lf.a2a.v1.A2AService/${method}`, '\0\0\0\0\0', { 'content-type': 'application/grpc' })
    expect((await grpc('GetTask')).status).toBe(200)
    expect((await grpc('ListTasks')).exchange.error?.code).toBe('AUTHORIZATION')
  })

  test('rejects a body that is too large, and one that does not match its coding; reads one that is compressed', async () => {
    const { send } = start({ authorization: { action: 'Deny', policy: { matchExpressions: ['a2a.method == "CancelTask"'] } } })
    expect((await send('POST', '/', new LongBody(3 * 1024 * 1024))).status).toBe(413)
    expect((await send('POST', '/', rpc('GetTask'), { 'content-encoding': 'gzip' })).exchange.error?.code).toBe('CONTENT_MISMATCH')
    expect((await send('POST', '/', rpc('GetTask'), { 'content-encoding': 'lzma' })).status).toBe(415)
    expect((await send('POST', '/', rpc('GetTask'))).status).toBe(200)
    expect((await send('POST', '/', rpc('CancelTask'))).status).toBe(403)
  })

  test('sees null for other backends, whose bodies may be anything', async () => {
    expect((await start(allow('a2a == null && backend.protocol == "http"'), { kind: 'static' }).send('POST', '/', 'x')).status).toBe(200)
  })

  test.each<[string, Policy['traffic']]>([
    ['rateLimit', { rateLimit: { local: [{ requests: 1, unit: 'Hours', key: 'a2a.method' }] } }],
    ['budgets', { budgets: [{ name: 'a', key: 'a2a.method', limits: [{ requests: 1, window: 'Hour' }] }] }],
  ])('counts for each method in %s', async (_, traffic) => {
    const { send } = start(traffic)
    const statuses = []
    for (const body of [rpc('GetTask'), rpc('GetTask'), rpc('ListTasks'), '[]']) statuses.push((await send('POST', '/', body)).status)
    expect(statuses).toEqual([200, 429, 200, 400])
  })

  test('reads the method in logs too', async () => {
    const { exchange } = await start(undefined).send('POST', '/', rpc('GetTask'))
    expect(new ExchangeView(exchange).get('a2a')).toEqual({ method: 'GetTask' })
    expect(new ExchangeView(exchange).get('backend')).toMatchObject({ protocol: 'a2a' })
  })
})

test('responses are counted by method and outcome; clients choose no label', async () => {
  const error = { jsonrpc: '2.0', id: 1, error: { code: -32001, message: 'x' } }
  const { registry, send } = start(undefined, { body: error })
  await send('POST', '/', rpc('GetTask'))
  await send('POST', '/', rpc('GetTask'))
  await send('POST', '/', rpc('x'.repeat(300)))
  await send('GET', '/.well-known/agent.json')
  await send('GET', '/favicon.ico')
  const lines = [...registry.expose('text')].join('').matchAll(/^proxy_a2a_responses_total\{method="(.*?)",outcome="(.*?)",.*\} (\d+)$/gm)
  expect([...lines].map(([, ...values]) => values.join(' ')).toSorted()).toEqual([
    'GetAgentCard error 1',
    'GetTask error 2',
    'other error 1',
    'unknown error 1',
  ])
})

test('a streamed response counts by its status', async () => {
  const { registry, send } = start(undefined, { type: 'text/event-stream' })
  await send('POST', '/', rpc('SendStreamingMessage'))
  expect([...registry.expose('text')].join('')).toContain('proxy_a2a_responses_total{method="SendStreamingMessage",outcome="success",')
})
