import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { LedgerLabels, LedgerRows } from './batch.ts'
import { addedColumns, columns, labelColumns, valueColumns, type Column } from './columns.ts'
import type { Store } from './store.ts'

/** Version of the tables, in the file as `user_version`. Version 1 had all columns in one table. */
const VERSION = 2
/** Rows that one step of the retention looks at. */
const PRUNE_ROWS = 5000
const BUSY_MS = 5000
/** An id of a record is at least its time in milliseconds times this, so that the ids of a time and later ones are known without an index. */
const IDS_PER_MS = 1000
const DAY_MS = 86_400_000
/** Labels whose ids are kept in memory. */
const MAX_LABELS = 10_000

const types: Readonly<Partial<Record<Column, string>>> = {
  time: 'INTEGER NOT NULL',
  status: 'INTEGER NOT NULL',
  input_tokens: 'INTEGER',
  output_tokens: 'INTEGER',
  cached_tokens: 'INTEGER',
  reasoning_tokens: 'INTEGER',
  cost: 'REAL',
  duration_ms: 'INTEGER NOT NULL',
  first_token_ms: 'INTEGER',
  weight: 'REAL NOT NULL',
}
const quote = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(', ')
const define = (names: readonly Column[]): string => names.map((name) => `"${name}" ${types[name] ?? 'TEXT'}`).join(', ')
const placeholders = (count: number): string => Array.from({ length: count }, () => '?').join(', ')

/** Labels, most of the text of records, are stored once a day. `day`: days since 1970. */
const TABLES = `
  CREATE TABLE labels (id INTEGER PRIMARY KEY, day INTEGER NOT NULL, ${define(labelColumns)}) STRICT;
  CREATE TABLE records (id INTEGER PRIMARY KEY, labels INTEGER NOT NULL, ${define(valueColumns)}) STRICT;`
const RECORDS = `SELECT ${quote(columns)} FROM records CROSS JOIN labels ON labels.id = records.labels`
/** Rows of a file of version 1, until the retention has deleted them. */
const OLD_TABLE = 'requests_1'
const OLD_ROWS = `SELECT ${quote(columns)} FROM ${OLD_TABLE}`

/** The records of the ledger in a SQLite file. Synchronous: for threads without traffic. */
export class LedgerStore implements Store {
  readonly #database: DatabaseSync
  readonly #insert: StatementSync
  readonly #insertLabels: StatementSync
  readonly #selectLastId: StatementSync
  readonly #selectNextId: StatementSync
  readonly #prune: StatementSync
  /** Ids of labels that this process added on `#day`. */
  readonly #labels = new Map<string, number | bigint>()
  #day = 0

