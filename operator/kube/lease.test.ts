import { describe, expect, test } from '@jest/globals'
import { ApiError, type KubeConnection } from './connection.ts'
import { startElection, type Election } from './lease.ts'
import { createManualClock, type ManualClock } from '../serve/testing.ts'

interface StoredLease {
  readonly metadata: { readonly resourceVersion?: string }
  readonly spec: { readonly holderIdentity: string; readonly leaseTransitions: number; readonly leaseDurationSeconds: number; readonly renewTime: string }
}

/** One Lease behind compare-and-swap; each replica has a connection of its own that can be cut. */
function createLeaseStore() {
  let stored: StoredLease | undefined
  let version = 0
  const isCut = new Set<string>()
  const connect = (identity: string): KubeConnection => ({
    async request<T extends object>(method: string, _path: string, { body }: { body?: object } = {}): Promise<T> {
      if (isCut.has(identity)) throw new Error('no connection')
      if (method === 'GET') {
        if (!stored) throw new ApiError(404, 'NotFound', 'no lease')
        return stored as unknown as T
      }
      const given = body as StoredLease
      if (method === 'POST' ? stored !== undefined : stored?.metadata.resourceVersion !== given.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'somebody was faster')
      version += 1
      stored = { ...given, metadata: { ...given.metadata, resourceVersion: String(version) } }
      return stored as unknown as T
    },
    stream: () => Promise.reject(new Error('not used')),
    close: () => {},
  })
  return { connect, isCut, lease: () => stored }
}

interface Replica {
  readonly election: Election
  readonly events: string[]
}

function startReplica(store: ReturnType<typeof createLeaseStore>, clock: ManualClock, identity: string): Replica {
  const events: string[] = []
  const election = startElection({
    connection: store.connect(identity),
    namespace: 'proxy-system',
    name: 'lease',
    identity,
    clock,
    now: () => new Date(Date.UTC(2026, 0, 1) + clock.now()),
    onStart: () => events.push(`${clock.now()} start`),
    onStop: () => events.push(`${clock.now()} stop`),
    onError: (error) => events.push(`${clock.now()} ${(error as Error).message}`),
  })
  return { election, events }
}

async function startTwo() {
  const clock = createManualClock()
  const store = createLeaseStore()
  const a = startReplica(store, clock, 'a')
  await clock.advance(0)
  const b = startReplica(store, clock, 'b')
  await clock.advance(60_000)
  return { clock, store, a, b }
}

describe('leader election', () => {
  test('makes the first replica leader, which renews the Lease until it ends', async () => {
    const { store, a, b } = await startTwo()
    expect([a.events, b.events]).toEqual([['0 start'], []])
    expect([a.election.isLeader(), b.election.isLeader()]).toEqual([true, false])
    expect(store.lease()?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 15, leaseTransitions: 0, renewTime: '2026-01-01T00:01:00.000000Z' })
  })

  test('stops a leader without API server before another starts', async () => {
    const { clock, store, a, b } = await startTwo()
    store.isCut.add('a')
    await clock.advance(30_000)
    expect(a.events).toContain('70000 stop')
    const start = b.events.find((event) => event.endsWith('start'))
    expect(Number(start?.split(' ')[0])).toBeGreaterThanOrEqual(75_000)
    expect(Number(start?.split(' ')[0])).toBeLessThanOrEqual(77_000)
    expect([a.election.isLeader(), b.election.isLeader()]).toEqual([false, true])
    expect(store.lease()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
    store.isCut.clear()
    await clock.advance(60_000)
    expect([a.election.isLeader(), b.election.isLeader()]).toEqual([false, true])
  })

  test('makes the other replica leader at its next attempt after the leader released the Lease', async () => {
    const { clock, store, a, b } = await startTwo()
    await a.election.close()
    expect(store.lease()?.spec.holderIdentity).toBe('')
    await clock.advance(2_000)
    expect(b.election.isLeader()).toBe(true)
    await b.election.close()
  })

  test('makes one of two simultaneous candidates leader', async () => {
    const clock = createManualClock()
    const store = createLeaseStore()
    const replicas = ['a', 'b', 'c'].map((identity) => startReplica(store, clock, identity))
    await clock.advance(100_000)
    expect(replicas.filter(({ election }) => election.isLeader())).toHaveLength(1)
    expect(replicas.flatMap(({ events }) => events)).toEqual(['0 start'])
  })

  test('keeps the leader during a short connection failure', async () => {
    const { clock, store, a } = await startTwo()
    store.isCut.add('a')
    await clock.advance(7_000)
    store.isCut.clear()
    await clock.advance(20_000)
    expect(a.events.filter((event) => !event.endsWith('no connection'))).toEqual(['0 start'])
    expect(a.election.isLeader()).toBe(true)
  })
})
