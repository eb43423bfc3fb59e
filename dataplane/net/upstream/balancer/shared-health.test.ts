import { describe, expect, test } from '@jest/globals'
import { allocateCells, SharedCells } from '../../../runtime/shared-cells.ts'
import { Balancer, type EvictionEvent } from './balancer.ts'
import type { Eviction } from './health.ts'
import { SharedHealthTable } from './shared-health.ts'

const threeFailures: Eviction = { durationMs: 1000, restoreHealth: 0.5, consecutiveFailures: 3, healthThreshold: undefined }
const [bad, good] = ['10.0.0.1:80', '10.0.0.2:80']

/** Balancers of one destination in several workers. */
function start(workers: number) {
  let nowMs = 5000
  const memory = allocateCells(16)
  const epoch = SharedHealthTable.allocateEpoch()
  const events: EvictionEvent[] = []
  const balancers = Array.from({ length: workers }, () => {
    const table = new SharedHealthTable(new SharedCells(memory), epoch)
    const balancer = new Balancer({ nowMs: () => nowMs, onEviction: (event) => events.push(event), shared: table })
    balancer.update([bad, good].map((label) => ({ address: label.split(':')[0] ?? '', port: 80 })))
    return balancer
  })
  const record = (worker: number, label: string, isHealthy: boolean, eviction = threeFailures): void => {
    const endpoint = balancers[worker]?.find(label)
    if (endpoint !== undefined) balancers[worker]?.record(endpoint, isHealthy, 0.01, eviction, isHealthy ? 200 : 503)
  }
  /** The labels that a worker picks. */
  const picks = (worker: number): string[] => [...new Set(Array.from({ length: 40 }, () => balancers[worker]?.pick()?.label ?? ''))].sort()
  return { balancers, record, picks, events, pass: (ms: number) => void (nowMs += ms) }
}

describe('an endpoint that several workers use', () => {
  test('is evicted by failures in a row that different workers saw, in all of them, and reported once', () => {
    const { record, picks, events, balancers } = start(3)
    record(0, bad, false)
    record(1, bad, false)
    expect(picks(2)).toEqual([bad, good])
    record(2, bad, false)
    expect([picks(0), picks(1), picks(2)]).toEqual([[good], [good], [good]])
    expect(events.map(({ kind, endpoint, durationMs }) => [kind, endpoint, Math.round(durationMs)])).toEqual([['evicted', bad, 1000]])
    expect(balancers.map((balancer) => balancer.find(bad)?.evicted?.status)).toEqual([503, 503, 503])
  })

  test('is evicted by the share of unhealthy responses that different workers saw', () => {
    const rate = { ...threeFailures, consecutiveFailures: undefined, failureRate: { share: 0.5, intervalMs: 10_000, minRequests: 4 } }
    const { record, picks, balancers, pass } = start(3)
    for (const [worker, isHealthy] of [true, false, true].entries()) record(worker, bad, isHealthy, rate)
    expect(picks(0)).toEqual([bad, good])
    record(0, bad, false, rate)
    expect([picks(0), picks(1), picks(2)]).toEqual([[good], [good], [good]])
    expect(balancers.map((balancer) => balancer.find(bad)?.evicted)).toMatchObject([0, 1, 2].map(() => ({ status: 503, health: 0.5 })))
    pass(1001)
    expect([picks(1), picks(2)]).toEqual([
      [bad, good],
      [bad, good],
    ])
    for (const isHealthy of [false, false, false]) record(1, bad, isHealthy, rate)
    expect(picks(2)).toEqual([bad, good])
  })

  test('is not evicted if another worker had a success in between', () => {
    const { record, picks } = start(2)
    for (const isHealthy of [false, false]) record(0, bad, isHealthy)
    record(1, bad, true)
    record(0, bad, false)
    expect(picks(1)).toEqual([bad, good])
  })

  test('returns in all workers when its time is over, with one report, and is evicted for longer the next time', () => {
    const { record, picks, events, pass, balancers } = start(2)
    for (const worker of [0, 1, 0]) record(worker, bad, false)
    pass(999)
    expect(picks(1)).toEqual([good])
    pass(2)
    expect([picks(1), picks(0)]).toEqual([
      [bad, good],
      [bad, good],
    ])
    expect(balancers[0]?.find(bad)?.health).toBeCloseTo(0.5)
    record(1, bad, false)
    expect(events.map(({ kind, durationMs }) => [kind, Math.round(durationMs)])).toEqual([
      ['evicted', 1000],
      ['back', 0],
      ['evicted', 2000],
    ])
  })

  test('is new when it returns to the config', () => {
    const { record, picks, balancers, events } = start(2)
    for (const worker of [0, 1, 0]) record(worker, bad, false)
    expect(picks(1)).toEqual([good])
    for (const balancer of balancers) balancer.update([{ address: '10.0.0.2', port: 80 }])
    for (const balancer of balancers) balancer.update([bad, good].map((label) => ({ address: label.split(':')[0] ?? '', port: 80 })))
    expect([picks(0), picks(1)]).toEqual([
      [bad, good],
      [bad, good],
    ])
    record(0, bad, false)
    record(1, bad, false)
    expect(picks(0)).toEqual([bad, good])
    expect(events.map(({ kind }) => kind)).toEqual(['evicted', 'back'])
  })
})
