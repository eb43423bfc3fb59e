import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { addedColumns, columns, type Column } from './columns.ts'
import type { Store, StoredBatch } from './store.ts'

/** Version of the table, in the file as `user_version`. */
const VERSION = 1
/** Rows that one step of the retention deletes. */
const PRUNE_ROWS = 5000
const BUSY_MS = 5000

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
const quoted = columns.map((name) => `"${name}"`)
const definitions = columns.map((name) => `"${name}" ${types[name] ?? 'TEXT'}`)

/** The records of the ledger in a SQLite file. Synchronous: for threads without traffic. */
export class LedgerStore implements Store {
  readonly #database: DatabaseSync
  readonly #insert: StatementSync
  readonly #prune: StatementSync

  /** Opens the file, and creates it readable only by its owner. Throws if it cannot be written, is no ledger, or is of a newer version. */
  constructor(path: string) {
    closeSync(openSync(path, 'a', 0o600))
    this.#database = new DatabaseSync(path, { timeout: BUSY_MS })
    try {
      this.#migrate()
      this.#insert = this.#database.prepare(`INSERT INTO requests (${quoted.join(', ')}) VALUES (${quoted.map(() => '?').join(', ')})`)
      this.#prune = this.#database.prepare('DELETE FROM requests WHERE rowid IN (SELECT rowid FROM requests WHERE time < ? ORDER BY time LIMIT ?)')
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
    if (version === VERSION) return this.#addColumns()
    database.exec(`BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS requests (${definitions.join(', ')}) STRICT;
      CREATE INDEX IF NOT EXISTS requests_time ON requests (time);
      PRAGMA user_version = ${VERSION};
      COMMIT`)
  }

  /** A program of the earlier version still works with the file: it does not name the columns. */
  #addColumns(): void {
    const there = new Set(
      this.#database
        .prepare("SELECT name FROM pragma_table_info('requests')")
        .all()
        .map(({ name }) => name),
    )
    for (const name of addedColumns) if (!there.has(name)) this.#database.exec(`ALTER TABLE requests ADD COLUMN "${name}" ${types[name] ?? 'TEXT'}`)
  }

  /** Adds rows in one transaction: all of them, or none. */
  add({ rows }: Pick<StoredBatch, 'rows'>): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      for (const row of rows) this.#insert.run(...row)
      this.#database.exec('COMMIT')
    } catch (error) {
      // SQLite ends the transaction itself after some errors.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  /**
   * Deletes the oldest rows, some thousand at a time, and returns their space to the file system.
   * @returns whether there may be more
   */
  prune(beforeMs: number): boolean {
    const { changes } = this.#prune.run(Math.floor(beforeMs), PRUNE_ROWS)
    if (Number(changes) === 0) return false
    this.#database.exec('PRAGMA incremental_vacuum(2000)')
    return Number(changes) === PRUNE_ROWS
  }

  close(): void {
    this.#database.close()
  }
}

/** Opens the file of a ledger for reading. Throws if it does not exist or is no ledger. */
export function openForReading(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
  try {
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
