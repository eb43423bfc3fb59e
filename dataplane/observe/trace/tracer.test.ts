import { describe, expect, test } from '@jest/globals'
import type { Authorization, Policy } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { HeaderList } from '../../http/headers.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import type { UpstreamPool } from '../../net/upstream/types.ts'
import type { TraceFilter } from './tracer.ts'
import { testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

const messages = (traffic: Policy['traffic']): ConfigMessage[] => [
  ...testListener,
  testRoute({ service: 'ns/web', port: 80 }, { route: { kind: 'HTTPRoute', namespace: 'ns', name: 'web', ruleIndex: 0, rule: 'main' } }),
  { kind: 'service', message: { key: 'ns/web', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 80 }] }] } },
  {
    kind: 'policy',
    message: {
      key: 'traffic/ns/p:0',
      policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' },
      target: { kind: 'HTTPRoute', namespace: 'ns', name: 'web' },
      ...(traffic && { traffic }),
    },
  },
]

/** A gateway whose upstream answers 200 and keeps the headers it got. */
function start(traffic: Policy['traffic']) {
  const seen: HeaderList[] = []
  const pool: UpstreamPool = {
    size: 0,
    close: () => {},
    call(request) {
      seen.push(request.headers)
      return { cancel: () => {}, response: Promise.resolve({ status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }) }
    },
  }
  const gateway = new Gateway({ createPool: () => pool })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, messages(traffic))
  const send = async (target: string, headers: string[] = []): Promise<void> => {
    const request = testRequest({ target, authority: 'shop.example', headers: new HeaderList(headers) })
    await gateway.handle(new Exchange(testConnection, request, performance.now()))
  }
  const wait = (filter: TraceFilter = {}) => gateway.tracer.wait(filter, 5000)
  return { gateway, seen, send, wait }
}

const authorization: Authorization = {
  action: 'Allow',
  policy: { matchExpressions: ['request.headers["x-user"] == "bob"', 'request.path == "/secret-answer"'] },
}

describe('a traced request', () => {
  test('shows listener, route, policies, expressions, attempt and response in order', async () => {
    const { send, wait } = start({ authorization, headerModifiers: { request: { set: [{ name: 'x-a', value: '1' }] } } })
    const report = wait()
    await send('/secret-answer?q=1')
    const { steps = [], ...rest } = (await report) ?? {}
    expect(rest).toEqual({ method: 'GET', path: '/secret-answer', host: 'shop.example', status: 200 })
    expect(steps.map(({ kind, name, detail }) => [kind, name, detail])).toEqual([
      ['listener', 'ns/gw.http', undefined],
      ['route', 'ns/web', { kind: 'HTTPRoute', rule: 'main' }],
      ['policy', 'authorization', undefined],
      ['expression', 'request.headers["x-user"] == "bob"', { result: expect.stringMatching(/^error: /) }],
      ['expression', 'request.path == "/secret-answer"', { result: true }],
      ['policy', 'headerModifiers', undefined],
      ['upstream', '10.0.0.1:80', { backend: 'ns/web:80', attempt: 0, picked: 'the only endpoint', status: 200 }],
      ['answer', '200', { by: 'upstream' }],
    ])
    const times = steps.map(({ atMs }) => atMs)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  test('shows the policy that rejected it and the reason', async () => {
    const { send, wait } = start({ authorization })
    const report = wait()
    await send('/other')
    const { status, reason, steps = [] } = (await report) ?? {}
    expect({ status, reason }).toEqual({ status: 403, reason: 'AUTHORIZATION' })
    expect(steps.find(({ kind }) => kind === 'policy')?.detail).toEqual({ refused: 'AUTHORIZATION' })
    expect(steps.at(-1)?.detail).toEqual({ by: 'gateway, an error' })
  })

  test('does not show strings that expressions return', async () => {
    const { send, wait } = start({ transformation: { request: { set: [{ name: 'x-copy', value: 'request.headers["x-password"]' }] } } })
    const report = wait()
    await send('/', ['x-password', 'hunter2'])
    const text = JSON.stringify(await report)
    expect(text).toContain('string of 7')
    expect(text).not.toContain('hunter2')
  })

  test.each<[string, TraceFilter, string]>([
    ['by path', { path: '/a' }, '/a/1'],
    ['by host', { host: 'SHOP.example' }, '/b'],
    ['by method', { method: 'GET' }, '/b'],
    ['by its id, which is not forwarded', { id: 'mine' }, '/c'],
  ])('is selected %s', async (_, filter, path) => {
    const { send, seen, wait } = start({})
    const report = wait(filter)
    if (filter.host === undefined && filter.method === undefined) await send('/other')
    await send(path, ['x-proxy-trace-id', 'mine'])
    expect((await report)?.path).toBe(path)
    expect(seen.at(-1)?.has('x-proxy-trace-id')).toBe(false)
  })

  test('is the only one recorded', async () => {
    const { gateway, send, wait } = start({})
    const report = wait()
    await send('/1')
    expect(gateway.tracer.isArmed).toBe(false)
    await send('/2')
    expect((await report)?.path).toBe('/1')
  })

  test('is undefined after the timeout, and too many waiting traces are rejected', async () => {
    const { gateway } = start({})
    expect(await gateway.tracer.wait({}, 5)).toBeUndefined()
    expect(gateway.tracer.isArmed).toBe(false)
    const waiting = Array.from({ length: 16 }, () => gateway.tracer.wait({}, 20))
    expect(() => gateway.tracer.wait({}, 20)).toThrow('16 traces are waiting already')
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => undefined))
  })
})
