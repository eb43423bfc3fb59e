import { describe, expect, test } from '@jest/globals'
import { compileWindows } from '#api/budget-window.ts'
import { fc } from '#api/property-testing.ts'
import { QuotaPool, SHARE_MS, type Connection, type Share, type Usage } from './pool.ts'

const DAY = compileWindows('Day')
const START = Date.parse('2026-11-24T10:00:00Z')
const ID = { limit: 'ns/p team requests Day', key: 'all', index: DAY.at(START).index }
const poolOf = (amount: number): QuotaPool => new QuotaPool((name) => (name === ID.limit ? { amount, windows: DAY } : undefined))

/** A replica that keeps to its share, with the counters that a data plane has. */
class Replica {
  #pool: QuotaPool
  #connection: Connection
  #isFirst = true
  #reported = 0
  granted = 0
  isLast = false
  used = 0
  reserved = 0
  wanted = 0
  total = 0

  constructor(pool: QuotaPool, id: string) {
    this.#pool = pool
    this.#connection = pool.connect(id)
  }

  /** Reserves up to the share, and remembers what it lacks. Returns whether the whole amount was there. */
  reserve(amount: number): boolean {
    if (this.used + this.reserved + amount <= this.granted) {
      this.reserved += amount
      return true
    }
    this.wanted += amount
    return false
  }

  use(amount: number): number {
    const taken = Math.min(amount, Math.max(0, this.granted - this.used - this.reserved))
    this.used += taken
    this.wanted += amount - taken
    return taken
  }

