import type { FieldSink } from '../field-sink.ts'
import type { ActiveTrace } from '../trace.ts'
import { AttributeSink } from './attributes.ts'
import type { OtlpExporter } from './exporter.ts'
import { ProtoWriter } from './writer.ts'

const INFO = 9
const scratch = new ProtoWriter(4096)

/** Encodes and queues the record of a finished request (opentelemetry.proto.logs.v1.LogRecord). */
export function exportLog(exporter: OtlpExporter, epochMs: number, trace: ActiveTrace | undefined, write: (sink: FieldSink) => void): void {
  scratch.clear()
  scratch.nanosField(0x09, epochMs)
  scratch.varintField(0x10, INFO)
  scratch.stringField(0x1a, 'INFO')
  write(new AttributeSink(scratch, 0x32))
  if (trace !== undefined) {
    scratch.fixed32Field(0x45, trace.flags)
    scratch.hexField(0x4a, trace.traceId)
    scratch.hexField(0x52, trace.spanId)
  }
  scratch.nanosField(0x59, epochMs)
  exporter.add(scratch)
}
