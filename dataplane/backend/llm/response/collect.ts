import { readsMember, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { createRecordQuery } from '../../../observe/telemetry/policy.ts'
import { gatewayTelemetry } from '../../../observe/telemetry/gateway.ts'

const recordsReadText = createRecordQuery(readsText)

/** Whether log or trace expressions read the text of the response. */
export function recordsText(exchange: Pick<Exchange, 'slots'>): boolean {
  return recordsReadText(gatewayTelemetry.get(exchange))
}

/** Index expressions (`llm["completion"]`) are found by their source text; reading `llm` itself reads all members. */
function readsText({ reads, source }: Program): boolean {
  if (!readsMember({ reads }, 'llm')) return false
  return /completion|toolCalls/.test(source) || reads.has('*') || ![...reads].some((member) => member.startsWith('llm.'))
}
