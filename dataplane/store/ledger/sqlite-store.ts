import { closeSync, existsSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { checkSqliteFile, type SqliteForm } from '../../runtime/sqlite-file.ts'
import { positionOf, type LedgerBatch, type LedgerLabels } from './batch.ts'
import { bodyColumns, columns, labelColumns, valueColumns, type Column } from './columns.ts'
import type { Store } from './store.ts'

/** Version of the tables, in the file as `user_version`. Version 1 had all columns in one table, version 2 a row for each record. */
const VERSION = 3
const FORM: SqliteForm = {
  applicationId: 0x70786c67,
  what: 'ledger',
  version: VERSION,
  unmarked: {
    1: ['requests', 'time', 'gateway', 'weight'],
    2: ['records', 'time', 'labels', 'weight'],
    3: ['batches', 'first', 'last', 'labels', 'entries'],
  },
}
/** Batches that one step of the retention deletes, and rows of earlier versions. */
const PRUNE_BATCHES = 50
const PRUNE_ROWS = 5000
const BUSY_MS = 5000
/** More than a batch has. */
const MAX_ENTRIES = 65_536
const DAY_MS = 86_400_000
/** Labels whose ids are kept in memory. */
const MAX_LABELS = 10_000

/** A list of columns. */
export const quote = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(', ')
const define = (names: readonly Column[]): string => names.map((name) => `"${name}" ${name === 'status' ? 'INTEGER NOT NULL' : 'TEXT'}`).join(', ')
const placeholders = (count: number): string => Array.from({ length: count }, () => '?').join(', ')

/**
 * A row of `batches` has the entries of a `LedgerBatch`: a row for each record takes SQLite ten times as long to write. Labels, most of the
 * text of records, are stored once a day (`day`: days since 1970); `batches.labels` is the list of the ids of those that a batch has.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS labels (id INTEGER PRIMARY KEY, day INTEGER NOT NULL, ${define(labelColumns)}) STRICT;
  CREATE TABLE batches (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, labels TEXT NOT NULL, entries TEXT NOT NULL) STRICT;
  CREATE INDEX batches_last ON batches (last);
  CREATE TABLE bodies (id INTEGER PRIMARY KEY, ${define(bodyColumns)}) STRICT;
  CREATE TRIGGER batches_bodies AFTER DELETE ON batches
  BEGIN DELETE FROM bodies WHERE id >= OLD.id * ${MAX_ENTRIES} AND id < (OLD.id + 1) * ${MAX_ENTRIES}; END;`

const valueOf = (name: (typeof valueColumns)[number]): string => {
  const value = `json_extract(entry.value, '$[${positionOf(name)}]')`
  return name === 'time' ? `batches.first + ${value}` : name === 'weight' ? `coalesce(${value}, 1)` : value
}
const select = (values: readonly (typeof valueColumns)[number][]): string => values.map((name) => `${valueOf(name)} AS "${name}"`).join(', ')
const [time, ...otherValues] = valueColumns
// json_each has columns of its own, such as key.
const LABELS = labelColumns.map((name) => `labels."${name}"`).join(', ')
/** All records, in the order of `columns`. Reports do not read it: SQLite takes longer than JSON.parse. */
const RECORDS = `SELECT ${select([time])}, ${LABELS}, ${select(otherValues)}, ${quote(bodyColumns)}
  FROM batches CROSS JOIN json_each(batches.entries) AS entry
  CROSS JOIN labels ON labels.id = json_extract(batches.labels, '$[' || json_extract(entry.value, '$[0]') || ']')
  LEFT JOIN bodies ON bodies.id = batches.id * ${MAX_ENTRIES} + entry.key`

/** Tables with the records of a file of an earlier version, until the retention has deleted them. */
const oldTables: Readonly<Record<string, string>> = { requests_1: 'requests_1', records: 'records CROSS JOIN labels ON labels.id = records.labels' }

/** The records of the ledger in a SQLite file. Synchronous: for threads without traffic. */
export class LedgerStore implements Store {
  readonly #database: DatabaseSync
  readonly #insert: StatementSync
  readonly #insertLabels: StatementSync
  readonly #insertBodies: StatementSync
  readonly #prune: StatementSync
  /** Ids of labels that this process added on `#day`, by their JSON. */
  readonly #labels = new Map<string, number | bigint>()
  #day = 0

  /** Opens the file, and creates it readable only by its owner. Throws if it cannot be written, is no ledger, or is of a newer version. */
  constructor(path: string) {
    checkSqliteFile(path, FORM)
    closeSync(openSync(path, 'a', 0o600))
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS })
    try {
      this.#migrate()
      this.#insert = this.#database.prepare('INSERT INTO batches VALUES (NULL, ?, ?, ?, ?)')
      this.#insertLabels = this.#database.prepare(`INSERT INTO labels VALUES (NULL, ?, ${placeholders(labelColumns.length)})`)
      this.#insertBodies = this.#database.prepare('INSERT INTO bodies VALUES (?, ?, ?)')
      this.#prune = this.#database.prepare(`DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE last < ? LIMIT ${PRUNE_BATCHES})`)
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  #migrate(): void {
    const database = this.#database
    const version = readVersion(database)
    // Only a new file accepts auto_vacuum. Readers and the writer do not block each other with WAL.
    database.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    database.exec(`PRAGMA application_id = ${FORM.applicationId}`)
    if (version === VERSION) return
    this.#inTransaction(() => {
      // Another process may have done it since.
      if (readVersion(database) === VERSION) return
      if (version === 1) {
        addColumns(database)
        database.exec('ALTER TABLE requests RENAME TO requests_1')
      }
      database.exec(TABLES)
      this.#createView()
      database.exec(`PRAGMA user_version = ${VERSION}`)
    })
  }

  #createView(): void {
    this.#database.exec(`DROP VIEW IF EXISTS requests; CREATE VIEW requests AS ${[RECORDS, ...oldRecords(this.#database, columns)].join(' UNION ALL ')}`)
  }

  /** Adds rows in one transaction: all of them, or none. */
  add({ firstMs, lastMs, labels, entries, bodies }: LedgerBatch): void {
    this.#inTransaction(() => {
      const ids = this.#idsOf(labels, Math.floor(lastMs / DAY_MS))
      const { lastInsertRowid } = this.#insert.run(firstMs, lastMs, `[${ids.join(',')}]`, entries)
      for (const { entry, request, response } of bodies) this.#insertBodies.run(Number(lastInsertRowid) * MAX_ENTRIES + entry, request, response)
    })
  }

  /** The ids of labels, which are added if they are new on that day. */
  #idsOf(labels: readonly string[], day: number): (number | bigint)[] {
    if (day !== this.#day || this.#labels.size > MAX_LABELS) this.#labels.clear()
    this.#day = day
    return labels.map((each) => {
      let id = this.#labels.get(each)
      if (id === undefined) this.#labels.set(each, (id = this.#insertLabels.run(day, ...(JSON.parse(each) as LedgerLabels)).lastInsertRowid))
      return id
    })
  }

  /**
   * Deletes batches whose records all are older, some at a time, and returns their space to the file system.
   * @returns whether there may be more
   */
  prune(beforeMs: number): boolean {
    const before = Math.floor(beforeMs)
    const changes = Number(this.#prune.run(before).changes) + this.#pruneOld(before)
    if (changes === 0) return false
    // Batches have labels of the day of their last record.
    const labels = this.#database.prepare('DELETE FROM labels WHERE day < ?').run(Math.floor(before / DAY_MS))
    if (Number(labels.changes) > 0) this.#labels.clear()
    this.#database.exec('PRAGMA incremental_vacuum(2000)')
    return true
  }

  #pruneOld(before: number): number {
    const database = this.#database
    let deleted = 0
    for (const table of oldTablesOf(database)) {
      const oldest = `SELECT rowid FROM ${table} WHERE time < ? LIMIT ${PRUNE_ROWS}`
      deleted += Number(database.prepare(`DELETE FROM ${table} WHERE rowid IN (${oldest})`).run(before).changes)
      if (database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined) continue
      this.#inTransaction(() => {
        database.exec(`DROP VIEW requests; DROP TABLE ${table}`)
        this.#createView()
      })
    }
    return deleted
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
  for (const name of bodyColumns) if (!there.has(name)) database.exec(`ALTER TABLE requests ADD COLUMN ${define([name])}`)
}

const oldTablesOf = (database: DatabaseSync): string[] => {
  const exists = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
  return Object.keys(oldTables).filter((table) => exists.get(table) !== undefined)
}

/** Statements that read the records of earlier versions. */
export const oldRecords = (database: DatabaseSync, names: readonly Column[]): string[] =>
  oldTablesOf(database).map((table) => `SELECT ${quote(names)} FROM ${oldTables[table] ?? table}`)

/**
 * Opens the file of a ledger for reading, as it is now until it is closed. Without batches, in a file that only an earlier version has
 * written, all records are in `requests`. Throws if it does not exist or is no ledger.
 */
export function openForReading(path: string): { readonly database: DatabaseSync; readonly hasBatches: boolean } {
  if (!existsSync(path)) throw new Error('no such file')
  if (!checkSqliteFile(path, FORM)) throw new Error('the file is no ledger')
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
  try {
    // The writer may change tables between statements.
    database.exec('BEGIN')
    const version = readVersion(database)
    if (version === 0) throw new Error('the file is no ledger')
    return { database, hasBatches: version === VERSION }
  } catch (error) {
    database.close()
    throw error
  }
}

/** Version of a ledger; 0: the file is none. */
function readVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0)
}
