import { Hono, type Handler } from 'hono'
import { setImmediate } from 'node:timers/promises'
import type { ExpositionFormat, Registry } from '../telemetry/registry.ts'

const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export function createStatsApp(registry: Registry): Hono {
  const app = new Hono()
  const expose: Handler = (c) => {
    const format = chooseFormat(c.req.header('accept'))
    return c.body(ReadableStream.from(encodePieces(registry.expose(format))), 200, { 'content-type': contentTypes[format] })
  }
  app.get('/metrics', expose)
  app.get('/stats/prometheus', expose)
  app.notFound((c) => c.text('not found: metrics are at /metrics\n', 404))
  return app
}

/** Traffic goes on between pieces. */
export async function* encodePieces(pieces: Iterable<string> | AsyncIterable<string>): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for await (const piece of pieces) {
    yield encoder.encode(piece)
    await setImmediate()
  }
}

/** OpenMetrics for those who prefer it to plain text (RFC 9110 section 12.5.1), plain text for everyone else. */
export function chooseFormat(accept = ''): ExpositionFormat {
  const quality = { 'application/openmetrics-text': 0, 'text/plain': 0 }
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    if (type !== 'application/openmetrics-text' && type !== 'text/plain') continue
    const q = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)
    quality[type] = Math.max(quality[type], q || 0)
  }
  return quality['application/openmetrics-text'] > quality['text/plain'] ? 'openmetrics' : 'text'
}
