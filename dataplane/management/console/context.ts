import type { OpenAPIHono } from '@hono/zod-openapi'
import type { ConfigSnapshot } from '../../config/store.ts'
import type { SpendGroups, SpendQuery } from '../../store/ledger/store.ts'
import type { Logging } from '../../observe/telemetry/log.ts'
import type { TraceFilter, TraceReport } from '../../observe/trace/tracer.ts'
import type { EditTarget } from './edits/edits.ts'
import type { LiveStats } from './live.ts'
import type { CallThreads } from './thread.ts'
import type { VersionHistory } from './versions.ts'

/** A Hono app whose routes are in the OpenAPI document. */
export type ConsoleApp = OpenAPIHono

/** What the management API reads. */
export interface ConsoleContext {
  /** Name of the process: that of its pod. */
  readonly name: string
  readonly version: string
  readonly startedAtMs: number
  readonly workers: number
  readonly logging: Logging
  readonly live: LiveStats
  readonly versions: VersionHistory
  snapshot(): ConfigSnapshot
  /** The config dump as JSON in pieces, secrets redacted. */
  writeConfig(): AsyncIterable<string>
  /** A copy of a value without the credentials of the config. */
  redact(value: unknown): unknown
  /** The same for a message of a kind; `secrets`: Secret messages. */
  redactMessage(kind: string, message: object, secrets: readonly object[]): unknown
  /** Ports that could not be opened. */
  failures(): readonly Error[]
  /** Ports of the config file that anyone can use: `file:line:column: path: problem [code]`. */
  notes(): readonly string[]
  trace(filter: TraceFilter, timeoutMs: number, signal: AbortSignal): Promise<TraceReport | undefined>
  readonly threads: CallThreads
  /** What the console may change; a text: why it may not. */
  readonly edits: EditTarget | string
  /** Reads reports of the ledger; undefined: there is none. */
  readonly ledger: { spend(query: SpendQuery): Promise<SpendGroups & { readonly store?: string }> } | undefined
}