  report(nowMs: number, isQuiet = false): Share[] {
    const usage: Usage = { ...ID, used: this.#isFirst ? this.used : this.used - this.#reported, reserved: this.reserved, wanted: this.wanted }
    const shares = this.#pool.report(this.#connection, isQuiet ? [] : [usage], nowMs)
    if (!isQuiet) {
      this.#isFirst = false
      this.#reported = this.used
      this.wanted = 0
    }
    for (const { granted = 0, isLast, total } of shares) Object.assign(this, { granted, isLast, total })
    return shares
  }

  disconnect(): void {
    this.#pool.disconnect(this.#connection)
  }

  reconnect(pool: QuotaPool, id: string): void {
    this.#pool = pool
    this.#connection = pool.connect(id)
    Object.assign(this, { granted: this.used + this.reserved })
    this.#isFirst = true
  }
}

describe('a pool', () => {
  test('gives shares by demand, not evenly, and all of the limit', () => {
    const pool = poolOf(1000)
    const [busy, idle] = [new Replica(pool, 'a'), new Replica(pool, 'b')]
    let admitted = 0
    idle.use(1)
    for (let step = 0; step < 60; step++) {
      const nowMs = START + step * 200
      admitted += busy.use(40)
      busy.report(nowMs)
      if (step === 1) admitted += idle.use(1)
      idle.report(nowMs, step > 2)
    }
    expect(admitted).toBe(1000)
    expect(busy.isLast).toBe(true)
    expect(busy.total).toBe(1000)
  })

  test('takes an unused share back within two reports of its holder', () => {
    const pool = poolOf(100)
    const [holder, other] = [new Replica(pool, 'a'), new Replica(pool, 'b')]
    holder.wanted = 100
    holder.report(START)
    expect(holder.granted).toBe(100)
    other.wanted = 50
    expect(other.report(START + 200)).toMatchObject([{ granted: 0, isLast: false }])
    holder.report(START + 300, true)
    expect(holder.granted).toBe(0)
    // Not confirmed yet: the holder may have used it.
    other.wanted = 50
    expect(other.report(START + 310)).toMatchObject([{ granted: 0, isLast: false }])
    holder.report(START + 320)
    other.wanted = 50
    expect(other.report(START + 400)).toMatchObject([{ granted: 50, isLast: false }])
  })

  test('says that a share is the last one when nobody has units to spare', () => {
    const pool = poolOf(10)
    const [a, b] = [new Replica(pool, 'a'), new Replica(pool, 'b')]
    a.wanted = 10
    a.report(START)
    a.use(10)
    a.report(START + 100)
    b.wanted = 1
    expect(b.report(START + 200)).toMatchObject([{ granted: 0, isLast: true, total: 10 }])
  })

  test('counts the share of a replica that is gone as used until it has expired', () => {
    const pool = poolOf(10)
    const [gone, other] = [new Replica(pool, 'a'), new Replica(pool, 'b')]
    gone.wanted = 10
    gone.report(START)
    gone.use(4)
    gone.report(START + 100)
    gone.disconnect()
    other.wanted = 6
    expect(other.report(START + 200)).toMatchObject([{ granted: 0, isLast: true }])
    other.wanted = 6
    expect(other.report(START + 200 + SHARE_MS + 3000)).toMatchObject([{ granted: 6 }])
  })

  test('restores what was stored; a replica that reports again is not counted twice', () => {
    const before = poolOf(10_000)
    const [a, b] = [new Replica(before, 'a'), new Replica(before, 'b')]
    for (const each of [a, b]) {
      each.wanted = 30
      each.report(START)
      each.use(30)
      each.report(START + 100)
    }
    const stored = before.store()
    a.use(Math.min(5, a.granted - a.used))
    const after = poolOf(10_000)
    after.restore(stored, START + 5000)
    a.reconnect(after, 'a')
    a.report(START + 5100)
    expect(after.totalOf(ID)).toBe(a.used + 30)
  })

  test('abandons a bucket without a limit, and ignores windows that are over', () => {
    const pool = poolOf(10)
    const connection = pool.connect('a')
    const usage = { ...ID, used: 0, reserved: 0, wanted: 1 }
    expect(pool.report(connection, [{ ...usage, limit: 'unknown' }], START)).toMatchObject([{ granted: undefined }])
    expect(pool.report(connection, [{ ...usage, index: ID.index - 5 }], START)).toMatchObject([{ granted: undefined }])
    expect(pool.size).toBe(0)
    pool.report(connection, [usage], START)
    pool.tidy(START + 4 * 86_400_000)
    expect(pool.size).toBe(0)
  })

  test('never lets replicas have more than the limit together, whatever they do', () => {
    const step = fc.record({
      replica: fc.nat(2),
      action: fc.constantFrom('use', 'reserve', 'settle', 'report', 'quiet', 'reconnect'),
      amount: fc.integer({ min: 1, max: 40 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const pool = poolOf(100)
        const replicas = [0, 1, 2].map((number) => new Replica(pool, `r${number}`))
        steps.forEach(({ replica: number, action, amount }, index) => {
          const replica = replicas[number] as Replica
          const nowMs = START + index * 50
          if (action === 'use') replica.use(amount)
          else if (action === 'reserve') replica.reserve(amount)
          else if (action === 'settle') {
            // Half of what is reserved is used, the rest returns.
            replica.used += Math.floor(replica.reserved / 2)
            replica.reserved = 0
          } else if (action === 'reconnect') {
            replica.disconnect()
            replica.reconnect(pool, `r${number}`)
          } else replica.report(nowMs, action === 'quiet')
        })
        const spent = replicas.reduce((sum, { used, reserved }) => sum + used + reserved, 0)
        expect(spent).toBeLessThanOrEqual(100)
      }),
    )
  })
})

describe('a pool of a rolling window', () => {
  test('counts the previous window of all replicas by the part that is within reach', () => {
    const windows = compileWindows('1m')
    const first = windows.at(START)
    const pool = new QuotaPool(() => ({ amount: 1000, windows }))
    const [a, b] = [pool.connect('a'), pool.connect('b')]
    const usage = { limit: 'l', key: 'all', index: first.index, reserved: 0 }
    pool.report(a, [{ ...usage, used: 0, wanted: 600 }], first.startMs)
    pool.report(b, [{ ...usage, used: 0, wanted: 400 }], first.startMs)
    pool.report(a, [{ ...usage, used: 600, wanted: 0 }], first.startMs + 1000)
    pool.report(b, [{ ...usage, used: 400, wanted: 0 }], first.startMs + 1000)
    const next = { ...usage, index: first.index + 1, used: 0, wanted: 1000 }
    expect(pool.report(a, [next], first.endMs)).toMatchObject([{ granted: 0, isLast: true }])
    expect(pool.report(a, [{ ...next }], first.endMs + 30_000)).toMatchObject([{ granted: 500, isLast: true }])
  })
})

describe('alerts of a pool', () => {
  const alertAt = [95, 80, 50]
  const alerting = (): QuotaPool => new QuotaPool((name) => (name === ID.limit ? { amount: 100, windows: DAY, alertAt } : undefined))

  test('name the highest percentage that all replicas have used together, once', () => {
    const pool = alerting()
    const [one, two] = [new Replica(pool, 'a'), new Replica(pool, 'b')]
    let nowMs = START
    const use = (replica: Replica, amount: number): number[] => {
      let left = amount
      for (let step = 0; left > 0 && step < 50; step++) {
        left -= replica.use(left)
        for (const each of [one, two, one]) each.report((nowMs += 100))
      }
      expect(left).toBe(0)
      return pool.takeAlerts().map(({ percent }) => percent)
    }
    expect(use(one, 25)).toEqual([])
    expect(use(two, 25)).toEqual([50])
    expect(use(one, 5)).toEqual([])
    expect(use(two, 41)).toEqual([95])
    expect(use(one, 1)).toEqual([])
  })

  test('do not count what is reserved, and are not repeated by the next operator', () => {
    const pool = alerting()
    const replica = new Replica(pool, 'a')
    replica.wanted = 60
    replica.report(START)
    expect(replica.reserve(60)).toBe(true)
    replica.report(START)
    expect(pool.takeAlerts()).toEqual([])
    replica.reserved = 0
    replica.used = 60
    replica.report(START)
    expect(pool.takeAlerts()).toEqual([{ limit: ID.limit, percent: 50 }])
    const next = alerting()
    next.restore(pool.store(), START)
    replica.reconnect(next, 'a')
    replica.report(START)
    expect(next.takeAlerts()).toEqual([])
    replica.used = 85
    replica.report(START)
    expect(next.takeAlerts()).toEqual([{ limit: ID.limit, percent: 80 }])
  })
})
