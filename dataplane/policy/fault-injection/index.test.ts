import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { FaultInjection } from '#gen/config/types.ts'
import { logFieldOf } from '../../observe/telemetry/access-log/fields.ts'
import { createRegistry } from '../../observe/telemetry/metrics/registry.ts'
import { reasonOf } from '../../observe/telemetry/outcome.ts'
import { compose } from '../../request/exchange/compose.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { compileFaultInjection } from './index.ts'

/** Starts a request; `random` are the values of the choices, delay first. */
function start(section: FaultInjection, { random = [0, 0], grpc = false, timeoutMs }: { random?: number[]; grpc?: boolean; timeoutMs?: number } = {}) {
  const registry = createRegistry()
  let calls = 0
  const policy = compileFaultInjection(section, { registry }, () => random.shift() ?? 0)
  const request = testRequest({ headers: HeaderList.from(grpc ? [['content-type', 'application/grpc']] : []) })
  const exchange = new Exchange(testConnection, request, performance.now())
  if (timeoutMs !== undefined) exchange.deadlineAtMs = performance.now() + timeoutMs
  const done = compose([policy], ({ request: { body } }) => {
    calls++
    body?.cancel()
    exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  })(exchange)
  return {
    exchange,
    done,
    calls: () => calls,
    status: () => exchange.response?.status,
    grpcStatus: () => exchange.response?.headers.get('grpc-status'),
    fault: () => logFieldOf(exchange, 'proxy.fault'),
    metrics: () =>
      registry
        .expose('text')
        .toArray()
        .join('')
        .split('\n')
        .filter((line) => line.startsWith('proxy_faults_injected_total{'))
        .map((line) => line.replace(/\{kind="(\w+)".*\}/, ' $1')),
  }
}

describe('an abort', () => {
  test.each<[FaultInjection['abort'], boolean, number, string | undefined]>([
    [{}, false, 503, undefined],
    [{ status: 418 }, false, 418, undefined],
    [{ status: 429 }, true, 200, '8'],
    [{ grpcStatus: 5 }, true, 200, '5'],
    [{ grpcStatus: 5 }, false, 503, undefined],
    [{ status: 500, grpcStatus: 16 }, true, 200, '16'],
  ])('of %j, gRPC %j, responds %d with grpc-status %j, and the upstream is not called', (abort, grpc, status, grpcStatus) => {
    const run = start({ abort: { ...abort } }, { grpc })
    expect([run.status(), run.grpcStatus(), run.calls()]).toEqual([status, grpcStatus, 0])
    expect([reasonOf(run.exchange), run.fault(), run.metrics()]).toEqual(['FaultInjection', 'abort', ['proxy_faults_injected_total abort 1']])
  })

  test('of a 401 has a challenge, as each 401', () => {
    expect(start({ abort: { status: 401 } }).exchange.response?.headers.get('www-authenticate')).toBe('Bearer')
  })

  test.each([
    [{ percent: 10 }, 0.099, 503],
    [{ percent: 10 }, 0.1, 200],
    [{ percent: 0 }, 0, 200],
    [{ percent: 100 }, 0.999, 503],
    [{ fraction: { numerator: 1, denominator: 1000 } }, 0.0009, 503],
    [{ fraction: { numerator: 1, denominator: 1000 } }, 0.001, 200],
    [{ fraction: { numerator: 5 } }, 0.049, 503],
    [{ fraction: { numerator: 5 } }, 0.05, 200],
  ])('of a share %j with the random number %d gives %d', (share, random, status) => {
    const run = start({ abort: { ...share } }, { random: [0, random] })
    expect([run.status(), run.fault()]).toEqual([status, status === 200 ? undefined : 'abort'])
  })
})

describe('a delay', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  test('of a share of the requests passes before the upstream is called', async () => {
    const run = start({ delay: { duration: '2s', percent: 50 } }, { random: [0.49, 0] })
    jest.advanceTimersByTime(1999)
    expect(run.calls()).toBe(0)
    jest.advanceTimersByTime(1)
    await run.done
    expect([run.status(), run.calls(), run.fault(), run.metrics()]).toEqual([200, 1, 'delay', ['proxy_faults_injected_total delay 1']])
    const other = start({ delay: { duration: '2s', percent: 50 } }, { random: [0.5, 0] })
    expect([other.status(), other.done, other.fault()]).toEqual([200, undefined, undefined])
  })

  test('is chosen independently of the abort that follows it', async () => {
    const run = start({ delay: { duration: '1s' }, abort: { status: 500 } })
    expect(run.status()).toBeUndefined()
    jest.advanceTimersByTime(1000)
    await run.done
    expect([run.status(), run.calls(), run.fault()]).toEqual([500, 0, 'delay,abort'])
    expect(run.metrics()).toEqual(['proxy_faults_injected_total delay 1', 'proxy_faults_injected_total abort 1'])
  })

  test('ends at the timeout of the request with 504', async () => {
    const run = start({ delay: { duration: '1h' } }, { timeoutMs: 100 })
    jest.advanceTimersByTime(100)
    await run.done
    expect([run.status(), run.calls(), reasonOf(run.exchange)]).toEqual([504, 0, 'Timeout'])
  })

  test('ends when the client disconnects, and leaves no timer', async () => {
    const run = start({ delay: { duration: '1h' } })
    run.exchange.cutBy = 'client'
    run.exchange.abort(new Error('gone'))
    await run.done
    expect([run.status(), run.calls(), jest.getTimerCount()]).toEqual([499, 0, 0])
  })
})
