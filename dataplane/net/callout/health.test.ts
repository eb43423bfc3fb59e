import { describe, expect, test } from '@jest/globals'
import type { Health } from '#gen/config/types.ts'
import { compileHealth } from '../destination/health.ts'
import { forward } from '../../backend/forward/forward.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { testExchange } from '../../testing/exchange.ts'
import { defaultSettings, Destination } from '../upstream/destination.ts'
import type { RetryPlan } from '../../backend/forward/call-plan.ts'
import { UpstreamError } from '../upstream/types.ts'

type Answer = number | UpstreamError | { status?: number; headers?: string[]; trailers?: string[]; body?: ResponseHead['body'] }

function responseOf(answer: Exclude<Answer, UpstreamError>): ResponseHead {
  const {
    status = 200,
    headers = [],
    trailers,
    body = trailers && new BufferBody('x', new HeaderList(trailers)),
  } = typeof answer === 'number' ? { status: answer } : answer
  return { status, headers: new HeaderList(headers), body, upgraded: undefined }
}

/** A body that fails before its end. */
const brokenBody = (error: Error): NonNullable<ResponseHead['body']> => ({
  length: undefined,
  start: (sink) => sink.onError(error),
  pause: () => {},
  resume: () => {},
  cancel: () => {},
})

/** A destination with two endpoints: `bad` returns the answers in turn, `good` returns 200. Records which were called. */
function start(health: Health, answers: readonly Answer[], retry?: RetryPlan) {
  let nowMs = 0
  const called: string[] = []
  const left = [...answers]
  // Always picks `bad` while it is available, whatever its score.
  const destination = new Destination(
    'ns/svc:80',
    {
      endpoints: ['bad', 'good'].map((address) => ({ address, port: 80 })),
      appProtocol: undefined,
      settings: { ...defaultSettings, health: compileHealth(health) },
      hostname: undefined,
      isHostRewritten: false,
      isDynamic: false,
      error: undefined,
    },
    (_, { host }) => ({
      size: 0,
      close: () => {},
      call: () => {
        called.push(host)
        const answer = host === 'bad' ? (left.shift() ?? 200) : 200
        return { response: answer instanceof UpstreamError ? Promise.reject(answer) : Promise.resolve(responseOf(answer)), cancel: () => {} }
      },
    }),
    { random: () => 0, nowMs: () => nowMs },
  )
  const backend = { destination, weight: 1, requestHeaders: [], responseHeaders: [], redirect: undefined, mirrors: [] }
  const plan = { backends: [backend], pick: () => backend, mirrors: [], backendRequestMs: undefined, retry, random: () => 0 }
  const ask = async (headers: Record<string, string> = {}): Promise<void> => {
    const exchange = testExchange({}, headers)
    exchange.picked = backend
    await forward(exchange, plan).catch(() => undefined)
    await readBody(exchange.response?.body, 10_000_000).catch(() => undefined)
  }
  return { ask, called, pass: (seconds: number) => (nowMs += seconds * 1000) }
}

const grpc = { 'content-type': 'application/grpc' }
const once: Health = { eviction: {} }
const when = (unhealthyCondition: string): Health => ({ unhealthyCondition, eviction: {} })

