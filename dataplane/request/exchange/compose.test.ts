import { describe, expect, test } from '@jest/globals'
import { compose, missingGrpcStatus, type Chain } from './compose.ts'
import { withSides, type Policy } from './context.ts'
import { ProxyError } from './error.ts'
import type { Exchange } from './exchange.ts'
import { BufferBody, readBody, type Body } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { testExchange } from '../../testing/exchange.ts'
import { letArrive } from '../../testing/turns.ts'
import { until } from '../../../e2e/harness/wait.ts'

const upstream = (body?: Body) => (exchange: Exchange) => {
  exchange.response = { status: 200, headers: new HeaderList(), body, upgraded: undefined }
}
const stamp =
  (name: string): Policy =>
  async (c, next) => {
    c.var.exchange.request.headers.append('trace', name)
    await next()
    c.var.exchange.response?.headers.append('trace', name)
  }

/** The same in two sides. `wait`: the request side gives a promise. */
const sides = (name: string, wait?: () => Promise<void>): Policy =>
  withSides({
    request(exchange) {
      exchange.request.headers.append('trace', name)
      return wait === undefined ? name : wait().then(() => name)
    },
    response: (exchange, left) => exchange.response?.headers.append('trace', left),
  })
const refusing = (side: 'request' | 'response'): Policy =>
  withSides({
    [side]: () => {
      throw new ProxyError('FILTER_FAILED')
    },
  })

async function run(chain: Chain, headers?: Record<string, string>) {
  const exchange = testExchange({}, headers)
  await chain(exchange)
  const { response } = exchange
  if (response === undefined) throw new Error('no response')
  const { bytes } = await readBody(response.body, Infinity)
  return { exchange, response, text: bytes.toString(), trace: response.headers.getAll('trace') }
}

