import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import { allocateRing, SharedRing } from './shared-ring.ts'

const SIZE = 64 * 1024
const keyOf = (name: string): Buffer => createHash('sha256').update(name).digest()
const ringOf = (memory = allocateRing(SIZE)): SharedRing => new SharedRing(memory, SIZE)
const textOf = (ring: SharedRing, name: string): string | undefined => ring.get(keyOf(name))?.value.toString()

describe('a ring of values in shared memory', () => {
  test('returns the latest value of a key to every view of the memory', () => {
    const memory = allocateRing(SIZE)
    ringOf(memory).set(keyOf('a'), Buffer.from('first'))
    ringOf(memory).set(keyOf('a'), Buffer.from('second'))
    expect([textOf(ringOf(memory), 'a'), textOf(ringOf(memory), 'b')]).toEqual(['second', undefined])
  })

  test('overwrites the oldest values when it is full', () => {
    const ring = ringOf()
    const names = Array.from({ length: 1000 }, (_, index) => `key ${index}`)
    for (const name of names) ring.set(keyOf(name), Buffer.alloc(500, name))
    const kept = names.filter((name) => textOf(ring, name) === Buffer.alloc(500, name).toString())
    expect(kept.at(-1)).toBe('key 999')
    expect(kept.length).toBeGreaterThan(30)
    expect(kept.length).toBeLessThanOrEqual(SIZE / 500)
    expect(ring.get(keyOf('key 0'))).toBeUndefined()
  })

  test('names values that will be overwritten soon', () => {
    const ring = ringOf()
    ring.set(keyOf('a'), Buffer.alloc(100))
    expect(ring.get(keyOf('a'))?.isOld).toBe(false)
    for (let nth = 0; nth < 40; nth++) ring.set(keyOf(`${nth}`), Buffer.alloc(1000))
    expect(ring.get(keyOf('a'))?.isOld).toBe(true)
  })

  test('stores no value that is larger than a quarter of it, and an empty one', () => {
    const ring = ringOf()
    ring.set(keyOf('large'), Buffer.alloc(SIZE / 2))
    ring.set(keyOf('empty'), Buffer.alloc(0))
    expect([ring.get(keyOf('large')), ring.get(keyOf('empty'))?.value.length]).toEqual([undefined, 0])
  })

  test('returns nothing from memory of random bytes', () => {
    let state = 1
    for (let round = 0; round < 50; round++) {
      const memory = allocateRing(SIZE)
      const bytes = new Uint8Array(memory)
      for (let at = 8; at < bytes.length; at++) bytes[at] = (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) >> 8
      expect(ringOf(memory).get(keyOf('a'))).toBeUndefined()
    }
  })

  test('threads that write at once never make a reader see a mixed value', async () => {
    const memory = allocateRing(SIZE)
    const code = `
      import { createHash } from 'node:crypto'
      import { workerData, parentPort } from 'node:worker_threads'
      import { SharedRing } from ${JSON.stringify(new URL('./shared-ring.ts', import.meta.url).href)}
      const ring = new SharedRing(workerData.memory, ${SIZE})
      let read = 0
      let bad = 0
      for (let nth = 0; nth < 20_000; nth++) {
        const name = String(nth % 50)
        const key = createHash('sha256').update(name).digest()
        if (nth % 2 === workerData.odd) ring.set(key, Buffer.alloc(100 + (nth % 3000), name))
        const found = ring.get(key)?.value
        if (found === undefined) continue
        read++
        if (!found.equals(Buffer.alloc(found.length, name))) bad++
      }
      parentPort.postMessage({ read, bad })`
    const workers = [0, 1, 0].map((odd) => new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: { memory, odd } }))
    const results = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as { read: number; bad: number }))
    for (const worker of workers) await worker.terminate()
    expect(results.map(({ bad }) => bad)).toEqual([0, 0, 0])
    for (const { read } of results) expect(read).toBeGreaterThan(0)
  })
})
