import { describe, expect, test } from '@jest/globals'
import { mergeBatches, mergeEndpoint, mergeMcpSessions, mergeOverviews, mergeSeries, mergeSpend, mergeVersions, quantile } from './merge.ts'
import type { EndpointNode, Overview, Problem } from './overview.ts'
import type { RequestRecord } from './requests.ts'

test('quantiles are interpolated within a bucket', () => {
  expect(quantile([1, 2], [10, 10, 0], 0.5)).toBe(1000)
  expect(quantile([1, 2], [10, 10, 0], 0.75)).toBe(1500)
  expect(quantile([1, 2], [0, 0, 4], 0.5)).toBe(2000)
  expect(quantile([1, 2], [0, 0, 0], 0.5)).toBeNull()
})

const endpoint: EndpointNode = {
  address: 'a:1',
  health: 1,
  evictedForMs: null,
  evictedBecause: null,
  failedCheck: null,
  latencyMs: 2,
  pending: 1,
  draining: false,
  zone: null,
}

test('an endpoint of two pods has the worse health and all requests in flight', () => {
  expect(mergeEndpoint(endpoint, { ...endpoint, health: 0.5, evictedForMs: 100, latencyMs: null, pending: 3, zone: 'z' })).toEqual({
    ...endpoint,
    health: 0.5,
    evictedForMs: 100,
    pending: 4,
    zone: 'z',
  })
})

test('a session of two pods has what each of them knows, the most recently used first', () => {
  const session = { id: 'a', backend: 'ns/b', kind: 'session' as const, idleMs: 9, open: 1, isBound: false, targets: [], pods: [] }
  const unknown = { revision: null, client: null, ageMs: null }
  const known = { revision: '2025-06-18', client: { name: 'c', version: '1' }, ageMs: 50 }
  const shared = { ...session, ...known, id: null, kind: 'shared' as const, idleMs: 5 }
  const merged = mergeMcpSessions(
    [
      { name: 'x', value: { timeMs: 1, total: 302, sessions: [{ ...session, ...known }, shared] } },
      { name: 'y', value: { timeMs: 1, total: 2, sessions: [{ ...session, ...unknown, idleMs: 3 }, shared] } },
    ],
    7,
  )
  expect(merged).toEqual({
    timeMs: 7,
    total: 303,
    sessions: [
      { ...session, ...known, idleMs: 3, open: 2, pods: ['y', 'x'] },
      { ...shared, pods: ['x'] },
      { ...shared, pods: ['y'] },
    ],
  })
})

test('the spend of a database that several processes share counts once', () => {
  const sums = { errors: 0, inputTokens: 2, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, cost: 1, unpriced: 0, seconds: 1 }
  const report = (requests: number, store?: string) => ({
    by: ['model'],
    sinceMs: 0,
    untilMs: 1,
    isCut: false,
    rows: [{ group: ['m'], requests, ...sums }],
    ...(store !== undefined && { store }),
  })
  const { rows } = mergeSpend([report(1, 'a'), report(1, 'a'), report(10, 'b'), report(100), report(100)])
  expect(rows).toMatchObject([{ group: ['m'], requests: 211, cost: 4 }])
})

test('histories are added from their ends', () => {
  const point = (requests: number) => ({ requests, clientErrors: 1, serverErrors: 0, counts: [requests, 0], p50Ms: null, p95Ms: null })
  const series = (...requests: number[]) => ({ key: 'total', endMs: requests.length, stepSeconds: 10, bounds: [1], points: requests.map(point) })
  const merged = mergeSeries([series(1, 2, 3), series(10)], 'total')
  expect(merged.points.map(({ requests }) => requests)).toEqual([1, 2, 13])
  expect(merged.endMs).toBe(3)
})

describe('the overview of two pods', () => {
  const problem = (message: string, severity: Problem['severity'] = 'error'): Problem => ({ severity, code: 'PX4010', message, object: 'backend b', pod: null })
  const overview = (more: Partial<Overview>): Overview => ({
    timeMs: 1,
    replicas: [{ name: 'proxy', configVersion: 1, version: '1', startedAtMs: 1, workers: 1 }],
    gateways: [{ key: 'ns/gw' }],
    listeners: [],
    routes: [],
    backends: [{ key: 'b', kind: 'service', endpoints: [endpoint], models: [] }],
    ledger: true,
    problems: [],
    stats: { timeMs: 1, windowSeconds: 1, bounds: [], rows: [] },
    ...more,
  })

  test('holds each node once, and the pods as replicas', () => {
    const other = overview({ backends: [{ key: 'b', kind: 'service', endpoints: [endpoint, { ...endpoint, address: 'c:1' }], models: [] }] })
    const merged = mergeOverviews(
      [
        { name: 'one', value: overview({}) },
        { name: 'two', value: other },
      ],
      7,
    )
    expect(merged).toMatchObject({ timeMs: 7, gateways: [{ key: 'ns/gw' }], replicas: [{ name: 'one' }, { name: 'two' }] })
    expect(merged.backends).toMatchObject([{ endpoints: [{ address: 'a:1', pending: 2 }, { address: 'c:1' }] }])
  })

  test('names the pods of a problem that not all have', () => {
    const [one, two] = [problem('x is ejected for 3 s more'), problem('x is ejected for 4 s more')]
    const merged = mergeOverviews(
      [
        { name: 'one', value: overview({ problems: [problem('w', 'warning'), one] }) },
        { name: 'two', value: overview({ problems: [two] }) },
      ],
      7,
    )
    expect(merged.problems).toEqual([one, { ...problem('w', 'warning'), pod: 'one' }])
  })
})

test('requests of several pods are thinned evenly', () => {
  const records = Array.from({ length: 10 }, (_, index) => ({ id: String(index), timeMs: index }) as RequestRecord)
  const merged = mergeBatches([{ name: 'p', value: { records, seen: 10, skipped: 1 } }], 5)
  expect([merged.records.map(({ timeMs }) => timeMs), merged.seen, merged.skipped]).toEqual([[0, 2, 4, 6, 8], 10, 6])
  expect(merged.records[0]?.pod).toBe('p')
})

test('versions of several pods are sorted by time and named', () => {
  const version = (appliedAtMs: number) => ({ version: 1, appliedAtMs, counts: { added: 0, changed: 0, removed: 0 }, changes: [], pod: null })
  const merged = mergeVersions([
    { name: 'a', value: { current: 1, versions: [version(1)], rejections: [] } },
    { name: 'b', value: { current: 3, versions: [version(2)], rejections: [] } },
  ])
  expect([merged.current, merged.versions.map(({ pod }) => pod)]).toEqual([3, ['b', 'a']])
})
