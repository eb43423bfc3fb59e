import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { bodyColumns, columns, labelColumns, valueColumns, type Column } from './columns.ts'
import { readSpend } from './spend.ts'
import { spendGroups, spendStatement } from './sql.ts'
import { LedgerStore, oldRecords, openForReading } from './sqlite-store.ts'
import { batchOf } from './testing.ts'

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'proxy-ledger-'))
  path = join(directory, 'ledger.db')
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('the file of a ledger', () => {
  const values: Partial<Record<Column, string | number>> = { protocol: 'llm', status: 200, cost: 0.5, duration_ms: 10, weight: 1 }
  const row = (time: number) => columns.map((name) => (name === 'time' ? time : (values[name] ?? null)))

  test('loses records beyond the retention in steps, with their bodies', () => {
    const store = new LedgerStore(path)
    for (let time = 0; time < 51; time++) store.add(batchOf(row(time).with(columns.indexOf('request_body'), `body ${time}`), row(time)))
    store.add(batchOf(row(10_000).with(columns.indexOf('request_body'), 'last body'), row(8000)))
    expect([store.prune(9000), store.prune(9000), store.prune(9000)]).toEqual([true, true, false])
    store.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 20_000 }).rows).toMatchObject([{ group: [], requests: 2, cost: 1 }])
    const database = new DatabaseSync(path)
    expect(database.prepare('SELECT time, request_body FROM requests').all()).toEqual([
      expect.objectContaining({ time: 10_000, request_body: 'last body' }),
      expect.objectContaining({ time: 8000, request_body: null }),
    ])
    expect(database.prepare('SELECT count(*) AS count FROM bodies').get()).toMatchObject({ count: 1 })
  })

  test('stores all rows of a batch or none', () => {
    const store = new LedgerStore(path)
    const withBody = (time: number) => batchOf(row(time).with(columns.indexOf('request_body'), 'text'), row(time))
    const other = new DatabaseSync(path)
    other.exec(`CREATE TRIGGER fail BEFORE INSERT ON bodies BEGIN SELECT RAISE(ABORT, 'no space'); END`)
    expect(() => store.add(withBody(1))).toThrow('no space')
    other.exec('DROP TRIGGER fail')
    other.close()
    store.add(withBody(3))
    store.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 10 }).rows).toMatchObject([{ requests: 2 }])
    expect(new DatabaseSync(path).prepare('SELECT count(*) AS labels FROM labels').get()).toMatchObject({ labels: 1 })
  })

  test('is opened again with its records', () => {
    for (const time of [1, 2]) {
      const store = new LedgerStore(path)
      store.add(batchOf(row(time)))
      store.close()
    }
    expect(readSpend(path, { by: ['hour'], sinceMs: 1, untilMs: 3 }).rows).toMatchObject([{ group: ['1970-01-01T00:00Z'], requests: 2 }])
    expect(readSpend(path, { by: [], sinceMs: 1, untilMs: 2 }).rows).toMatchObject([{ requests: 1 }])
  })

  const writeVersion1 = (): void => {
    const names = columns.filter((name) => !name.endsWith('_body'))
    const integers = new Set<string>(['time', 'status', 'duration_ms', 'weight'])
    const old = new DatabaseSync(path)
    old.exec(
      `CREATE TABLE requests (${names.map((name) => `"${name}" ${integers.has(name) ? 'INTEGER' : 'TEXT'}`).join(', ')}) STRICT;
       CREATE INDEX requests_time ON requests (time);
       INSERT INTO requests (time, protocol, model, status, duration_ms, weight) VALUES (1, 'llm', 'a', 200, 5, 1), (2, 'llm', 'b', 200, 5, 1);
       PRAGMA user_version = 1`,
    )
    old.close()
  }

  const writeVersion2 = (): void => {
    const old = new DatabaseSync(path)
    old.exec(
      `CREATE TABLE labels (id INTEGER PRIMARY KEY, day INTEGER NOT NULL, ${labelColumns.map((name) => `"${name}" ${name === 'status' ? 'INTEGER' : 'TEXT'}`).join(', ')}) STRICT;
       CREATE TABLE records (id INTEGER PRIMARY KEY, labels INTEGER NOT NULL, ${[...valueColumns, ...bodyColumns].map((name) => `"${name}" ANY`).join(', ')}) STRICT;
       CREATE VIEW requests AS SELECT ${columns.map((name) => `"${name}"`).join(', ')} FROM records CROSS JOIN labels ON labels.id = records.labels;
       INSERT INTO labels (id, day, protocol, model, status) VALUES (1, 0, 'llm', 'a', 200), (2, 0, 'llm', 'b', 200);
       INSERT INTO records (id, labels, time, duration_ms, weight) VALUES (1001, 1, 1, 5, 1), (2001, 2, 2, 5, 1);
       PRAGMA user_version = 2`,
    )
    old.close()
  }

  test.each([
    [1, writeVersion1],
    [2, writeVersion2],
  ])('of version %d is used on, with its records until the retention has deleted them', (_, write) => {
    write()
    const byModel = (sinceMs = 0) => readSpend(path, { by: ['model'], sinceMs, untilMs: 10 }).rows.map(({ group, requests }) => [group[0], requests])
    const before = byModel()
    let store = new LedgerStore(path)
    store.add(batchOf(row(3)))
    store.close()
    store = new LedgerStore(path)
    expect([before, byModel(), byModel(2)]).toEqual([
      [
        ['a', 1],
        ['b', 1],
      ],
      [
        [null, 1],
        ['a', 1],
        ['b', 1],
      ],
      [
        [null, 1],
        ['b', 1],
      ],
    ])
    expect([store.prune(3), store.prune(3)]).toEqual([true, false])
    store.close()
    const database = new DatabaseSync(path)
    expect(database.prepare('SELECT time, request_body FROM requests').all()).toEqual([expect.objectContaining({ time: 3, request_body: null })])
    expect(database.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'requests%' OR name = 'records'").all()).toEqual([
      expect.objectContaining({ name: 'requests' }),
    ])
  })

  test('is read as it was when it was opened, also if the records of version 1 are deleted meanwhile', () => {
    writeVersion1()
    const store = new LedgerStore(path)
    const { database } = openForReading(path)
    const [records] = oldRecords(database, ['time'])
    store.prune(3)
    store.close()
    expect(database.prepare(String(records)).all()).toHaveLength(2)
    database.close()
    expect(readSpend(path, { by: [], sinceMs: 0, untilMs: 10 }).rows).toEqual([])
  })

  test('has the same sums in reports as in its records', () => {
    const store = new LedgerStore(path)
    const minute = 60_000
    const varied = (index: number) => {
      const numbers: Partial<Record<Column, string | number | null>> = {
        time: index * 11 * minute,
        model: `m${index % 3}`,
        status: index % 4 === 0 ? 500 : 200,
        duration_ms: index,
        input_tokens: index % 2 === 0 ? null : index,
        output_tokens: index % 5 === 0 ? 7 : null,
        cached_tokens: index % 7,
        reasoning_tokens: index % 6 === 0 ? 3 : null,
        cost: index % 3 === 0 ? null : index / 8,
        weight: index % 9 === 0 ? 100 : 1,
      }
      return columns.map((name) => numbers[name] ?? values[name] ?? null).with(columns.indexOf('cost'), numbers.cost ?? null)
    }
    for (let index = 0; index < 400; index += 8) store.add(batchOf(...Array.from({ length: 8 }, (_, offset) => varied(index + offset))))
    store.close()
    const database = new DatabaseSync(path)
    const periods = { hour: "strftime('%Y-%m-%dT%H:00Z', time / 1000, 'unixepoch')", day: "strftime('%Y-%m-%d', time / 1000, 'unixepoch')", month: "'1970-01'" }
    for (const by of [['hour', 'model'], ['day'], ['month', 'status'], []] as const) {
      const query = { by, sinceMs: 100 * minute, untilMs: 4000 * minute }
      const statement = spendStatement(query, 'requests WHERE time >= ? AND time < ?', { total: (column) => `total(${column})`, periods })
      const expected = spendGroups(query, database.prepare(statement).all(query.sinceMs, query.untilMs))
      expect(expected.rows.length).toBeGreaterThan(0)
      expect(readSpend(path, query)).toEqual(expected)
    }
    database.close()
  })

  test('has each set of labels once a day, and loses those of days beyond the retention', () => {
    const day = 86_400_000
    const store = new LedgerStore(path)
    for (const time of [1, 2, day, day + 1]) store.add(batchOf(row(time), row(time)))
    const count = () => new DatabaseSync(path).prepare('SELECT count(*) AS labels, min(day) AS day FROM labels').get()
    expect(count()).toMatchObject({ labels: 2, day: 0 })
    store.prune(day)
    expect(count()).toMatchObject({ labels: 1, day: 1 })
    store.close()
    expect(readSpend(path, { by: ['protocol'], sinceMs: 0, untilMs: 3 * day }).rows).toMatchObject([{ group: ['llm'], requests: 4 }])
  })

  test('has requests in reports that ended after later ones, and those of a clock that was set back', () => {
    const store = new LedgerStore(path)
    for (const time of [5000, 9000, 1000, 2000]) store.add(batchOf(row(time)))
    expect(store.prune(1500)).toBe(true)
    store.close()
    const count = (sinceMs: number, untilMs: number) => readSpend(path, { by: [], sinceMs, untilMs }).rows[0]?.requests
    expect([count(0, 10_000), count(5000, 9000), count(2000, 5000), count(9000, 10_000)]).toEqual([3, 1, 1, 1])
  })

  test('has the labels of a record that is older than those that the retention has deleted', () => {
    const store = new LedgerStore(path)
    store.add(batchOf(row(1)))
    expect(store.prune(86_400_000)).toBe(true)
    store.add(batchOf(row(2)))
    store.close()
    expect(readSpend(path, { by: ['protocol'], sinceMs: 0, untilMs: 10 }).rows).toMatchObject([{ group: ['llm'], requests: 1 }])
  })

  test('loses old records also after a clock was ahead by years', () => {
    const day = 86_400_000
    const store = new LedgerStore(path)
    const ahead = Array.from({ length: 5000 }, (_, index) => row(5000 * day + index))
    store.add(batchOf(...ahead))
    for (const time of [1, day, 2 * day]) store.add(batchOf(row(time)))
    expect([store.prune(2 * day), store.prune(2 * day)]).toEqual([true, false])
    // The clock reaches the time of the other records.
    for (const time of [4999 * day + 5000, 5000 * day]) store.add(batchOf(row(time), row(time)))
    store.close()
    const count = (sinceMs: number) => readSpend(path, { by: [], sinceMs, untilMs: 6000 * day }).rows[0]?.requests
    expect([count(0), count(4000 * day), count(5000 * day)]).toEqual([5005, 5004, 5002])
  })
})
