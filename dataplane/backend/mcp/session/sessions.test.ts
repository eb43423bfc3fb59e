import { describe, expect, test } from '@jest/globals'
import type { LinkState } from '../upstream/link.ts'
import { newSession, Sessions } from './sessions.ts'
import type { SessionSharing } from './sharing.ts'

const links = new Map<string, LinkState>([['a', { sessionId: 's', endpoint: undefined, offers: 't', isMissing: false }]])
const principal = undefined
const limits = { idleMs: 1000, sweepMs: 60_000, count: 3, tombstones: 3 }
const keys = [Buffer.alloc(32, 1)]

function start(sharing?: SessionSharing) {
  let nowMs = 0
  const sessions = new Sessions('ns/b', keys, () => nowMs, limits, sharing)
  return { sessions, pass: (ms: number) => void (nowMs += ms), admit: () => sessions.admit(newSession({ links, principal }, nowMs)) }
}

describe('sessions', () => {
  test('are dropped from memory when idle and resume from their id (row 27)', () => {
    const { sessions, pass, admit } = start()
    const id = admit()
    pass(999)
    sessions.sweep()
    expect(sessions.size).toBe(1)
    pass(1)
    sessions.sweep()
    expect([sessions.size, sessions.find(id, principal)?.links.get('a')?.sessionId, sessions.size]).toEqual([0, 's', 1])
    sessions.close()
  })

  test('are kept in memory while they are used or have an open stream', () => {
    const { sessions, pass, admit } = start()
    const [used, open, idle] = [admit(), admit(), admit()]
    const session = sessions.find(open, principal)
    if (session !== undefined) session.open++
    pass(900)
    sessions.find(used, principal)
    pass(100)
    sessions.sweep()
    expect(sessions.size).toBe(2)
    expect(sessions.find(idle, principal)).toBeDefined()
    sessions.close()
  })

  test('that were ended stay ended until they would have expired', () => {
    const { sessions, pass, admit } = start()
    const id = admit()
    const session = sessions.find(id, principal)
    if (session !== undefined) sessions.end(session)
    expect([sessions.find(id, principal), sessions.size]).toEqual([undefined, 0])
    pass(999)
    sessions.sweep()
    expect(sessions.find(id, principal)).toBeUndefined()
    sessions.close()
  })

  test('are bounded in number: the least recently used one without an open stream is dropped', () => {
    const { sessions, admit } = start()
    const ids = [admit(), admit(), admit()]
    const first = sessions.find(ids[0] ?? '', principal)
    const second = sessions.find(ids[1] ?? '', principal)
    if (second !== undefined) second.open++
    admit()
    admit()
    expect(sessions.size).toBe(3)
    expect(sessions.find(ids[1] ?? '', principal)).toBe(second)
    expect(sessions.find(ids[0] ?? '', principal)).not.toBe(first)
    sessions.close()
  })

  test('that ended in another worker are not listed', () => {
    const ended = new Set<string>()
    const ignore = (): void => undefined
    const { sessions, admit } = start({ claim: ignore, release: ignore, end: ignore, bumpChanges: ignore, changesOf: () => 0, hasEnded: (id) => ended.has(id) })
    const ids = [admit(), admit(), admit()]
    ended.add(ids[0] ?? '').add(ids[2] ?? '')
    expect(sessions.list(2).map(({ id }) => id)).toEqual([ids[1]])
    expect(sessions.size).toBe(2)
    expect([sessions.list(2).map(({ id }) => id), sessions.size]).toEqual([[ids[1]], 1])
    sessions.close()
  })

  test.each<[what: string, link: Partial<LinkState>]>([
    ['subscribe at a target without sessions', { version: '2026-07-28' }],
    ['can cancel calls of an API', { calls: new Map() }],
  ])('that %s stay in their worker', (_, link) => {
    const claimed: string[] = []
    const ignore = (): void => undefined
    const { sessions, admit } = start({
      claim: (id) => void claimed.push(id),
      release: (id) => void claimed.splice(claimed.indexOf(id), 1),
      end: ignore,
      bumpChanges: ignore,
      changesOf: () => 0,
      hasEnded: () => false,
    })
    const own = new Map([['a', { sessionId: undefined, endpoint: undefined, offers: undefined, isMissing: false, ...link }]])
    const id = sessions.admit(newSession({ links: own, principal, client: undefined }, 0))
    admit()
    expect(claimed).toEqual([id])
    sessions.close()
    expect(claimed).toEqual([])
  })

  test('that were ended are bounded in number', () => {
    const { sessions, admit } = start()
    const ids = Array.from({ length: 5 }, admit)
    for (const id of ids) {
      const session = sessions.find(id, principal)
      if (session !== undefined) sessions.end(session)
    }
    expect(ids.map((id) => sessions.find(id, principal) === undefined)).toEqual([false, false, true, true, true])
    sessions.close()
  })

  test.each([
    ['in memory', (sessions: Sessions) => sessions],
    ['of another replica', () => new Sessions('ns/b', keys, () => 0, limits)],
  ])('%s are found for their own user only', (_, replicaOf) => {
    const { sessions } = start()
    const own = sessions.admit(newSession({ links, principal: 'ann' }, 0))
    const anonymous = sessions.admit(newSession({ links, principal: undefined }, 0))
    const replica = replicaOf(sessions)
    const finds = (id: string, user: string | undefined) => replica.find(id, user) !== undefined
    expect([finds(own, 'bob'), finds(own, undefined), finds(own, 'ann')]).toEqual([false, false, true])
    expect([finds(anonymous, 'ann'), finds(anonymous, undefined)]).toEqual([false, true])
    for (const each of [sessions, replica]) each.close()
  })

  test('have a digest for logs that is the same on all replicas and not part of the id', () => {
    const { sessions, admit } = start()
    const id = admit()
    const replica = new Sessions('ns/b', keys, () => 0, limits)
    const [here, there] = [sessions.find(id, principal)?.logId, replica.find(id, principal)?.logId]
    expect(here).toMatch(/^[\w-]{16}$/)
    expect(there).toBe(here)
    expect(id).not.toContain(here)
    for (const each of [sessions, replica]) each.close()
  })

  test('with a live connection are known to their process only, as long as it exists', () => {
    const { sessions, pass } = start()
    let closed = 0
    const session = newSession({ links, principal }, 0)
    session.connections.set('a', { close: () => closed++ } as never)
    const state = session.links.get('a')
    const id = sessions.admit({ ...session, links: new Map([['a', { ...(state as LinkState), sessionId: undefined }]]) })
    expect(new Sessions('ns/b', keys, () => 0, limits).find(id, principal)).toBeUndefined()
    pass(1000)
    sessions.sweep()
    expect([closed, sessions.find(id, principal)]).toEqual([1, undefined])
    sessions.close()
  })

  test('cost little: 10,000 of them are created quickly', () => {
    const many = new Sessions('ns/b', keys, () => 0)
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 10_000; count++) many.admit(newSession({ links: new Map(links), principal }, 0))
    expect(many.size).toBe(10_000)
    expect((process.memoryUsage().heapUsed - before) / 1024 / 1024).toBeLessThan(100)
    many.close()
  })
})
