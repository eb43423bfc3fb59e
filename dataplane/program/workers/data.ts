import type { UpstreamsSpec } from '#gen/config/types.ts'
import { SharedHeldBytes } from '../../http/budget.ts'
import type { LedgerSettings } from '../../store/ledger/settings.ts'
import type { PeerAddress } from '../../backend/mcp/session/sharing.ts'
import type { PostgresSettings } from '../../store/postgres/settings.ts'
import type { RedisSettings } from '../../store/redis/settings.ts'
import { allocateSessions, type SessionMemory } from './sessions.ts'
import { allocateCells } from '../../runtime/shared-cells.ts'
import { allocateRing } from '../../runtime/shared-ring.ts'
import { Dialing } from '../../net/upstream/dial.ts'
import { SharedHealthTable } from '../../net/upstream/balancer/shared-health.ts'

/** Memory that all threads of the data plane share. */
export interface SharedMemory {
  /** SharedCells: budgets of rate limits, health of endpoints. */
  readonly cells: SharedArrayBuffer
  /** SharedCells: budgets of rate limits by key. Separate, because clients may choose keys. */
  readonly keyedCells: SharedArrayBuffer
  /** SharedCells: counters of budgets. Separate, so that keys of rate limits cannot displace them. */
  readonly budgetCells: SharedArrayBuffer
  /** SharedRing of RESPONSE_BYTES: responses of LLM providers that are stored. */
  readonly responses: SharedArrayBuffer
  /** Counts evictions; see SharedHealthTable. */
  readonly epoch: SharedArrayBuffer
  /** SharedHeldBytes: the main thread, then the workers. */
  readonly held: SharedArrayBuffer
  /** See Dialing. */
  readonly dialed: SharedArrayBuffer
  /** See SharedSessions. */
  readonly sessions: SessionMemory
  /** Time of the last beat of each worker, nanoseconds of `process.hrtime.bigint()`. */
  readonly beats: SharedArrayBuffer
}

/** Cells of shared memory: 2 MiB if all are in use. */
const CELLS = 32_768
/** Keys of rate limits, and of budgets, that are counted at once: 4 MiB if all are in use. */
const KEYED_CELLS = 65_536
/** Bytes of stored responses of LLM providers. Only what is written uses memory. */
export const RESPONSE_BYTES = 32 * 1024 * 1024

/** Memory of the counters of budgets. */
export const allocateBudgets = (): SharedArrayBuffer => allocateCells(KEYED_CELLS)

export const allocateMemory = (workers: number): SharedMemory => ({
  cells: allocateCells(CELLS),
  keyedCells: allocateCells(KEYED_CELLS),
  budgetCells: allocateBudgets(),
  responses: allocateRing(RESPONSE_BYTES),
  dialed: Dialing.allocate(),
  sessions: allocateSessions(),
  epoch: SharedHealthTable.allocateEpoch(),
  held: SharedHeldBytes.allocate(workers + 1),
  beats: new SharedArrayBuffer(workers * BigInt64Array.BYTES_PER_ELEMENT),
})

/** What a worker thread receives at its start. */
export interface WorkerData {
  /** Index of the worker, from 0. A replacement has the index of the one it replaces. */
  readonly index: number
  /** Number of the thread, from 1; no two threads have the same. */
  readonly number: number
  readonly count: number
  readonly memory: SharedMemory
  readonly version: string
  readonly log: { readonly level: string; readonly format: 'json' | 'text' }
  readonly nodeName: string
  /** Keys of MCP session ids. */
  readonly keys: readonly Uint8Array[]
  /** Where the data plane takes messages of other replicas; undefined: nowhere. */
  readonly peer: PeerAddress | undefined
  /** By it the workers recognize requests that return to this gateway. */
  readonly loopSecret: Uint8Array
  /** Authenticates workers to each other: hexadecimal digits. */
  readonly relaySecret: string
  readonly isInPod: boolean
  /** As in ProcessSettings. */
  readonly upstreams: UpstreamsSpec
  readonly xdsAddress: string | undefined
  /** Ports of the management endpoints. */
  readonly managementPorts: readonly number[]
  /** Undefined: caches store in memory. */
  readonly redis: RedisSettings | undefined
  /** Undefined: budgets with `store: Postgres` cannot be charged. */
  readonly postgres: PostgresSettings | undefined
  /** Undefined: requests are not recorded. */
  readonly ledger: { readonly settings: LedgerSettings; readonly pending: SharedArrayBuffer } | undefined
}

/** State of the ports of a worker. */
export interface BindStatus {
  /** As `Binds.pending`. */
  readonly pending: readonly string[]
  /** Messages of the errors of ports that could not be opened. */
  readonly failures: readonly string[]
}

export interface WorkerDrain {
  readonly minDrainMs: number
  readonly maxDrainMs: number
}
