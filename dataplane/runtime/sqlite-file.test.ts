import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { CounterFile } from '../program/counters/counter-file.ts'
import { openForReading, LedgerStore } from '../store/ledger/sqlite-store.ts'

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sqlite-'))
  path = join(directory, 'file.db')
})
afterEach(() => rmSync(directory, { recursive: true }))

const openers: Readonly<Record<string, (path: string) => { close(): void }>> = {
  counters: (file) => new CounterFile(file),
  ledger: (file) => new LedgerStore(file),
  reports: (file) => openForReading(file).database,
}

const foreign: Readonly<Record<string, string>> = {
  'tables of other names': 'CREATE TABLE invoices (id INTEGER); INSERT INTO invoices VALUES (1)',
  'an application id': 'PRAGMA application_id = 1196444487; CREATE TABLE counters (key INTEGER, even INTEGER, odd INTEGER, alert INTEGER, changed_ms INTEGER)',
  'the name of a table and a version': 'CREATE TABLE counters (id INTEGER, name TEXT); PRAGMA user_version = 1',
  'a table of requests': 'CREATE TABLE requests (id INTEGER, time INTEGER); PRAGMA user_version = 1',
  'a table of records': 'CREATE TABLE records (id INTEGER); PRAGMA user_version = 2',
  'a table of batches': 'CREATE TABLE batches (id INTEGER, first TEXT); PRAGMA user_version = 3',
  'a later version': 'CREATE TABLE counters (id INTEGER); CREATE TABLE batches (id INTEGER); PRAGMA user_version = 9',
  'a write-ahead log': 'PRAGMA journal_mode = WAL; CREATE TABLE invoices (id INTEGER)',
}

const contentOf = () => Object.fromEntries(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), 'base64')]))

describe.each(Object.keys(openers))('opening %s', (name) => {
  const open = (file: string) => openers[name]?.(file)

  test.each(Object.keys(foreign))('rejects a database of another program with %s, and changes nothing', (kind) => {
    const other = new DatabaseSync(path)
    other.exec(foreign[kind] ?? '')
    other.close()
    const before = contentOf()
    expect(() => open(path)).toThrow(/^it is a database of another program; name a .+, or a file that does not exist$/)
    expect(contentOf()).toEqual(before)
  })

  test('rejects what is no database, and changes nothing', () => {
    writeFileSync(path, 'SQLite format 3, but not really. '.repeat(10))
    const before = contentOf()
    expect(() => open(path)).toThrow('file is not a database')
    expect(contentOf()).toEqual(before)
  })
})

test('files of this program are told apart, and open again', () => {
  const [counters, ledger] = [join(directory, 'counters.db'), join(directory, 'ledger.db')]
  for (let nth = 0; nth < 2; nth++) {
    new CounterFile(counters).close()
    new LedgerStore(ledger).close()
  }
  expect(() => new CounterFile(ledger)).toThrow('it is a database of another program; name a file of counters')
  expect(() => new LedgerStore(counters)).toThrow('it is a database of another program; name a ledger')
  openForReading(ledger).database.close()
})

test('an empty database may become a file of this program', () => {
  const empty = new DatabaseSync(path)
  empty.exec('VACUUM')
  empty.close()
  new CounterFile(path).close()
  expect(() => new LedgerStore(path)).toThrow('another program')
})
