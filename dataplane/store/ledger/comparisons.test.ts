import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { encodeBatch, type LedgerEntry } from './batch.ts'
import { labelColumns } from './columns.ts'
import { readComparisons } from './comparisons.ts'
import { LedgerStore } from './sqlite-store.ts'

let directory = ''
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'comparisons-'))))
afterEach(() => rmSync(directory, { recursive: true }))

const labels = (operation: string, target: string): string =>
  JSON.stringify(labelColumns.map((name) => ({ protocol: 'llm', operation, target, status: 200, gateway: 'ns/g', reason: 'Upstream' })[name as string] ?? null))

test('comparisons of one model and time are read, the newest first; other rows and other bodies are skipped', () => {
  const path = join(directory, 'ledger.db')
  const store = new LedgerStore(path)
  const side = { target: 'ns/a m' }
  const bodies = [
    { model: 'a', original: side, copy: side, requestId: 'one' },
    { model: 'a', original: side, copy: side, requestId: 'two' },
    { choices: [] },
  ].map((body) => JSON.stringify(body))
  const entry = (label: number, time: number): LedgerEntry => [label, time, 1]
  store.add({
    ...encodeBatch(
      [labels('shadow', 'a'), labels('shadow', 'b'), labels('chat', 'a')],
      [entry(0, 1000), entry(0, 2000), entry(0, 3000), entry(0, 4000), entry(1, 2000), entry(2, 2000), entry(0, 9000)],
      [
        { entry: 0, request: null, response: bodies[0] ?? '' },
        { entry: 1, request: 'x', response: bodies[1] ?? '' },
        { entry: 2, request: null, response: bodies[2] ?? '' },
        { entry: 3, request: null, response: '{' },
        { entry: 4, request: null, response: bodies[0] ?? '' },
        { entry: 5, request: null, response: bodies[0] ?? '' },
        { entry: 6, request: null, response: bodies[0] ?? '' },
      ],
    ),
  })
  store.close()
  const { comparisons, isCut } = readComparisons(path, { model: 'a', sinceMs: 1000, untilMs: 9000 })
  expect([comparisons.map(({ requestId }) => requestId), isCut]).toEqual([['two', 'one'], false])
  expect(() => readComparisons(join(directory, 'missing.db'), { model: 'a', sinceMs: 0, untilMs: 1 })).toThrow('no such file')
})
