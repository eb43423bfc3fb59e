import type { BindStatus, WorkerDrain } from './data.ts'
import type { ThreadCall } from '../../management/console/thread.ts'
import type { LedgerBatch } from '../../store/ledger/batch.ts'
import type { QuotaBucket } from '../../runtime/quotas.ts'
import type { ShareBucket } from '../../runtime/shares.ts'
import type { KeyValueCall, KeyValueResult } from '../../runtime/key-value.ts'
import type { FamilyDump } from '../../observe/telemetry/metrics/registry.ts'
import type { TraceFilter, TraceReport } from '../../observe/trace/tracer.ts'

/** Requests of the main thread, by method: what it sends, and what the worker returns. */
export interface WorkerMethods {
  /** Computes a version of the config. It is applied by `commit`, or dropped by `discard`. */
  prepare: { readonly body: EncodedConfig; readonly result: undefined }
  commit: { readonly body: undefined; readonly result: BindStatus }
  discard: { readonly body: undefined; readonly result: undefined }
  /** The metrics of the worker. False: between scrapes. */
  collect: { readonly body: boolean; readonly result: FamilyDump[] }
  /** The next request that matches; undefined: none arrived in time, or `cancelTrace` was sent. */
  trace: { readonly body: TraceRequest; readonly result: TraceReport | undefined }
  cancelTrace: { readonly body: number; readonly result: undefined }
  /** Sets the log levels. */
  level: { readonly body: string; readonly result: undefined }
  /** Finishes requests in flight; returns when all connections are closed. */
  drain: { readonly body: WorkerDrain; readonly result: undefined }
  /** Sends what waits for collectors, and the last lines of the log. Sent when all workers are drained: they may need each other until then. */
  finish: { readonly body: undefined; readonly result: undefined }
  memory: { readonly body: undefined; readonly result: NodeJS.MemoryUsage }
  /** A call of the management API. */
  console: { readonly body: ThreadCall; readonly result: unknown }
}

export interface TraceRequest {
  readonly trace: number
  readonly filter: TraceFilter
  readonly timeoutMs: number
}

/** A change of the config as JSON in UTF-8: written once, read by all workers. */
export interface EncodedConfig {
  readonly json: SharedArrayBuffer
}

export type Method = keyof WorkerMethods

/** A message to a worker. */
export type ToWorker =
  | { readonly type: 'request'; readonly id: number; readonly method: Method; readonly body: unknown }
  /** The answer to `claim`; `error` is the message of a BindError. */
  | { readonly type: 'claimed'; readonly id: number; readonly error?: string }
  /** The answer to `keyValue`; `error` is the message of a TypeError. */
  | { readonly type: 'keyValueResult'; readonly id: number; readonly result?: KeyValueResult; readonly error?: string }
  /** The answer to `share` and `quota`: the quota server has responded, or not. */
  | { readonly type: 'shareResult'; readonly id: number; readonly hasResponse: boolean }

/** A message from a worker. */
export type FromWorker =
  /** The worker receives requests. */
  | { readonly type: 'online' }
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly error: string }
  /** Rows for the ledger. */
  | { readonly type: 'ledger'; readonly batch: LedgerBatch }
  /** Lines of the log. */
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'binds'; readonly status: BindStatus }
  /** Wants to listen on a port. */
  | { readonly type: 'claim'; readonly id: number; readonly port: number; readonly addresses: readonly string[] | undefined }
  | { readonly type: 'release'; readonly port: number }
  /** Asks for a larger share of a budget. */
  | { readonly type: 'share'; readonly id: number; readonly bucket: ShareBucket }
  /** Asks for an assignment of a rate limit quota service. */
  | { readonly type: 'quota'; readonly id: number; readonly bucket: QuotaBucket }
  /** An operation on the values of a plugin; without `call` they are dropped. */
  | { readonly type: 'keyValue'; readonly id: number; readonly plugin: string; readonly call: KeyValueCall | undefined }
