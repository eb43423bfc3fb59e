import { describe, expect, test } from '@jest/globals'
import type { LinkState } from '../upstream/link.ts'
import { newSession, Sessions } from './sessions.ts'

const links = new Map<string, LinkState>([['a', { sessionId: 's', endpoint: undefined, offers: 't', isMissing: false }]])
const limits = { idleMs: 1000, sweepMs: 60_000, count: 3, tombstones: 3 }
const keys = [Buffer.alloc(32, 1)]

function start() {
  let nowMs = 0
  const sessions = new Sessions('ns/b', keys, () => nowMs, limits)
  return { sessions, pass: (ms: number) => void (nowMs += ms), admit: () => sessions.admit(newSession(links, nowMs)) }
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
    expect([sessions.size, sessions.find(id)?.links.get('a')?.sessionId, sessions.size]).toEqual([0, 's', 1])
    sessions.close()
  })

  test('are kept in memory while they are used or have an open stream', () => {
    const { sessions, pass, admit } = start()
    const [used, open, idle] = [admit(), admit(), admit()]
    const session = sessions.find(open)
    if (session !== undefined) session.open++
    pass(900)
    sessions.find(used)
    pass(100)
    sessions.sweep()
    expect(sessions.size).toBe(2)
    expect(sessions.find(idle)).toBeDefined()
    sessions.close()
  })

  test('that were ended stay ended until they would have expired', () => {
    const { sessions, pass, admit } = start()
    const id = admit()
    const session = sessions.find(id)
    if (session !== undefined) sessions.end(session)
    expect([sessions.find(id), sessions.size]).toEqual([undefined, 0])
    pass(999)
    sessions.sweep()
    expect(sessions.find(id)).toBeUndefined()
    sessions.close()
  })

  test('are bounded in number: the least recently used one without an open stream is dropped', () => {
    const { sessions, admit } = start()
    const ids = [admit(), admit(), admit()]
    const first = sessions.find(ids[0] ?? '')
    const second = sessions.find(ids[1] ?? '')
    if (second !== undefined) second.open++
    admit()
    admit()
    expect(sessions.size).toBe(3)
    expect(sessions.find(ids[1] ?? '')).toBe(second)
    expect(sessions.find(ids[0] ?? '')).not.toBe(first)
    sessions.close()
  })

  test('that were ended are bounded in number', () => {
    const { sessions, admit } = start()
    const ids = Array.from({ length: 5 }, admit)
    for (const id of ids) {
      const session = sessions.find(id)
      if (session !== undefined) sessions.end(session)
    }
    expect(ids.map((id) => sessions.find(id) === undefined)).toEqual([false, false, true, true, true])
    sessions.close()
  })

  test('with a live connection are known to their process only, as long as it exists', () => {
    const { sessions, pass } = start()
    let closed = 0
    const session = newSession(links, 0)
    session.connections.set('a', { close: () => closed++ } as never)
    const state = session.links.get('a')
    const id = sessions.admit({ ...session, links: new Map([['a', { ...(state as LinkState), sessionId: undefined }]]) })
    expect(new Sessions('ns/b', keys, () => 0, limits).find(id)).toBeUndefined()
    pass(1000)
    sessions.sweep()
    expect([closed, sessions.find(id)]).toEqual([1, undefined])
    sessions.close()
  })

  test('cost little: 10,000 of them are created quickly', () => {
    const many = new Sessions('ns/b', keys, () => 0)
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 10_000; count++) many.admit(newSession(new Map(links), 0))
    expect(many.size).toBe(10_000)
    expect((process.memoryUsage().heapUsed - before) / 1024 / 1024).toBeLessThan(100)
    many.close()
  })
})
