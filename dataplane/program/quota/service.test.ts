import { createServer, type AddressInfo } from 'node:net'
import { create } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ServerDuplexStream } from '@grpc/grpc-js'
import {
  RateLimitQuotaResponseSchema,
  RateLimitQuotaService,
  type RateLimitQuotaResponse,
  type RateLimitQuotaUsageReports,
} from '#gen/proto/envoy/service/rate_limit_quota/v3/rlqs_pb.js'
import { RateLimitStrategy_BlanketRule as Blanket, type RateLimitStrategySchema } from '#gen/proto/envoy/type/v3/ratelimit_strategy_pb.js'
import { RateLimitUnit } from '#gen/proto/envoy/type/v3/ratelimit_unit_pb.js'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { until } from '../../../e2e/harness/wait.ts'
import { bidi, destinationTo, startGrpcService } from '../../net/callout/testing.ts'
import { isAssigned, QUOTA_WORDS } from '../../policy/budgets/quota.ts'
import type { QuotaMemory } from '../../runtime/quotas.ts'
import { readActions, toName } from './assignment.ts'
import { QuotaBuckets } from './buckets.ts'
import { QuotaServiceStream } from './service.ts'

type Call = ServerDuplexStream<RateLimitQuotaUsageReports, RateLimitQuotaResponse>
type Action = NonNullable<MessageInitShape<typeof RateLimitQuotaResponseSchema>['bucketAction']>[number]
type Bucket = Readonly<Record<string, string>>
type Strategy = NonNullable<MessageInitShape<typeof RateLimitStrategySchema>['strategy']>

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})

/** A server of grpc-js that does what a test says. */
class Server {
  readonly calls: Call[] = []
  readonly reports: { domain: string; bucket: Bucket; allowed: number; denied: number; elapsedMs: number }[] = []
  port = 0
  onReport: (call: Call, buckets: readonly Bucket[]) => void = () => undefined

