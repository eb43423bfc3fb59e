import { describe, expect, test } from '@jest/globals'
import type { Logger } from '../../observe/telemetry/log.ts'
import { Watch } from './watch.ts'

/** A watch over two workers, whose last beats the test sets. */
function start() {
  let nowMs = 1_000_000
  const beats = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)
  const words = new BigInt64Array(beats)
  const blocked: number[] = []
  const threads = [{ threadId: -1 }, { threadId: -2 }]
  const log = { error: () => undefined } as unknown as Logger
  const watch = new Watch({ beats, log, threadOf: (index) => threads[index], onBlocked: (index) => blocked.push(index), nowMs: () => nowMs })
  watch.start()
  watch.close()
  /** Lets time pass in steps of half a second; some workers beat meanwhile. */
  const pass = (seconds: number, alive: readonly number[]): void => {
    for (let step = 0; step < seconds * 2; step++) {
      nowMs += 500
      for (const index of alive) words[index] = BigInt(nowMs) * 1_000_000n
      watch.check()
    }
  }
  return { pass, blocked, skip: (seconds: number) => void (nowMs += seconds * 1000) }
}

describe('a worker that does not answer', () => {
  test('is replaced after 10 s while another one answers', () => {
    const { pass, blocked } = start()
    pass(3, [0, 1])
    pass(9.5, [0])
    expect(blocked).toEqual([])
    pass(1, [0])
    expect(new Set(blocked)).toEqual(new Set([1]))
  })

  test('is not replaced if it answers again', () => {
    const { pass, blocked } = start()
    pass(9, [0])
    pass(1, [0, 1])
    pass(9, [0])
    expect(blocked).toEqual([])
  })

  test('is replaced after 60 s only while no worker answers', () => {
    const { pass, blocked } = start()
    pass(59, [])
    expect(blocked).toEqual([])
    pass(2, [])
    expect(new Set(blocked)).toEqual(new Set([0, 1]))
  })

  test('is not blamed for a time in which the main thread did not run either', () => {
    const { pass, blocked, skip } = start()
    pass(3, [0, 1])
    skip(120)
    pass(4, [0])
    expect(blocked).toEqual([])
  })
})
