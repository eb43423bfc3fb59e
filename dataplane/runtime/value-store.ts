import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

/** Values that other processes share, such as those in Redis. Any of them may be missing at any time. */
export interface ValueStore {
  /** Resolves with undefined if the value is missing or larger than `maxBytes`, with null if it cannot be read in time. Never rejects. */
  get(key: string, maxBytes: number): Promise<Buffer | undefined | null>
  /** Sets a value for a time, and does not wait. */
  set(key: string, value: Buffer, ttlMs: number): void
  remove(key: string): void
}

/** A Lua script of Redis. */
export interface Script {
  readonly source: string
  /** SHA-1 of the source, by which the server knows it. */
  readonly sha: string
}

export const toScript = (source: string): Script => ({ source, sha: createHash('sha1').update(source).digest('hex') })

/** `mayRun`: the script may have run, or may run later. */
export type ScriptOutcome<T = unknown> = { readonly value: T } | { readonly error: string; readonly mayRun: boolean }

/** Runs scripts on values that other processes share; nothing else changes them while a script runs. */
export interface ScriptStore {
  /**
   * Resolves with the error if the script failed, or did not respond in time. Scripts of one thread run in their order. Never rejects.
   * Texts of the value are Buffers.
   */
  evaluate(script: Script, keys: readonly string[], args: readonly string[]): Promise<ScriptOutcome>
}

/** The store of a thread by its registry; none: the process has no such store. */
export const valueStores = new WeakMap<object, ValueStore>()
export const scriptStores = new WeakMap<object, ScriptStore>()

/** Tables and functions of a program in a database. */
export interface Schema {
  /** Table with one row, whose column `version` is compared. */
  readonly name: string
  readonly version: number
  /** Statements that create what does not exist. */
  readonly source: string
}

/** Runs statements in a database that other processes share. */
export interface StatementStore {
  /**
   * Resolves with the rows, or with the error if the statement failed or did not respond in time. Creates the tables first if they do not exist. Never rejects.
   * @param timeoutMs longest time; default: that of a request
   */
  query(schema: Schema, text: string, values?: readonly unknown[], timeoutMs?: number): Promise<ScriptOutcome<readonly Readonly<Record<string, unknown>>[]>>
}

/** The database of a thread by its registry. */
export const statementStores = new WeakMap<object, StatementStore>()