  async start(): Promise<this> {
    const service = await startGrpcService([bidi(RateLimitQuotaService.method.streamRateLimitQuotas, ((call: Call) => this.#open(call)) as never)])
    open.push(() => service.close())
    this.port = service.port
    return this
  }

  #open(call: Call): void {
    this.calls.push(call)
    call.on('error', () => undefined)
    call.on('end', () => call.end())
    call.on('data', ({ domain, bucketQuotaUsages }: RateLimitQuotaUsageReports) => {
      for (const { bucketId, timeElapsed, numRequestsAllowed, numRequestsDenied } of bucketQuotaUsages)
        this.reports.push({
          domain,
          bucket: bucketId?.bucket ?? {},
          allowed: Number(numRequestsAllowed),
          denied: Number(numRequestsDenied),
          elapsedMs: Number(timeElapsed?.seconds) * 1000 + Number(timeElapsed?.nanos) / 1e6,
        })
      this.onReport(
        call,
        bucketQuotaUsages.map(({ bucketId }) => bucketId?.bucket ?? {}),
      )
    })
  }

  push(...bucketAction: Action[]): void {
    this.calls.at(-1)?.write(create(RateLimitQuotaResponseSchema, { bucketAction }))
  }
}

const assign = (bucket: Bucket, strategy: Strategy | undefined, seconds?: number): Action => ({
  bucketId: { bucket: { ...bucket } },
  bucketAction: {
    case: 'quotaAssignmentAction',
    value: {
      ...(seconds !== undefined && { assignmentTimeToLive: { seconds: BigInt(seconds), nanos: 0 } }),
      ...(strategy !== undefined && { rateLimitStrategy: { strategy } }),
    },
  },
})
const allowAll = (bucket: Bucket, seconds?: number): Action => assign(bucket, { case: 'blanketRule', value: Blanket.ALLOW_ALL }, seconds)
const abandon = (bucket: Bucket): Action => ({ bucketId: { bucket: { ...bucket } }, bucketAction: { case: 'abandonAction', value: {} } })

let nowMs = 0
let events: string[]
let ignored = 0
beforeEach(() => {
  nowMs = Date.parse('2026-11-23T10:00:00Z')
  events = []
  ignored = 0
})

function connect(
  port: number,
  intervalMs = 60_000,
): { buckets: QuotaBuckets; stream: QuotaServiceStream; ask(key: string, memory?: QuotaMemory): Promise<boolean> } {
  const destination = destinationTo(port)
  const service = { backendRef: { address: `127.0.0.1:${port}` }, domain: 'shop', intervalMs }
  const buckets: QuotaBuckets = new QuotaBuckets({ findMemory: () => undefined, onUrgent: () => stream.hurry(), epochMs: () => nowMs })
  const stream: QuotaServiceStream = new QuotaServiceStream({
    service,
    destination,
    buckets,
    onConnected: () => void events.push('connected'),
    onDisconnected: (cause) => void events.push(cause),
    onIgnored: (count) => void (ignored += count),
  })
  open.push(async () => {
    await stream.close()
    destination.close()
  })
  return { buckets, stream, ask: (key, memory = newMemory()) => buckets.assign({ service, id: { name: 'api', key }, counter: key }, () => memory) }
}

/** What a promise resolves with, or `waits` if it needs a timer or input. */
const atOnce = <T>(promise: Promise<T>): Promise<T | 'waits'> =>
  Promise.race([promise, new Promise<'waits'>((resolve) => void setImmediate(() => resolve('waits')))])
const newMemory = (): QuotaMemory => ({ words: new BigInt64Array(QUOTA_WORDS) })
/** Counts requests as the counter of a budget does. */
const use = ({ words }: QuotaMemory, allowed: number, denied = 0): void => {
  Atomics.add(words, 4, BigInt(allowed))
  Atomics.add(words, 5, BigInt(denied))
}

describe('a rate limit quota service', () => {
  test('is asked for a bucket once, and its assignment is in force', async () => {
    const server = await new Server().start()
    server.onReport = (call, buckets) => void call.write(create(RateLimitQuotaResponseSchema, { bucketAction: buckets.map((bucket) => allowAll(bucket)) }))
    const { ask, buckets } = connect(server.port)
    const memory = newMemory()
    expect(await Promise.all([ask('ann', memory), ask('ann', memory), ask('bob')])).toEqual([true, true, true])
    expect(isAssigned(memory, nowMs)).toBe(true)
    expect(buckets.size).toBe(2)
    // The second report of a bucket is that of the use before its assignment; `domain` is sent once.
    await until(() => server.reports.length === 4)
    expect(server.reports.map(({ domain, bucket }) => [domain, bucket['key']])).toEqual([
      ['shop', 'ann'],
      ['shop', 'bob'],
      ['', 'ann'],
      ['', 'bob'],
    ])
    expect(server.reports.every(({ elapsedMs }) => elapsedMs > 0)).toBe(true)
    expect([events, server.calls.length]).toEqual([['connected'], 1])
  })

  test('gets the use of each interval, also of buckets without requests until they were idle for a minute', async () => {
    const server = await new Server().start()
    server.onReport = (call, buckets) => void call.write(create(RateLimitQuotaResponseSchema, { bucketAction: buckets.map((bucket) => allowAll(bucket)) }))
    const { ask, buckets } = connect(server.port, 100)
    let intervals = 0
    const takeAll = buckets.takeAll.bind(buckets)
    buckets.takeAll = () => (intervals++, takeAll())
    const nextIntervals = async (): Promise<void> => {
      const last = intervals + 3
      await until(() => intervals >= last)
    }
    const memory = newMemory()
    await ask('ann', memory)
    use(memory, 7, 2)
    await until(() => server.reports.some(({ allowed, denied }) => allowed === 7 && denied === 2))
    const before = server.reports.length
    await until(() => server.reports.length > before + 1)
    expect(server.reports.slice(before).every(({ allowed, denied }) => allowed + denied === 0)).toBe(true)
    nowMs += 61_000
    await nextIntervals()
    const idle = server.reports.length
    await nextIntervals()
    expect(server.reports).toHaveLength(idle)
    use(memory, 1)
    await until(() => server.reports.at(-1)?.allowed === 1)
  })

  test('pushes assignments at any time, and abandons buckets', async () => {
    const server = await new Server().start()
    const { ask, buckets } = connect(server.port)
    const memory = newMemory()
    const asked = ask('ann', memory)
    await until(() => server.reports.length === 1)
    server.push(assign({ key: 'ann', name: 'api' }, { case: 'requestsPerTimeUnit', value: { requestsPerTimeUnit: 60n, timeUnit: RateLimitUnit.MINUTE } }, 5))
    expect(await asked).toBe(true)
    nowMs += 5_000
    expect(isAssigned(memory, nowMs)).toBe(false)
    server.push(allowAll({ name: 'api', key: 'ann' }))
    await until(() => isAssigned(memory, nowMs))
    server.push(abandon({ name: 'api', key: 'ann' }))
    await until(() => buckets.size === 0)
    expect(isAssigned(memory, nowMs)).toBe(false)
    const reported = server.reports.length
    const again = ask('ann', memory)
    await until(() => server.reports.length > reported)
    server.push(allowAll({ name: 'api', key: 'ann' }))
    expect(await again).toBe(true)
  })

  test('that sends buckets nobody uses, and strategies that do not exist, is not obeyed', async () => {
    const server = await new Server().start()
    const { ask } = connect(server.port)
    const memory = newMemory()
    const asked = ask('ann', memory)
    await until(() => server.reports.length === 1)
    const own = { name: 'api', key: 'ann' }
    server.push(
      allowAll({ name: 'other' }),
      abandon({}),
      {},
      { bucketId: { bucket: own } },
      assign(own, { case: 'requestsPerTimeUnit', value: { requestsPerTimeUnit: 5n, timeUnit: 77 as never } }),
      assign(own, { case: 'blanketRule', value: 9 as never }),
      assign(own, { case: 'tokenBucket', value: { maxTokens: 5 } }),
      allowAll(Object.fromEntries(Array.from({ length: 1000 }, (_, nth) => [`k${nth}`, 'v'.repeat(1000)]))),
    )
    await until(() => ignored === 8)
    expect(isAssigned(memory, nowMs)).toBe(false)
    server.push(allowAll(own))
    expect(await asked).toBe(true)
  })

  test('that never responds delays requests for a second, and later ones not at all', async () => {
    const server = await new Server().start()
    const { ask } = connect(server.port)
    const memory = newMemory()
    const startMs = performance.now()
    expect(await ask('ann', memory)).toBe(false)
    expect(performance.now() - startMs).toBeGreaterThan(900)
    nowMs += 1_001
    expect(await atOnce(ask('ann', memory))).toBe(false)
    await until(() => events.length > 0)
    expect(events).toEqual(['no response within 3000 ms'])
    // It may respond late.
    server.push(allowAll({ name: 'api', key: 'ann' }))
    await until(() => isAssigned(memory, nowMs))
    expect([events.at(-1), server.calls.length]).toEqual(['connected', 1])
  })

  test('that resets each stream is tried again with growing delays, and assignments stay', async () => {
    const server = await new Server().start()
    const times: number[] = []
    server.onReport = (call, [bucket = {}]) => {
      times.push(performance.now())
      if (times.length === 1) call.write(create(RateLimitQuotaResponseSchema, { bucketAction: [allowAll(bucket)] }))
      call.emit('error', Object.assign(new Error('go away'), { code: 14, details: 'go away' }))
    }
    const { ask } = connect(server.port)
    const memory = newMemory()
    expect(await ask('ann', memory)).toBe(true)
    await until(() => times.length >= 5)
    // Half of 100, 200, 400 and 800 ms at least.
    expect((times[4] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(750)
    expect(isAssigned(memory, nowMs)).toBe(true)
    expect(events.filter((event) => event === 'go away').length).toBeGreaterThanOrEqual(4)
  })

  test('that cannot be reached, or speaks another protocol, delays nobody for long', async () => {
    const garbage = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end('220 mail.example ESMTP\r\n')
    })
    await new Promise<void>((resolve) => void garbage.listen(0, '127.0.0.1', resolve))
    open.push(() => garbage.close())
    const { ask } = connect((garbage.address() as AddressInfo).port)
    expect(await Promise.all([ask('ann'), ask('bob')])).toEqual([false, false])
    await until(() => events.length > 0)
    // The state is known: nobody waits.
    expect(await atOnce(ask('eve'))).toBe(false)
  })

  test('gets the last use at the end', async () => {
    const server = await new Server().start()
    server.onReport = (call, buckets) => void call.write(create(RateLimitQuotaResponseSchema, { bucketAction: buckets.map((bucket) => allowAll(bucket)) }))
    const { ask, stream } = connect(server.port)
    const memory = newMemory()
    await ask('ann', memory)
    await until(() => server.reports.length === 2)
    use(memory, 3)
    await stream.close()
    await until(() => server.reports.length > 2)
    expect(server.reports.at(-1)?.allowed).toBe(3)
  })
})

describe('the buckets', () => {
  const options = { findMemory: () => undefined, onUrgent: () => undefined, epochMs: () => nowMs }
  const service = { backendRef: { address: 'quota.test:1' }, domain: 'shop', intervalMs: 1000 }

  test('are bounded: the one that was unused for the longest time is forgotten', () => {
    const buckets = new QuotaBuckets(options)
    const memory = newMemory()
    const ask = (key: string, own = newMemory()): void => void buckets.assign({ service, id: { key }, counter: key }, () => own)
    buckets.offline()
    ask('first', memory)
    buckets.apply([{ name: toName({ key: 'first' }), action: { strategy: 'allow', ttlMs: 1e9 } }])
    expect(isAssigned(memory, nowMs)).toBe(true)
    for (let nth = 0; nth < 20_000; nth++) ask(String(nth))
    expect(buckets.size).toBe(20_000)
    expect(isAssigned(memory, nowMs)).toBe(false)
  })

  test('are reported in parts, as services limit the length of a report', async () => {
    const buckets = new QuotaBuckets(options)
    buckets.offline()
    for (let nth = 0; nth < 1200; nth++) void buckets.assign({ service, id: { key: String(nth) }, counter: String(nth) }, newMemory)
    expect(buckets.takeDue()).toHaveLength(500)
    const lengths = []
    for await (const usages of buckets.takeAll()) lengths.push(usages.length)
    expect(lengths).toEqual([500, 500, 200])
  })

  test('get their assignment back if their memory was given to another counter', async () => {
    const buckets = new QuotaBuckets(options)
    let memory: QuotaMemory | undefined = newMemory()
    const bucket = { service, id: { key: 'ann' }, counter: 'ann' }
    const asked = buckets.assign(bucket, () => memory)
    buckets.apply([{ name: toName(bucket.id), action: { strategy: 'deny', ttlMs: 1e9 } }])
    expect(await asked).toBe(true)
    memory = newMemory()
    expect(await buckets.assign(bucket)).toBe(true)
    expect(isAssigned(memory, nowMs)).toBe(true)
    memory = undefined
    for await (const usages of buckets.takeAll()) expect(usages).toEqual([])
    expect(buckets.size).toBe(0)
  })
})

test('actions have the meaning that the protocol gives them', () => {
  const bucket = { b: '2', a: '1' }
  const read = (...bucketAction: Action[]) => readActions(create(RateLimitQuotaResponseSchema, { bucketAction })).actions.map(({ action }) => action)
  const strategyOf = (strategy: Strategy | undefined) => {
    const [action] = read(assign(bucket, strategy))
    return typeof action === 'object' ? action.strategy : action
  }
  expect(toName(bucket)).toBe(toName({ a: '1', b: '2' }))
  expect(read(allowAll(bucket), allowAll(bucket, 0), allowAll(bucket, 20), allowAll(bucket, -5), abandon(bucket))).toEqual([
    { strategy: 'allow', ttlMs: Infinity },
    { strategy: 'allow', ttlMs: 0 },
    { strategy: 'allow', ttlMs: 20_000 },
    { strategy: 'allow', ttlMs: 0 },
    'abandon',
  ])
  const perUnit = (requestsPerTimeUnit: bigint, timeUnit = RateLimitUnit.MINUTE) =>
    strategyOf({ case: 'requestsPerTimeUnit', value: { requestsPerTimeUnit, timeUnit } })
  expect(strategyOf(undefined)).toBe('allow')
  expect(strategyOf({ case: 'blanketRule', value: Blanket.DENY_ALL })).toBe('deny')
  expect(perUnit(100n)).toEqual({ size: 100, periodNs: 600_000_000n })
  expect(perUnit(0n)).toBe('deny')
  expect(perUnit(2n ** 64n - 1n)).toBe('allow')
  expect(perUnit(1n, RateLimitUnit.YEAR)).toEqual({ size: 1, periodNs: 365n * 86_400n * 1_000_000_000n })
  const bucketOf = (maxTokens: number, tokensPerFill: number | undefined, seconds: bigint) =>
    strategyOf({ case: 'tokenBucket', value: { maxTokens, ...(tokensPerFill !== undefined && { tokensPerFill }), fillInterval: { seconds, nanos: 0 } } })
  expect(bucketOf(10, 4, 2n)).toEqual({ size: 10, periodNs: 500_000_000n })
  expect(bucketOf(10, undefined, 2n)).toEqual({ size: 10, periodNs: 2_000_000_000n })
  expect(bucketOf(0, 4, 2n)).toBe('deny')
  expect(bucketOf(10, 0, 2n)).toEqual({ size: 10, periodNs: 2n ** 60n })
  expect(bucketOf(10, 1, 2n ** 60n)).toEqual({ size: 10, periodNs: 2n ** 60n })
  expect(bucketOf(10, 1, 0n)).toBeUndefined()
})
