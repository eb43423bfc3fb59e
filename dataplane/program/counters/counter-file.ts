import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { checkSqliteFile, type SqliteForm } from '../../runtime/sqlite-file.ts'

/** Version of the table, in the file as `user_version`. */
const VERSION = 2
const FORM: SqliteForm = {
  applicationId: 0x70786263,
  what: 'file of counters',
  version: VERSION,
  unmarked: { 1: ['counters', 'key', 'even', 'odd', 'alert', 'changed_ms'] },
}
/** Counters of older changes are of windows that are over. */
const KEPT_MS = 800 * 86_400_000
/** Counters that are restored, the latest first: fewer than memory has cells, so that each finds one. */
const MAX_RESTORED = 40_000

/** A counter: digest of its name, and its words. */
export type SavedCounter = readonly [key: bigint, ...words: bigint[]]

/** Counters of budgets in a SQLite file. Synchronous: for threads without traffic. */
export class CounterFile {
  readonly #database: DatabaseSync
  readonly #replace: StatementSync

  /**
   * Opens the file, and creates it readable only by its owner. Throws if it cannot be written, is no such file, is of a newer version, or is used by
   * another process: two processes would replace each other's counters.
   */
  constructor(path: string) {
    checkSqliteFile(path, FORM)
    closeSync(openSync(path, 'a', 0o600))
    this.#database = new DatabaseSync(path, { timeout: 1000 })
    try {
      this.#open()
      this.#replace = this.#database.prepare('INSERT OR REPLACE INTO counters (key, even, odd, alert, latest, changed_ms) VALUES (?, ?, ?, ?, ?, ?)')
      // The key is the id of the row, which a write returns.
      this.#replace.setReadBigInts(true)
    } catch (error) {
      this.#database.close()
      throw (error as { errcode?: number }).errcode === 5 ? new Error('another process uses it', { cause: error }) : error
    }
  }

  #open(): void {
    const database = this.#database
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    if (Number(database.prepare('PRAGMA user_version').get()?.['user_version']) === 1)
      database.exec(`BEGIN IMMEDIATE; ALTER TABLE counters ADD COLUMN latest INTEGER NOT NULL DEFAULT 0; PRAGMA user_version = ${VERSION}; COMMIT`)
    // The lock is taken by the first write, and kept.
    database.exec(`BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS counters (key INTEGER PRIMARY KEY, even INTEGER NOT NULL, odd INTEGER NOT NULL, alert INTEGER NOT NULL,
        changed_ms INTEGER NOT NULL, latest INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE INDEX IF NOT EXISTS counters_changed ON counters (changed_ms);
      PRAGMA user_version = ${VERSION};
      PRAGMA application_id = ${FORM.applicationId};
      COMMIT`)
  }

  /** The counters, the latest first. */
  read(nowMs = Date.now()): SavedCounter[] {
    this.#database.prepare('DELETE FROM counters WHERE changed_ms < ?').run(nowMs - KEPT_MS)
    const select = this.#database.prepare('SELECT key, even, odd, alert, latest FROM counters ORDER BY changed_ms DESC LIMIT ?')
    select.setReadBigInts(true)
    return (select.all(MAX_RESTORED) as Record<'key' | 'even' | 'odd' | 'alert' | 'latest', bigint>[]).map(({ key, even, odd, alert, latest }) => [
      key,
      even,
      odd,
      alert,
      latest,
    ])
  }

  /** Replaces counters in one transaction: all of them, or none. */
  write(counters: readonly SavedCounter[], nowMs = Date.now()): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      for (const [key, even = 0n, odd = 0n, alert = 0n, latest = 0n] of counters) this.#replace.run(key, even, odd, alert, latest, nowMs)
      this.#database.exec('COMMIT')
    } catch (error) {
      // SQLite ends the transaction itself after some errors.
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  close(): void {
    this.#database.close()
  }
}
