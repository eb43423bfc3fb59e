import { Worker } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { allocateCells, SharedCells } from '../../runtime/shared-cells.ts'
import { Bucket, type Budget } from './bucket.ts'
import { createBudget } from './create.ts'

const call = fc.record({ afterMs: fc.integer({ min: 0, max: 3000 }), count: fc.integer({ min: -5, max: 30 }), isCharge: fc.boolean() })
const terms = fc.record({ amount: fc.integer({ min: 1, max: 20 }), burst: fc.integer({ min: 0, max: 10 }), unitMs: fc.constant(1000) })

describe('a shared budget', () => {
  test('behaves like a local one, whichever worker charges it', () => {
    fc.assert(
      fc.property(terms, fc.array(fc.tuple(call, fc.boolean())), ({ amount, burst, unitMs }, calls) => {
        const memory = allocateCells(4)
        const own = { amount, burst, unitMs, nowMs: 500 }
        const local = new Bucket(own)
        const workers = [new SharedCells(memory), new SharedCells(memory)].map((cells) => createBudget(own, { cells }, 'a'))
        let nowMs = 500
        for (const [{ afterMs, count, isCharge }, isFirst] of calls) {
          nowMs += afterMs
          const worker = workers[isFirst ? 0 : 1] as Budget
          if (isCharge) {
            local.charge(nowMs, count)
            worker.charge(nowMs, count)
          } else {
            const [expected, actual] = [local.take(nowMs, Math.abs(count)), worker.take(nowMs, Math.abs(count))]
            expect({ ...actual, resetMs: Math.round(actual.resetMs) }).toEqual({ ...expected, resetMs: Math.round(expected.resetMs) })
          }
        }
      }),
    )
  })

  test('of another name is another one', () => {
    const cells = new SharedCells(allocateCells(4))
    const own = { amount: 1, burst: 0, unitMs: 60_000, nowMs: 0 }
    const [a, b] = [createBudget(own, { cells }, 'a'), createBudget(own, { cells }, 'b')]
    expect([a.take(0).isAdmitted, a.take(0).isAdmitted, b.take(0).isAdmitted]).toEqual([true, false, true])
  })

  test('admits exactly its amount to threads that charge it at the same time', async () => {
    const memory = allocateCells(4)
    const source = `
      const { parentPort, workerData: { memory, create, cells } } = require('node:worker_threads')
      Promise.all([import(create), import(cells)]).then(([{ createBudget }, { SharedCells }]) => {
        const budget = createBudget({ amount: 1000, burst: 234, unitMs: 3_600_000, nowMs: performance.now() }, { cells: new SharedCells(memory) }, 'a')
        let admitted = 0
        for (let count = 0; count < 5000; count++) if (budget.take(performance.now()).isAdmitted) admitted++
        parentPort.postMessage(admitted)
      })`
    const workerData = {
      memory,
      create: new URL('create.ts', import.meta.url).href,
      cells: new URL('../../runtime/shared-cells.ts', import.meta.url).href,
    }
    const admitted = await Promise.all(
      Array.from({ length: 3 }, () => {
        const worker = new Worker(source, { eval: true, workerData })
        return new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject))
      }),
    )
    expect(admitted.reduce((sum, count) => sum + count)).toBe(1234)
  })
})