describe('compose', () => {
  test('runs request sides in order and response sides in reverse', async () => {
    const { exchange, trace } = await run(compose([stamp('a'), stamp('b')], upstream()))
    expect(exchange.request.headers.getAll('trace')).toEqual(['a', 'b'])
    expect(trace).toEqual(['b', 'a'])
  })

  test('accepts a policy that returns next() without a response side', async () => {
    expect((await run(compose([(_, next) => next()], upstream()))).response.status).toBe(200)
  })

  test.each<[string, Policy[]]>([
    ['with two sides', [sides('a'), sides('b'), sides('c')]],
    ['with asynchronous sides', [sides('a', () => Promise.resolve()), sides('b', () => Promise.resolve()), sides('c')]],
    ['around plain middleware', [sides('a'), stamp('b'), sides('c')]],
    ['within plain middleware', [stamp('a'), sides('b', () => Promise.resolve()), stamp('c')]],
  ])('keeps the order of policies %s', async (_, policies) => {
    for (const end of [upstream(), async (exchange: Exchange) => upstream()(exchange)]) {
      const { exchange, trace } = await run(compose(policies, end))
      expect([exchange.request.headers.getAll('trace'), trace]).toEqual([
        ['a', 'b', 'c'],
        ['c', 'b', 'a'],
      ])
    }
  })

  test('creates no promise if all sides are synchronous', () => {
    const exchange = testExchange()
    expect(compose([sides('a'), sides('b')], upstream())(exchange)).toBeUndefined()
    expect(exchange.response?.headers.getAll('trace')).toEqual(['b', 'a'])
  })

  test.each<[string, Policy[], string[]]>([
    ['a request side', [sides('a'), refusing('request'), sides('b')], ['a']],
    ['an asynchronous request side', [sides('a'), sides('b', () => Promise.reject(new ProxyError('FILTER_FAILED'))), sides('c')], ['a']],
    ['a request side within a middleware', [sides('a'), stamp('b'), refusing('request'), sides('c')], ['b', 'a']],
    ['a response side', [sides('a'), refusing('response'), sides('b')], ['a']],
  ])('an error of %s is passed to the response sides of reached policies', async (_, policies, expected) => {
    const { exchange, response, trace } = await run(compose(policies, upstream()))
    expect([response.status, exchange.error?.code, trace]).toEqual([500, 'FILTER_FAILED', expected])
  })

  test('an error of the terminal is passed to sides and plain middleware', async () => {
    const { response, trace } = await run(compose([sides('a'), stamp('b'), sides('c')], () => Promise.reject(new ProxyError('NO_HEALTHY_BACKENDS'))))
    expect([response.status, trace]).toEqual([503, ['c', 'b', 'a']])
  })

  test('an empty chain runs the terminal', async () => {
    expect((await run(compose([], upstream()))).response.status).toBe(200)
  })

  const failures: [string, Chain][] = [
    ['the terminal of a chain', compose([stamp('a')], () => Promise.reject(new ProxyError('NO_HEALTHY_BACKENDS')))],
    ['the terminal alone', compose([], () => Promise.reject(new ProxyError('NO_HEALTHY_BACKENDS')))],
    [
      'the terminal alone, at once',
      compose([], () => {
        throw new ProxyError('NO_HEALTHY_BACKENDS')
      }),
    ],
    [
      'a policy',
      compose(
        [
          stamp('a'),
          async () => {
            throw new ProxyError('NO_HEALTHY_BACKENDS')
          },
        ],
        upstream(),
      ),
    ],
    [
      'a policy, before it returned a promise',
      compose(
        [
          stamp('a'),
          () => {
            throw new ProxyError('NO_HEALTHY_BACKENDS')
          },
        ],
        upstream(),
      ),
    ],
  ]
  test.each(failures)('an error of %s becomes its response', async (_, chain) => {
    const { exchange, response, text } = await run(chain)
    expect([response.status, text, exchange.error?.code]).toEqual([503, 'no healthy backends', 'NO_HEALTHY_BACKENDS'])
  })

  test('reached policies see the error, and the others never run', async () => {
    const deny: Policy = async () => {
      throw new ProxyError('FILTER_FAILED')
    }
    const { trace } = await run(compose([stamp('a'), deny, stamp('b')], upstream()))
    expect(trace).toEqual(['a'])
  })

  test.each([
    ['JWT', '16'],
    ['BASIC', '16'],
    ['AUTHORIZATION', '7'],
    ['DESTINATION_DENIED', '7'],
    ['ROUTE_NOT_FOUND', '12'],
    ['RATE_LIMIT', '8'],
    ['BUDGET', '8'],
    ['BODY_TOO_LARGE', '8'],
    ['EXT_AUTH_BODY', '8'],
    ['HEADERS_TOO_LARGE', '8'],
    ['REQUEST_TIMEOUT', '4'],
    ['UPSTREAM_TIMEOUT', '4'],
    ['PLUGIN_TIMEOUT', '4'],
    ['CLIENT_TIMEOUT', '4'],
    ['UPSTREAM_FAILED', '14'],
    ['HELD_BYTES', '14'],
    ['CONNECTION_LIMIT', '14'],
    ['BACKEND_TOKEN', '14'],
    ['CLIENT_CLOSED', '1'],
    ['INVALID_REQUEST', '13'],
    ['INTERNAL', '2'],
  ] as const)('gRPC clients receive %s as grpc-status %s', async (code, status) => {
    const { response } = await run(
      compose([], () => Promise.reject(new ProxyError(code))),
      { 'content-type': 'application/grpc' },
    )
    expect([response.status, response.headers.get('grpc-status')]).toEqual([200, status])
  })

  test.each([
    [200, undefined, '2'],
    [400, undefined, '13'],
    [401, undefined, '16'],
    [403, undefined, '7'],
    [404, undefined, '12'],
    [429, undefined, '14'],
    [502, undefined, '14'],
    [503, undefined, '14'],
    [504, undefined, '14'],
    [418, undefined, '2'],
    [200, 'client', '1'],
    [200, 'timeout', '4'],
    [200, 'upstream', '13'],
    [200, 'shutdown', '14'],
  ] as const)('a response %d to a gRPC call, cut by %s, without grpc-status counts as %s', (status, cutBy, expected) => {
    expect(missingGrpcStatus({ cutBy, response: { status, headers: new HeaderList(), body: undefined, upgraded: undefined } })).toBe(expected)
  })

  test('gRPC clients receive the error as grpc-status', async () => {
    const chain = compose([], () => Promise.reject(new ProxyError('NO_HEALTHY_BACKENDS')))
    const { response, exchange } = await run(chain, { 'content-type': 'application/grpc' })
    expect([response.status, response.headers.get('grpc-status'), exchange.grpcStatus]).toEqual([200, '14', '14'])
  })

  test.each<[ProxyError, string]>([
    [new ProxyError('UPGRADE_FAILED', { detail: 'why' }), 'request upgrade failed, why'],
    [new ProxyError('UPSTREAM_FAILED', { detail: 'why' }), 'upstream call failed: why'],
    [new ProxyError('UPSTREAM_FAILED'), 'upstream call failed'],
    [new ProxyError('NO_HEALTHY_BACKENDS', { detail: 'kept inside' }), 'no healthy backends'],
  ])('error details are formatted as in the error table: %s', async (error, text) => {
    expect((await run(compose([], () => Promise.reject(error)))).text).toBe(text)
  })

  test('what fails because the client disconnected is no failure of the upstream', async () => {
    const failing = (prepare: (exchange: Exchange) => void) =>
      run(
        compose([], (exchange) => {
          prepare(exchange)
          throw new ProxyError('UPSTREAM_FAILED', { detail: 'cancelled' })
        }),
      )
    const { exchange, response } = await failing((lost) => {
      lost.cutBy = 'client'
      lost.abort(new Error('client closed the connection'))
    })
    expect([response.status, exchange.error?.code, exchange.error?.row.reason]).toEqual([499, 'CLIENT_CLOSED', 'ClientClosed'])
    // An invalid request aborts, too, but its client is there.
    const invalid = await failing((aborted) => aborted.abort(new Error('invalid chunk')))
    expect([invalid.response.status, invalid.exchange.error?.code]).toEqual([503, 'UPSTREAM_FAILED'])
  })

  test('unknown errors become INTERNAL without revealing their text', async () => {
    const { text, exchange } = await run(compose([], () => Promise.reject(new Error('secret'))))
    expect(text).toBe('internal error')
    expect(exchange.error?.cause).toEqual(new Error('secret'))
  })

  test.each<[string, Policy]>([
    [
      'calls next() twice',
      async (_, next) => {
        await next()
        await next()
      },
    ],
    ['neither responds nor calls next()', async () => {}],
  ])('a policy that %s causes an internal error', async (_, policy) => {
    const { exchange, response } = await run(compose([policy], upstream()))
    expect([response.status, exchange.error?.code]).toEqual([500, 'INTERNAL'])
  })

  test.each<[string, Policy, string, Record<string, string>]>([
    ['text', async (c) => c.text('no', 403, { 'x-a': '1' }), 'no', { 'content-type': 'text/plain; charset=UTF-8', 'content-length': '2', 'x-a': '1' }],
    ['json', async (c) => c.json({ a: 1 }, 403), '{"a":1}', { 'content-type': 'application/json', 'content-length': '7' }],
    ['bytes', async (c) => c.body(new Uint8Array([65]), 403), 'A', { 'content-length': '1' }],
    ['nothing', async (c) => c.body(null, 403), '', { 'content-length': '0' }],
    ['a foreign Response', async () => new Response('yes', { status: 403, headers: { 'set-cookie': 'a=b' } }), 'yes', { 'set-cookie': 'a=b' }],
  ])('a policy may respond with %s itself', async (_, policy, body, headers) => {
    let isForwarded = false
    const chain = compose([stamp('outer'), policy], () => {
      isForwarded = true
    })
    const { exchange, response, text, trace } = await run(chain)
    expect({ status: response.status, text, trace, isForwarded, isLocal: exchange.isLocalAnswer }).toEqual({
      status: 403,
      text: body,
      trace: ['outer'],
      isForwarded: false,
      isLocal: true,
    })
    expect(Object.fromEntries(response.headers)).toMatchObject(headers)
  })

  test('a 204 response of a policy has no content-length', async () => {
    const { response } = await run(compose([async (c) => c.body(null, 204)], upstream()))
    expect(response.headers.has('content-length')).toBe(false)
  })

  test('a policy may respond with a redirect', async () => {
    const { response } = await run(compose([async (c) => c.redirect('https://a.com/', 301)], upstream()))
    expect([response.status, response.headers.get('location')]).toEqual([301, 'https://a.com/'])
  })

  test('a replaced response is cancelled', async () => {
    const body = new BufferBody('left alone')
    let isCancelled = false
    body.cancel = () => {
      isCancelled = true
    }
    const policy: Policy = async (c, next) => {
      await next()
      return c.text('instead', 200)
    }
    expect((await run(compose([policy], upstream(body)))).text).toBe('instead')
    expect(isCancelled).toBe(true)
  })

  test('a streamed response of a policy obeys pause and cancel', async () => {
    let pulled = 0
    let isCancelled = false
    const stream = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array([++pulled])),
        cancel: () => {
          isCancelled = true
        },
      })
    const exchange = testExchange()
    await compose([async () => new Response(stream())], upstream())(exchange)
    const body = exchange.response?.body
    const received: number[] = []
    body?.start({
      onData: (chunk) => {
        received.push(chunk[0] ?? 0)
        if (received.length === 2) body.pause()
      },
      onEnd: () => {},
      onError: () => {},
    })
    await until(() => received.length >= 2)
    await letArrive()
    expect(received).toEqual([1, 2])
    body?.cancel()
    await until(() => isCancelled)
  })
})
