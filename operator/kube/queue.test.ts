import { expect, test } from '@jest/globals'
import { createQueue, type Queue } from './queue.ts'
import { createManualClock, type ManualClock } from '../serve/testing.ts'

interface Bench {
  readonly clock: ManualClock
  readonly queue: Queue
  /** `<time> <key>` of every start. */
  readonly starts: string[]
  readonly errors: string[]
  /** Ends the work on a key. */
  readonly end: (key: string, error?: Error) => Promise<void>
}

function createBench(concurrency = 8): Bench {
  const clock = createManualClock()
  const starts: string[] = []
  const errors: string[] = []
  const open = new Map<string, PromiseWithResolvers<void>>()
  const queue = createQueue({
    clock,
    concurrency,
    intervalMs: 100,
    backoff: { firstMs: 500, maxMs: 1500 },
    onError: (key, error) => errors.push(`${key}: ${(error as Error).message}`),
    work(key) {
      starts.push(`${clock.now()} ${key}`)
      const run = Promise.withResolvers<void>()
      open.set(key, run)
      return run.promise
    },
  })
  const end = async (key: string, error?: Error): Promise<void> => {
    if (error) open.get(key)?.reject(error)
    else open.get(key)?.resolve()
    await clock.advance(0)
  }
  return { clock, queue, starts, errors, end }
}

test('a key that is added during its work runs once more, not before the interval is over', async () => {
  const { clock, queue, starts, end } = createBench()
  queue.add('a')
  await clock.advance(30)
  queue.add('a')
  queue.add('a')
  await end('a')
  expect(starts).toEqual(['0 a'])
  await clock.advance(100)
  await end('a')
  await clock.advance(1000)
  expect(starts).toEqual(['0 a', '100 a'])
  expect(queue.size()).toBe(0)
})

test('a key that is added within the interval waits for its end, and a later one does not wait', async () => {
  const { clock, queue, starts, end } = createBench()
  queue.add('a')
  await end('a')
  await clock.advance(40)
  queue.add('a')
  await clock.advance(60)
  await end('a')
  await clock.advance(500)
  queue.add('a')
  await clock.advance(0)
  expect(starts).toEqual(['0 a', '100 a', '600 a'])
})

test('failures are reported and retried with a bounded backoff, which a success resets', async () => {
  const { clock, queue, starts, errors, end } = createBench()
  queue.add('a')
  await end('a', new Error('one'))
  for (const [pause, error] of [
    [500, 'two'],
    [1000, 'three'],
    [1500, 'four'],
  ] as const) {
    await clock.advance(pause)
    await end('a', new Error(error))
  }
  await clock.advance(1500)
  await end('a')
  queue.add('a')
  await clock.advance(100)
  await end('a', new Error('five'))
  await clock.advance(500)
  expect(starts).toEqual(['0 a', '500 a', '1500 a', '3000 a', '4500 a', '4600 a', '5100 a'])
  expect(errors).toEqual(['a: one', 'a: two', 'a: three', 'a: four', 'a: five'])
})

test('a renewed key runs without the rest of its backoff, and its failures are reset', async () => {
  const { clock, queue, starts, end } = createBench()
  queue.add('a')
  await end('a', new Error('one'))
  await clock.advance(500)
  await end('a', new Error('two'))
  await clock.advance(200)
  queue.add('a')
  expect(starts).toEqual(['0 a', '500 a'])
  queue.renew('a')
  await end('a', new Error('three'))
  queue.renew('b')
  await clock.advance(500)
  expect(starts).toEqual(['0 a', '500 a', '700 a', '700 b', '1200 a'])
})

test('the number of keys that run at once is bounded', async () => {
  const { clock, queue, starts, end } = createBench(2)
  for (const key of ['a', 'b', 'c']) queue.add(key)
  await clock.advance(0)
  expect(starts).toEqual(['0 a', '0 b'])
  await end('b')
  expect(starts).toEqual(['0 a', '0 b', '0 c'])
})

test('waiting work does not start after the queue is cleared', async () => {
  const { clock, queue, starts, end } = createBench(1)
  queue.add('a')
  queue.add('b')
  queue.clear()
  await end('a')
  await clock.advance(1000)
  expect(starts).toEqual(['0 a'])
})
