import { setTimeout as wait } from 'node:timers/promises'
import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { createAccessLog, type TcpSession } from './access-log/access-log.ts'
import type { Logging } from './log.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { exportMetrics } from './otlp/exporter.ts'
import { exportSpans } from './otlp/span.ts'
import { addProcessMetrics } from './metrics/process.ts'
import { traceOf } from './trace.ts'
import { gatewayTelemetry } from './gateway.ts'

/** How long the end of the process waits for collectors. */
const FLUSH_MS = 2000

/** All that the data plane tells about itself. */
export interface Telemetry {
  readonly logging: Logging
  readonly metrics: Metrics
  /** The one call per finished exchange (an OnFinish): counts it and writes its access log line. Never throws. */
  onFinished(exchange: Exchange): void
  /** The same for a relayed TCP connection. */
  onTcpFinished(session: TcpSession): void
  /** Sends what waits for collectors; gives up after two seconds. */
  flushExports(): Promise<void>
  /** Stops sampling and writes out what is buffered. */
  close(): Promise<void>
}

/** `version` is what `build_info` shows. */
export function createTelemetry(logging: Logging, options: { version: string }): Telemetry {
  const metrics = createMetrics(options)
  const { registry } = metrics
  const stopSampling = addProcessMetrics(registry)
  const accessLog = createAccessLog(logging)
  const log = logging.logger('telemetry')
  const dropped = registry.counter(`${METRIC_PREFIX}log_lines_dropped_total`, 'Log lines dropped because standard output was blocked.').series()
  registry.onCollect(() => {
    dropped.value = logging.writer.dropped
  })
  return {
    logging,
    metrics,
    onFinished(exchange) {
      // Telemetry must not take a connection down with it.
      try {
        if (exchange.finishedAtMs === 0) exchange.finishedAtMs = performance.now()
        metrics.recordExchange(exchange)
        const trace = traceOf(exchange)
        const tracing = gatewayTelemetry.get(exchange)?.tracing
        if (tracing !== undefined && trace?.isRecorded === true) exportSpans(exchange, trace, tracing)
        accessLog.logExchange(exchange)
      } catch (error) {
        log.error('exchange not recorded', { error })
      }
    },
    onTcpFinished(session) {
      try {
        accessLog.logTcpSession(session)
      } catch (error) {
        log.error('connection not recorded', { error })
      }
    },
    async flushExports() {
      const flushed = Promise.all([...exportMetrics(registry).pending].map((exporter) => exporter.flush()))
      await Promise.race([flushed, wait(FLUSH_MS, undefined, { ref: false })])
    },
    close() {
      stopSampling()
      return logging.writer.flush()
    },
  }
}
