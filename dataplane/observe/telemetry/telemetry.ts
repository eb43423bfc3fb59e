import { setTimeout as wait } from 'node:timers/promises'
import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { prepareRecorded } from '../../request/expression/record.ts'
import { createAccessLog, type TcpSession } from './access-log/access-log.ts'
import type { Logging } from './log.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { exportMetrics } from './otlp/exporter.ts'
import { exportSpans } from './otlp/span.ts'
import { addProcessMetrics, addThreadMetrics } from './metrics/process.ts'
import { traceOf } from './trace.ts'
import { gatewayTelemetry } from './gateway.ts'
import { ownRequests } from './own-requests.ts'

/** Milliseconds that shutdown waits for collectors. */
const FLUSH_MS = 2000

/** Logs, metrics and traces of the data plane. */
export interface Telemetry {
  readonly logging: Logging
  readonly metrics: Metrics
  /** Called with each finished exchange while it is set; see dataplane/management/console/tail.ts. */
  observe: ((exchange: Exchange) => void) | undefined
  /** Records a finished exchange in metrics, traces and the access log. Called once per exchange; never throws. */
  onFinished(exchange: Exchange): void
  /** Records a finished TCP relay. */
  onTcpFinished(session: TcpSession): void
  /** Sends queued records to collectors; gives up after two seconds. */
  flushExports(): Promise<void>
  /** Stops sampling and writes buffered lines. */
  close(): Promise<void>
}

/** Options of the telemetry. */
export interface TelemetryOptions {
  /** Shown in `build_info`. */
  readonly version: string
  /** A worker thread, which does not report the metrics of the process. */
  readonly isWorker?: boolean | undefined
}

/** Creates the telemetry of a process or of one of its worker threads. */
export function createTelemetry(logging: Logging, options: TelemetryOptions): Telemetry {
  const metrics = createMetrics(options)
  const { registry } = metrics
  const stopSampling = options.isWorker === true ? addThreadMetrics(registry) : addProcessMetrics(registry)
  const accessLog = createAccessLog(logging)
  const log = logging.logger('telemetry')
  const dropped = registry.counter(`${METRIC_PREFIX}log_lines_dropped_total`, 'Log lines dropped because standard output was blocked.').series()
  registry.onCollect(() => {
    dropped.value = logging.writer.dropped
  })
  const reportFailure = (error: unknown): void => log.error('exchange not recorded', { code: 'PX4011', error })
  const writeRecords = (exchange: Exchange): void => {
    const trace = traceOf(exchange)
    const tracing = gatewayTelemetry.get(exchange)?.tracing
    if (tracing !== undefined && trace?.isRecorded === true) exportSpans(exchange, trace, tracing)
    accessLog.logExchange(exchange)
  }
  const telemetry: Telemetry = {
    logging,
    metrics,
    observe: undefined,
    onFinished(exchange) {
      // A failure of telemetry must not break the connection.
      try {
        if (exchange.finishedAtMs === 0) exchange.finishedAtMs = performance.now()
        metrics.recordExchange(exchange)
        if (telemetry.observe !== undefined) telemetry.observe(exchange)
        const preparing = gatewayTelemetry.get(exchange)?.bodies === undefined ? undefined : prepareRecorded(exchange)
        if (preparing === undefined) writeRecords(exchange)
        else preparing.then(() => writeRecords(exchange)).catch(reportFailure)
      } catch (error) {
        reportFailure(error)
      }
    },
    onTcpFinished(session) {
      try {
        accessLog.logTcpSession(session)
      } catch (error) {
        log.error('connection not recorded', { code: 'PX4011', error })
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
  ownRequests.set(registry, (exchange) => {
    try {
      telemetry.observe?.(exchange)
    } catch (error) {
      reportFailure(error)
    }
  })
  return telemetry
}
