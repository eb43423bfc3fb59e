/**
 * What telemetry costs per request, in microseconds. Run: `node dataplane/observe/telemetry/cost.bench.ts`
 * The writer goes nowhere: the numbers are the event loop's share.
 */
import { Exchange, type Connection, type RouteLabels } from '../../request/exchange/exchange.ts'
import { HeaderList } from '../../http/headers.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { createAccessLog } from './access-log/access-log.ts'
import { writeExchangeFields } from './access-log/fields.ts'
import { createLogging, type LogFormat } from './log.ts'
import { createMetrics } from './metrics/metrics.ts'
import { OtlpExporter } from './otlp/exporter.ts'
import { exportLog } from './otlp/log-record.ts'
import { exportSpans } from './otlp/span.ts'
import { ProtoWriter } from './otlp/writer.ts'
import { sampleTrace } from './policy.ts'
import type { CompiledTracing } from './gateway.ts'
import { traceOf } from './trace.ts'
import type { LineWriter } from './writer.ts'

const ROUNDS = 200_000
const ROUTES = 64

const connection: Connection = {
  id: 7,
  bind: '8080/default/web',
  localAddress: '127.0.0.1',
  localPort: 8080,
  remoteAddress: '10.1.2.3',
  remotePort: 51234,
  tls: undefined,
  listener: undefined,
}
const routes: RouteLabels[] = Array.from({ length: ROUTES }, (_, i) => ({
  gateway: 'default/web',
  listener: 'http',
  route: `default/route${i}`,
  rule: 'rule0',
}))

function makeExchange(i: number): Exchange {
  const exchange = new Exchange(
    connection,
    {
      method: 'GET',
      target: `/api/v1/items/${i % 97}?page=2`,
      scheme: 'http',
      authority: 'shop.example.com',
      version: 'HTTP/1.1',
      headers: new HeaderList(),
      body: undefined,
      upgrade: undefined,
      acceptsTrailers: false,
    },
    performance.now(),
  )
  exchange.labels = routes[i % ROUTES]
  exchange.backend = 'default/shop'
  exchange.endpoint = '10.0.0.9:8080'
  exchange.response = { status: 200, headers: new HeaderList(), body: undefined, upgraded: undefined }
  exchange.upstreamStartedAtMs = exchange.startedAtMs + 0.1
  exchange.finishedAtMs = exchange.startedAtMs + 3.2
  exchange.responseBytes = 92
  return exchange
}

const exchanges = Array.from({ length: 4096 }, (_, i) => makeExchange(i))

/** Encodes what it gets, as the real writer does. */
function encodingWriter(): LineWriter {
  let waiting = ''
  return {
    dropped: 0,
    write(line) {
      waiting += line
      if (waiting.length > 32 * 1024) {
        Buffer.from(waiting)
        waiting = ''
      }
      return true
    },
    flush: () => Promise.resolve(),
    flushSync: () => undefined,
  }
}

function measure(name: string, work: (exchange: Exchange) => void): void {
  let best = Infinity
  for (let round = 0; round < 5; round++) {
    // CPU time: what else the machine does is not ours.
    const { user, system } = process.cpuUsage()
    for (let i = 0; i < ROUNDS; i++) work(exchanges[i & 4095] as Exchange)
    const used = process.cpuUsage()
    best = Math.min(best, (used.user - user + used.system - system) / ROUNDS)
  }
  console.log(`${name.padEnd(32)} ${best.toFixed(3)} us`)
}

const metrics = createMetrics({ version: 'bench' })
measure('metrics', (exchange) => metrics.recordExchange(exchange))
for (const format of ['text', 'json'] satisfies LogFormat[]) {
  const log = createAccessLog(createLogging({ writer: encodingWriter(), format }))
  measure(`access log, ${format}`, (exchange) => log.logExchange(exchange))
}
const silent = createAccessLog(createLogging({ writer: encodingWriter(), level: 'request=off' }))
measure('access log, off', (exchange) => silent.logExchange(exchange))

/** Takes records as the real one does, and sends nothing. */
function silentExporter(): OtlpExporter {
  const batch = new ProtoWriter(256 * 1024)
  const exporter = new OtlpExporter({ signal: 'traces', protocol: 'GRPC', path: '', resources: [], registry: metrics.registry })
  exporter.add = (record) => {
    if (batch.length > 256 * 1024) {
      Buffer.from(batch.bytes)
      batch.clear()
    }
    batch.messageField(0x12, record)
  }
  return exporter
}

const tracing: CompiledTracing = {
  changes: undefined,
  exporter: silentExporter(),
  randomSampling: compileExpression('true', 'request'),
  clientSampling: undefined,
  random: Math.random,
}
measure('tracing: sampling and header', (exchange) => {
  exchange.request.headers.remove('traceparent')
  sampleTrace(exchange, tracing)
})
measure('tracing: two spans', (exchange) => {
  const trace = traceOf(exchange)
  if (trace !== undefined) exportSpans(exchange, trace, tracing)
})
measure('access log, OTLP record', (exchange) => exportLog(tracing.exporter, 1.7e12, traceOf(exchange), (sink) => writeExchangeFields(exchange, sink)))
