import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { CALL_SECONDS, defineMetrics } from './area.ts'
import type { Protocol } from '../outcome.ts'
import type { HistogramSeries, Registry } from './registry.ts'
import { recordClientSpan, traceparentOf } from '../trace.ts'

export type CallKind = 'Primary' | 'Policy' | 'Mirror'
export type CallSubtype = 'Http' | 'Llm' | 'Mcp' | 'ExtAuthz' | 'ExtProc' | 'Guardrail' | 'RateLimit'

/** Subtype of the call to the backend, by protocol of the request. */
export const primarySubtype: Readonly<Record<Protocol, CallSubtype>> = { http: 'Http', tcp: 'Http', a2a: 'Http', mcp: 'Mcp', llm: 'Llm' }

/** Seconds from an outbound call to its response head, by kind and subtype. */
export const callSeconds = defineMetrics((registry) => {
  const family = registry.histogram(`${METRIC_PREFIX}upstream_call_duration_seconds`, 'Time from an outbound call to its response head.', CALL_SECONDS, [
    'kind',
    'subtype',
  ])
  const known = new Map<string, HistogramSeries>()
  return (kind: CallKind, subtype: CallSubtype): HistogramSeries => {
    const key = `${kind} ${subtype}`
    let series = known.get(key)
    if (series === undefined) known.set(key, (series = family.series(kind, subtype)))
    return series
  }
})

/** Details of a call for its span; undefined members are omitted. */
export interface CallDetails {
  /** Name of the span; default: the subtype. */
  readonly name?: string | undefined
  /** Attributes of the span besides those below. */
  readonly fields?: Readonly<Record<string, string | undefined>> | undefined
  readonly method?: string | undefined
  readonly host?: string | undefined
  readonly path?: string | undefined
  /** `host:port` of the endpoint. */
  readonly endpoint?: string | undefined
}

/** An outbound call in progress. */
export interface OutboundCall {
  /** Value for the header `traceparent`; undefined: send none. */
  readonly traceparent: string | undefined
  /** Call once, at the response head or failure. */
  end(outcome: { readonly status?: number | undefined; readonly error?: Error | undefined }): void
}

/** Starts an outbound call on behalf of a request: measures its duration, and records a client span if the request is traced. */
export function beginCall(registry: Registry, exchange: Exchange | undefined, kind: CallKind, subtype: CallSubtype, details: CallDetails = {}): OutboundCall {
  const startedAtMs = performance.now()
  return {
    traceparent: exchange && traceparentOf(exchange),
    end(outcome) {
      const endedAtMs = performance.now()
      callSeconds(registry)(kind, subtype).observe((endedAtMs - startedAtMs) / 1000)
      if (exchange !== undefined) recordClientSpan(exchange, { kind, subtype, startedAtMs, endedAtMs, ...details, ...outcome })
    },
  }
}
