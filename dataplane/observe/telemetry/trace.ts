import { randomFillSync } from 'node:crypto'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { defineSlot } from '../../request/exchange/slot.ts'

/** Trace context of a request (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string
  /** Parent span in the header: 16 lower-case hexadecimal digits. */
  readonly spanId: string
  /** Trace flags: the last two digits of the header. */
  readonly flags: number
}

/** An outbound call on behalf of a traced request. */
export interface ClientSpan {
  readonly kind: string
  readonly subtype: string
  /** Default: the subtype. */
  readonly name?: string | undefined
  /** More attributes. */
  readonly fields?: Readonly<Record<string, string | undefined>> | undefined
  /** Milliseconds of `performance.now()`. */
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly method?: string | undefined
  readonly host?: string | undefined
  readonly path?: string | undefined
  readonly endpoint?: string | undefined
  readonly status?: number | undefined
  readonly error?: Error | undefined
}

/** Trace of a request that was sampled by this process. */
export interface ActiveTrace extends TraceContext {
  /** Span of the client; undefined if the trace starts here. */
  readonly parentId: string | undefined
  /** Whether the spans are exported; otherwise the context is only propagated. */
  readonly isRecorded: boolean
  readonly calls: ClientSpan[]
}

/** Bounds the memory that a request may use for spans. */
const MAX_CALLS = 64
const SAMPLED = 1
const traceSlot = defineSlot<ActiveTrace>('traceContext')

/** Trace of a request; undefined if it was not sampled. */
export function traceOf(exchange: Exchange): ActiveTrace | undefined {
  return traceSlot.get(exchange)
}

/** Header `traceparent` for calls on behalf of a request. */
export function traceparentOf(exchange: Exchange): string | undefined {
  const trace = traceOf(exchange)
  return trace && formatTraceparent(trace)
}

export function recordClientSpan(exchange: Exchange, span: ClientSpan): void {
  const trace = traceOf(exchange)
  if (trace?.isRecorded === true && trace.calls.length < MAX_CALLS) trace.calls.push(span)
}

/** Starts the span of a request, in the client's trace or in a new one. Rewrites the header for the upstream. */
export function startTrace(exchange: Exchange, incoming: TraceContext | undefined): ActiveTrace {
  const trace: ActiveTrace = {
    traceId: incoming?.traceId ?? randomId(16),
    spanId: randomId(8),
    flags: incoming?.flags ?? SAMPLED,
    parentId: incoming?.spanId,
    isRecorded: incoming === undefined || (incoming.flags & SAMPLED) !== 0,
    calls: [],
  }
  traceSlot.set(exchange, trace)
  exchange.request.headers.set('traceparent', formatTraceparent(trace))
  return trace
}

const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)

/** Reads the trace context of a request. Ignores malformed and repeated headers; reads the known part of later versions. */
export function readTraceparent({ request }: Exchange): TraceContext | undefined {
  const values = request.headers.getAll('traceparent')
  if (values.length !== 1) return undefined
  const [, version, traceId = NO_TRACE, spanId = NO_SPAN, flags = '', more] = pattern.exec(values[0] ?? '') ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined) || traceId === NO_TRACE || spanId === NO_SPAN) return undefined
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

export function formatTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`
}

const pool = Buffer.alloc(4096)
let used = pool.length

/** Creates a random, non-zero id in hexadecimal digits. Uses a pool, because a system call per id would cost more than the rest of a span. */
export function randomId(bytes: 8 | 16): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + bytes)
  used += bytes
  return /[^0]/.test(id) ? id : randomId(bytes)
}
