import { Hono, type Handler } from 'hono'
import { setImmediate } from 'node:timers/promises'
import type { ExpositionFormat, Registry } from '../../observe/telemetry/metrics/registry.ts'

const contentTypes: Readonly<Record<ExpositionFormat | 'protobuf', string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
  protobuf: 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited',
}

/** The metrics to expose, or a function that collects them for each scrape. */
export type MetricsSource = ExposedMetrics | (() => Promise<ExposedMetrics>)
type ExposedMetrics = Pick<Registry, 'expose' | 'exposeProtobuf'>

export function createStatsApp(metrics: MetricsSource): Hono {
  const app = new Hono()
  const expose: Handler = async (c) => {
    const format = chooseFormat(c.req.header('accept'))
    const registry = typeof metrics === 'function' ? await metrics() : metrics
    const pieces = format === 'protobuf' ? registry.exposeProtobuf() : registry.expose(format)
    return c.body(ReadableStream.from(encodePieces(pieces)), 200, { 'content-type': contentTypes[format] })
  }
  app.get('/metrics', expose)
  app.get('/stats/prometheus', expose)
  for (const path of ['/metrics', '/stats/prometheus']) app.all(path, (c) => c.text('method not allowed: use GET\n', 405, { allow: 'GET' }))
  app.notFound((c) => c.text('not found: metrics are at /metrics\n', 404))
  return app
}

/** Encodes pieces of text; yields to traffic after each. */
export async function* encodePieces(pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for await (const piece of pieces) {
    yield typeof piece === 'string' ? encoder.encode(piece) : piece
    await setImmediate()
  }
}

/** Chooses the format that the client prefers (RFC 9110 §12.5.1); default: text. */
function chooseFormat(accept = ''): ExpositionFormat | 'protobuf' {
  const quality = { 'application/openmetrics-text': 0, 'text/plain': 0, 'application/vnd.google.protobuf': 0 }
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    if (!(type in quality)) continue
    // Protobuf may be any message in any framing; without these parameters the client accepts ours.
    const isOther = (name: string, ours: string): boolean => parameters.some((parameter) => parameter.startsWith(`${name}=`) && parameter !== `${name}=${ours}`)
    if (type === 'application/vnd.google.protobuf' && (isOther('proto', 'io.prometheus.client.metricfamily') || isOther('encoding', 'delimited'))) continue
    const q = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)
    const known = type as keyof typeof quality
    quality[known] = Math.max(quality[known], q || 0)
  }
  const [openmetrics, text, protobuf] = Object.values(quality) as [number, number, number]
  if (protobuf > Math.max(openmetrics, text)) return 'protobuf'
  return openmetrics > text ? 'openmetrics' : 'text'
}
