import { evalBool } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { viewSource } from '../../../request/expression/peer.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { changeFields } from '../attributes.ts'
import { writeExchangeFields, writeTcpFields, type TcpSession } from './fields.ts'
import type { FieldSink } from '../field-sink.ts'
import { startLine } from './line.ts'
import type { Logging } from '../log.ts'
import { exportLog } from '../otlp/log-record.ts'
import type { CompiledAccessLog } from '../gateway.ts'
import { toEpochMs } from '../../../runtime/time.ts'
import { traceOf } from '../trace.ts'
import { gatewayTelemetry } from '../gateway.ts'

export { clearLogField, setLogField, type ContributedField, type TcpSession } from './fields.ts'

export interface AccessLog {
  /** Writes the line of a finished exchange, unless the scope `request` is off, and exports its record if its Gateway says so. */
  logExchange(exchange: Exchange): void
  logTcpSession(session: TcpSession): void
}

const ACCESS_LOG_SCOPE = 'request'

/** The access log (traffic.md §11): one line per exchange on standard output, in the format of the process's logs. */
export function createAccessLog(logging: Logging): AccessLog {
  const { writer, format } = logging
  const logger = logging.logger(ACCESS_LOG_SCOPE)
  let requests = 0

  /** Returns what writes the fields; undefined if the filter excludes the record. */
  const fieldsOf = (log: CompiledAccessLog | undefined, view: () => object, write: (sink: FieldSink) => void): ((sink: FieldSink) => void) | undefined => {
    if (log === undefined || (log.filter === undefined && log.changes === undefined)) return write
    const context = view()
    if (log.filter !== undefined && !evalBool(log.filter, context)) return undefined
    return log.changes === undefined ? write : changeFields(log.changes, context, write)
  }

  return {
    logExchange(exchange) {
      const log = gatewayTelemetry.get(exchange)?.accessLog
      const isOn = logger.isEnabled('info')
      if (!isOn && log?.exporter === undefined) return
      const write = fieldsOf(
        log,
        () => new ExchangeView(exchange),
        (sink) => writeExchangeFields(exchange, sink),
      )
      if (write === undefined) return
      const epochMs = toEpochMs(exchange.finishedAtMs)
      if (isOn) {
        const line = startLine(format, ACCESS_LOG_SCOPE, epochMs)
        write(line)
        if (logger.isEnabled('debug')) {
          line.plain('connection.id', exchange.connection.id)
          line.plain('request.id', ++requests)
        }
        writer.write(line.text)
      }
      if (log?.exporter !== undefined) exportLog(log.exporter, epochMs, traceOf(exchange), write)
    },
    logTcpSession(session) {
      const log = session.telemetry?.accessLog
      const isOn = logger.isEnabled('info')
      if (!isOn && log?.exporter === undefined) return
      const write = fieldsOf(
        log,
        () => ({ source: viewSource(session.connection) }),
        (sink) => writeTcpFields(session, sink),
      )
      if (write === undefined) return
      const epochMs = toEpochMs(session.finishedAtMs)
      if (isOn) {
        const line = startLine(format, ACCESS_LOG_SCOPE, epochMs)
        write(line)
        writer.write(line.text)
      }
      if (log?.exporter !== undefined) exportLog(log.exporter, epochMs, undefined, write)
    },
  }
}