describe('the health of an endpoint', () => {
  test.each<[string, Health, Answer, Record<string, string>, boolean]>([
    ['5xx', once, 500, {}, true],
    ['not 4xx', once, 429, {}, false],
    ['a refused connection', once, new UpstreamError('connect', 'refused'), {}, true],
    ['a reset', once, new UpstreamError('reset', 'closed'), {}, true],
    ['a connection that cannot be made in time', once, new UpstreamError('connect-timeout', 'late'), {}, true],
    ['not a client that left', once, new UpstreamError('cancelled', 'client is gone'), {}, false],
    ['grpc-status in the head', once, { headers: ['grpc-status', '14'] }, grpc, true],
    ['grpc-status in the trailers', once, { trailers: ['grpc-status', '2'] }, grpc, true],
    ['not grpc-status 0 in the trailers', once, { trailers: ['grpc-status', '0'] }, grpc, false],
    ['not grpc-status 0 in the head', once, { headers: ['grpc-status', '0'] }, grpc, false],
    ['a gRPC call that breaks off', once, { body: brokenBody(new UpstreamError('reset', 'closed')) }, grpc, true],
    ['not a gRPC call that the client broke off', once, { body: brokenBody(new UpstreamError('cancelled', 'gone')) }, grpc, false],
    ['a body that says so', when('json(response.body).ok == false'), { body: new BufferBody('{"ok":false}') }, {}, true],
    ['not a body that says otherwise', when('json(response.body).ok == false'), { body: new BufferBody('{"ok":true}') }, {}, false],
    ['no body where one is asked for', when('size(response.body) == 0'), 200, {}, true],
    ['not one too long to be seen', when('size(response.body) > 1'), { body: new BufferBody('x'.repeat(2_097_153)) }, {}, false],
    ['the first bytes of a long one', when('string(response.bodyPrefix).startsWith("xx")'), { body: new BufferBody('x'.repeat(2_097_153)) }, {}, true],
    ['a body that breaks off', when('response.body == b"x"'), { body: brokenBody(new UpstreamError('reset', 'closed')) }, {}, true],
    ['not a body that the client broke off', when('response.body == b""'), { body: brokenBody(new UpstreamError('cancelled', 'gone')) }, {}, false],
    ['trailers and a body of gRPC', when('response.body == b"x" && response.grpcStatus == 14'), { trailers: ['grpc-status', '14'] }, grpc, true],
    ['5xx of gRPC', once, { status: 503, trailers: [] }, grpc, true],
    ['not grpc-status for other callers', once, { headers: ['grpc-status', '14'] }, {}, false],
    ['what a condition says', when('response.code == 429'), 429, {}, true],
    ['what a condition says of headers', when('response.headers["x-overload"] == "1"'), { headers: ['x-overload', '1'] }, {}, true],
    ['a condition replaces the default', when('response.code == 429'), 500, {}, false],
    ['a condition about grpc-status in the trailers', when('response.grpcStatus == 8'), { trailers: ['grpc-status', '8'] }, grpc, true],
    ['a condition about another grpc-status', when('response.grpcStatus == 8'), { trailers: ['grpc-status', '2'] }, grpc, false],
    ['a condition that fails is not met', when('response.headers["x"].size() > 1'), 500, {}, false],
    ['a refused connection, whatever the condition says', when('false'), new UpstreamError('connect', 'refused'), {}, true],
    ['nothing without an eviction section', { unhealthyCondition: 'true' }, 500, {}, false],
  ])('unhealthy responses: %s', async (_, health, answer, headers, isEvicted) => {
    const { ask, called } = start(health, [answer])
    await ask(headers)
    await ask(headers)
    expect(called).toEqual(['bad', isEvicted ? 'good' : 'bad'])
  })

  test('row 75: consecutiveFailures 2 evicts after 2, back after 3 s, then 6 s', async () => {
    const { ask, called, pass } = start({ eviction: { duration: '3s', consecutiveFailures: 2, restoreHealth: 100 } }, [500, 500, 500])
    const during = async (seconds: number): Promise<string> => {
      called.length = 0
      for (let i = 0; i < 3; i++) await ask()
      pass(seconds)
      return called.join()
    }
    expect(await during(2.9)).toBe('bad,bad,good')
    expect(await during(0.1)).toBe('good,good,good')
    // Failures before an eviction count on.
    expect(await during(5.9)).toBe('bad,good,good')
    expect(await during(0.1)).toBe('good,good,good')
    expect(await during(0)).toBe('bad,bad,bad')
  })

  test('a failed attempt is recorded before the retry', async () => {
    const { ask, called } = start(once, [503, 200], { codes: new Set([503]), attempts: 1, backoffMs: 0 })
    await ask()
    await ask()
    expect(called).toEqual(['bad', 'good', 'good'])
  })
})
