import type { Program } from '#api/cel/index.ts'
import { defineSlot } from '../../request/exchange/slot.ts'
import type { BodyRecording } from '../../request/expression/record.ts'
import type { AttributeChanges } from './attributes.ts'
import type { OtlpExporter } from './otlp/exporter.ts'

/** Compiled log and trace settings of a Gateway. */
export interface GatewayTelemetry {
  readonly accessLog: CompiledAccessLog | undefined
  readonly tracing: CompiledTracing | undefined
  /** Bodies to record; undefined if no log or trace expression reads one. */
  readonly bodies?: BodyRecording | undefined
}

export interface CompiledAccessLog {
  readonly filter: Program | undefined
  readonly changes: AttributeChanges | undefined
  readonly exporter: OtlpExporter | undefined
}

export interface CompiledTracing {
  readonly changes: AttributeChanges | undefined
  readonly exporter: OtlpExporter
  /** For requests without a trace context; undefined: never sampled. */
  readonly randomSampling: Program | undefined
  /** For requests with a trace context; undefined: always sampled. */
  readonly clientSampling: Program | undefined
  readonly random: () => number
}

/** Telemetry settings of the Gateway that received the request; undefined if no policy sets any. */
export const gatewayTelemetry = defineSlot<GatewayTelemetry>('telemetry', { isForked: false })
