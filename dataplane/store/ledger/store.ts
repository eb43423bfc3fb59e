import type { SpendRow } from '#api/management/spend.ts'
import type { PostgresSettings } from '../postgres/settings.ts'
import type { LedgerBatch } from './batch.ts'
import type { Dimension } from './columns.ts'

/** A SQLite file. */
interface SqliteSettings {
  readonly kind: 'sqlite'
  readonly path: string
}

/** Whose records are written and reported. */
interface Owned {
  readonly owner: string
}

/** A PostgreSQL database. */
export interface PostgresStoreSettings extends PostgresSettings, Owned {
  readonly kind: 'postgres'
}

/** A ClickHouse database, by its HTTP interface: the same fields. */
export interface ClickHouseSettings extends PostgresSettings, Owned {
  readonly kind: 'clickhouse'
}

/** Where records are stored. Plain data, because threads receive it. */
export type StoreSettings = SqliteSettings | PostgresStoreSettings | ClickHouseSettings

/** Where records are stored, for logs. Without credentials. */
export const describeStore = (store: StoreSettings): string => (store.kind === 'sqlite' ? store.path : `${store.host}:${store.port}/${store.database}`)

/** Rows with an id that is the same when they are added again. */
export interface StoredBatch extends LedgerBatch {
  /** Number of the batch in this process. */
  readonly number: number
}

/** The records of the ledger. Used by the one thread that writes. */
export interface Store {
  /** Adds all rows or none. A batch that was stored before is not stored again. Throws or rejects with the cause. */
  add(batch: StoredBatch): void | Promise<void>
  /** Deletes old rows, some thousand at a time. Returns whether there may be more. Throws or rejects with the cause. */
  prune(beforeMs: number): boolean | Promise<boolean>
  close(): void | Promise<void>
}

/** The store cannot be reached. The same batch may succeed later. */
export class StoreUnreachableError extends Error {
  override readonly name = 'StoreUnreachableError'
}

/** The requests of a report. */
export interface SpendQuery {
  readonly by: readonly Dimension[]
  /** Start, Unix time in milliseconds. */
  readonly sinceMs: number
  /** End, exclusive. */
  readonly untilMs: number
}

/** Groups of a report, the highest cost first. */
export interface SpendGroups {
  readonly rows: SpendRow[]
  /** Groups of the lowest cost are missing. */
  readonly isCut: boolean
}
