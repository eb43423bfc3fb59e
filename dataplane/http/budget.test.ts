import { describe, expect, test } from '@jest/globals'
import { ManualBody } from '../testing/body.ts'
import { readBody } from './body.ts'
import { BodyBudget, BodyHold, SharedHeldBytes } from './budget.ts'
import { ReplayableBody } from './replay.ts'

class Rejected extends Error {}

function limited(limitBytes: number) {
  const budget = new BodyBudget()
  budget.limitBytes = limitBytes
  return { budget, hold: () => new BodyHold(() => new Rejected(), budget) }
}

describe('the budget of buffered bodies', () => {
  test('admits reservations up to the limit, and counts rejections', () => {
    const { budget, hold } = limited(10)
    const [first, second] = [hold(), hold()]
    expect(first.reserve(6)).toBeUndefined()
    expect(second.reserve(5)).toBeInstanceOf(Rejected)
    expect(second.reserve(4)).toBeUndefined()
    expect([budget.heldBytes, budget.rejected]).toEqual([10, 1])
    first.release()
    expect(second.reserve(6)).toBeUndefined()
    expect(budget.heldBytes).toBe(10)
  })

  test('never falls below zero, whatever is freed or released twice', () => {
    const { budget, hold } = limited(10)
    const one = hold()
    one.reserve(3)
    one.free(100)
    one.release()
    one.release()
    expect(budget.heldBytes).toBe(0)
  })

  test('checks reservations after the release, but does not count them', () => {
    const { budget, hold } = limited(10)
    const one = hold()
    one.release()
    expect(one.reserve(10)).toBeUndefined()
    expect(one.reserve(11)).toBeInstanceOf(Rejected)
    expect(budget.heldBytes).toBe(0)
  })

  test('follows a reservation that is resized', () => {
    const { budget, hold } = limited(10)
    const one = hold()
    expect([one.resize(8), one.resize(2), one.resize(10)]).toEqual([undefined, undefined, undefined])
    expect(one.resize(11)).toBeInstanceOf(Rejected)
    expect(budget.heldBytes).toBe(10)
  })
})

describe('the budget of several threads', () => {
  const MAIN = 0
  function start(threads: number) {
    const memory = SharedHeldBytes.allocate(threads)
    const budgets = Array.from({ length: threads }, (_, thread) => {
      const { budget, hold } = limited(10)
      budget.share(new SharedHeldBytes(memory, thread))
      return { budget, hold }
    })
    return { memory, budgets }
  }

  test('is one limit for all of them', () => {
    const { budgets } = start(3)
    const [a, b] = budgets.slice(1).map(({ hold }) => hold())
    expect(a?.reserve(6)).toBeUndefined()
    expect(b?.reserve(5)).toBeInstanceOf(Rejected)
    expect(b?.reserve(4)).toBeUndefined()
    expect(budgets.map(({ budget }) => [budget.heldBytes, budget.rejected])).toEqual(Array.from({ length: 3 }, () => [10, 1]))
    a?.release()
    expect(b?.reserve(6)).toBeUndefined()
  })

  test('releases the bytes of a thread that ended', () => {
    const { memory, budgets } = start(3)
    budgets[1]?.hold().reserve(7)
    budgets[2]?.hold().reserve(3)
    new SharedHeldBytes(memory, MAIN).clear(1)
    expect(budgets[0]?.budget.heldBytes).toBe(3)
  })
})

describe('a body that is read within a budget', () => {
  test('is cancelled and freed when it exceeds the budget', async () => {
    const { budget, hold } = limited(10)
    const body = new ManualBody()
    const read = readBody(body, 100, hold())
    body.push('12345678')
    expect(budget.heldBytes).toBe(8)
    body.push('123')
    await expect(read).rejects.toBeInstanceOf(Rejected)
    expect(body.asked).toContain('cancel')
    expect(budget.heldBytes).toBe(0)
  })

  test('is freed when it fails', async () => {
    const { budget, hold } = limited(10)
    const body = new ManualBody()
    const read = readBody(body, 100, hold())
    body.push('12345678')
    body.fail(new Error('reset'))
    await expect(read).rejects.toThrow('reset')
    expect(budget.heldBytes).toBe(0)
  })

  test('is held until its reader releases it', async () => {
    const { budget, hold } = limited(10)
    const [body, own] = [new ManualBody(), hold()]
    const read = readBody(body, 100, own)
    body.push('12345678')
    body.end()
    expect((await read).bytes.toString()).toBe('12345678')
    expect(budget.heldBytes).toBe(8)
    own.release()
    expect(budget.heldBytes).toBe(0)
  })
})

describe('a request body that is kept for retries', () => {
  test('is sent but no longer replayable when it exceeds the budget', () => {
    const { budget, hold } = limited(10)
    const source = new ManualBody()
    const body = new ReplayableBody(source, hold())
    const received: string[] = []
    body.nextAttempt().start({ onData: (chunk) => void received.push(chunk.toString()), onEnd() {}, onError() {} })
    source.push('12345678')
    expect([body.isReplayable, budget.heldBytes]).toEqual([true, 8])
    source.push('123')
    expect([body.isReplayable, budget.heldBytes]).toEqual([false, 0])
    expect(received).toEqual(['12345678', '123'])
  })
})
