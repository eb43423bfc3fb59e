import type { Exchange } from '../request/exchange/exchange.ts'
import { logFields } from '../observe/telemetry/access-log/fields.ts'

/** Fields that were added to the log record of an exchange; throws if there is no exchange. */
export function logFieldsOf(exchange: Exchange | undefined): Readonly<Record<string, unknown>> {
  if (exchange === undefined) throw new Error('no exchange has finished')
  return logFields.get(exchange) ?? {}
}
