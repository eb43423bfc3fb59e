import { ProtoWriter } from '../otlp/writer.ts'

/** A metric family for the protobuf exposition. */
export interface ExposedFamily {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram' | 'info'
  readonly help: string
  readonly labelNames: readonly string[]
  readonly series: Iterable<{ readonly values: readonly string[]; readonly series: unknown }>
}

/** Values of a histogram series. */
interface Histogram {
  readonly bounds: readonly number[]
  readonly buckets: readonly number[]
  readonly sum: number
  readonly count: number
}

/** Numbers of io.prometheus.client.MetricType. */
const types: Readonly<Record<ExposedFamily['kind'], number>> = { counter: 0, gauge: 1, info: 1, histogram: 4 }

const metric = new ProtoWriter(4096)
const part = new ProtoWriter(256)
const bucket = new ProtoWriter(64)

/** Encodes a length-delimited MetricFamily message, the protobuf format of Prometheus. */
export function encodeFamily({ name, kind, help, labelNames, series }: ExposedFamily): Buffer {
  const family = new ProtoWriter(16 * 1024)
  family.stringField(0x0a, name)
  family.stringField(0x12, help)
  family.varintField(0x18, types[kind])
  for (const entry of series) {
    metric.clear()
    for (const [i, label] of labelNames.entries()) {
      part.clear()
      part.stringField(0x0a, label)
      part.stringField(0x12, entry.values[i] ?? '')
      metric.messageField(0x0a, part)
    }
    part.clear()
    if (kind === 'histogram') writeHistogram(entry.series as Histogram)
    else part.doubleField(0x09, (entry.series as { value: number }).value)
    metric.messageField(kind === 'histogram' ? 0x3a : kind === 'counter' ? 0x1a : 0x12, part)
    family.messageField(0x22, metric)
  }
  const delimited = new ProtoWriter(family.length + 8)
  delimited.varint(family.length)
  delimited.raw(family.bytes)
  return delimited.bytes
}

function writeHistogram({ bounds, buckets, sum, count }: Histogram): void {
  part.varintField(0x08, count)
  part.doubleField(0x11, sum)
  let cumulative = 0
  for (const [i, bound] of [...bounds, Infinity].entries()) {
    cumulative += buckets[i] ?? 0
    bucket.clear()
    bucket.varintField(0x08, cumulative)
    bucket.doubleField(0x11, bound)
    part.messageField(0x1a, bucket)
  }
}