  /** Opens the file, and creates it readable only by its owner. Throws if it cannot be written, is no ledger, or is of a newer version. */
  constructor(path: string) {
    closeSync(openSync(path, 'a', 0o600))
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS })
    try {
      this.#migrate()
      this.#insert = this.#database.prepare(`INSERT INTO records VALUES (${placeholders(2 + valueColumns.length)})`)
      this.#insertLabels = this.#database.prepare(`INSERT INTO labels VALUES (NULL, ${placeholders(1 + labelColumns.length)})`)
      this.#selectLastId = this.#database.prepare('SELECT max(id) AS id FROM records WHERE id < ?')
      this.#selectNextId = this.#database.prepare('SELECT min(id) AS id FROM records WHERE id > ?')
      this.#prune = this.#database.prepare('DELETE FROM records WHERE id IN (SELECT id FROM records ORDER BY id LIMIT ?) AND time < ?')
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  #migrate(): void {
    const database = this.#database
    const version = readVersion(database)
    if (version > VERSION) throw new Error(`the ledger has version ${version}; this program knows ${VERSION}`)
    // Only a new file accepts auto_vacuum. Readers and the writer do not block each other with WAL.
    database.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    if (version === VERSION) return
    this.#inTransaction(() => {
      // Another process may have done it since.
      if (readVersion(database) === VERSION) return
      if (version === 1) {
        addColumns(database)
        database.exec(`ALTER TABLE requests RENAME TO ${OLD_TABLE}`)
      }
      database.exec(`${TABLES} CREATE VIEW requests AS ${RECORDS}${version === 1 ? ` UNION ALL ${OLD_ROWS}` : ''}; PRAGMA user_version = ${VERSION}`)
    })
  }

  /** Adds rows in one transaction: all of them, or none. */
  add({ labels, rows }: LedgerRows): void {
    this.#inTransaction(() => {
      let id = this.#idBefore(rows)
      const ids = this.#idsOf(labels, Math.floor(id / IDS_PER_MS / DAY_MS))
      for (const [index, ...values] of rows) this.#insert.run(++id, ids[index] ?? null, ...values)
    })
  }

  /** The id after which there are ids for the rows. Ids of a clock that was ahead by more than a day do not count: the retention looks at the lowest ids. */
  #idBefore(rows: LedgerRows['rows']): number {
    const latestMs = rows.reduce((latest, [, time]) => Math.max(latest, Number(time)), 0)
    const lastId = (below: number): number => Math.max(latestMs * IDS_PER_MS, Number(this.#selectLastId.get(below)?.['id'] ?? 0))
    const id = lastId((latestMs + DAY_MS) * IDS_PER_MS)
    const next = this.#selectNextId.get(id)?.['id'] ?? Infinity
    return Number(next) <= id + rows.length ? lastId(Number.MAX_SAFE_INTEGER) : id
  }

  /** The ids of labels, which are added if they are new on that day. */
  #idsOf(labels: readonly LedgerLabels[], day: number): (number | bigint)[] {
    if (day !== this.#day || this.#labels.size > MAX_LABELS) this.#labels.clear()
    this.#day = day
    return labels.map((each) => {
      const key = JSON.stringify(each)
      let id = this.#labels.get(key)
      if (id === undefined) this.#labels.set(key, (id = this.#insertLabels.run(day, ...each).lastInsertRowid))
      return id
    })
  }

  /**
   * Deletes the oldest rows, some thousand at a time, and returns their space to the file system.
   * @returns whether there may be more
   */
  prune(beforeMs: number): boolean {
    const before = Math.floor(beforeMs)
    const changes = Number(this.#prune.run(PRUNE_ROWS, before).changes) + this.#pruneOld(before)
    if (changes === 0) return false
    // Records have labels of their own day or of a later one.
    const labels = this.#database.prepare('DELETE FROM labels WHERE day < ?').run(Math.floor(before / DAY_MS))
    if (Number(labels.changes) > 0) this.#labels.clear()
    this.#database.exec('PRAGMA incremental_vacuum(2000)')
    return true
  }

  #pruneOld(before: number): number {
    const database = this.#database
    if (!hasOldRows(database)) return 0
    const oldest = `SELECT rowid FROM ${OLD_TABLE} WHERE time < ? ORDER BY time LIMIT ?`
    const { changes } = database.prepare(`DELETE FROM ${OLD_TABLE} WHERE rowid IN (${oldest})`).run(before, PRUNE_ROWS)
    if (database.prepare(`SELECT 1 FROM ${OLD_TABLE} LIMIT 1`).get() === undefined)
      this.#inTransaction(() => database.exec(`DROP VIEW requests; DROP TABLE ${OLD_TABLE}; CREATE VIEW requests AS ${RECORDS}`))
    return Number(changes)
  }

  #inTransaction(run: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      run()
      this.#database.exec('COMMIT')
    } catch (error) {
      // SQLite ends the transaction itself after some errors.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      // Labels that were added are gone.
      this.#labels.clear()
      throw error
    }
  }

  close(): void {
    this.#database.close()
  }
}

/** Programs of an earlier version 1 did not store bodies. */
function addColumns(database: DatabaseSync): void {
  const there = new Set(
    database
      .prepare("SELECT name FROM pragma_table_info('requests')")
      .all()
      .map(({ name }) => name),
  )
  for (const name of addedColumns) if (!there.has(name)) database.exec(`ALTER TABLE requests ADD COLUMN ${define([name])}`)
}

const hasOldRows = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(OLD_TABLE) !== undefined

/** The records of a time, for `FROM`. Parameters: start and end, exclusive, Unix times in milliseconds. */
export function recordsBetween(database: DatabaseSync): string {
  const inTime = 'WHERE time >= ?1 AND time < ?2'
  if (readVersion(database) === 1) return `requests ${inTime}`
  const old = hasOldRows(database) ? ` UNION ALL ${OLD_ROWS} ${inTime}` : ''
  return `(${RECORDS} WHERE records.id >= ?1 * ${IDS_PER_MS}${old}) ${inTime}`
}

/** Opens the file of a ledger for reading, as it is now until it is closed. Throws if it does not exist or is no ledger. */
export function openForReading(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
  try {
    // The writer may change tables between statements.
    database.exec('BEGIN')
    const version = readVersion(database)
    if (version === 0) throw new Error('the file is no ledger')
    if (version > VERSION) throw new Error(`the ledger has version ${version}; this program knows ${VERSION}`)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function readVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
}
