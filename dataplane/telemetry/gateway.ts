import type { Program } from '#api/cel/index.ts'
import { defineSlot } from '../exchange/slot.ts'
import type { BodyRecording } from '../expression/record.ts'
import type { AttributeChanges } from './attributes.ts'
import type { OtlpExporter } from './otlp/exporter.ts'

/** What the frontend policies of a Gateway say about its records. */
export interface GatewayTelemetry {
  readonly accessLog: CompiledAccessLog | undefined
  readonly tracing: CompiledTracing | undefined
  /** Undefined: their expressions look at no body. */
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
  /** Undefined: never. */
  readonly randomSampling: Program | undefined
  /** Undefined: always. */
  readonly clientSampling: Program | undefined
  readonly random: () => number
}

/** Telemetry settings of the Gateway that received the request; undefined if no policy sets any. */
export const gatewayTelemetry = defineSlot<GatewayTelemetry>('telemetry', { isForked: false })
