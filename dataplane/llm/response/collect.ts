import { readsMember, type Program } from '#api/cel/index.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { asksRecords } from '../../telemetry/policy.ts'
import { gatewayTelemetry } from '../../telemetry/gateway.ts'

const recordsReadText = asksRecords(readsText)

/**
 * Whether the text of a streamed answer is kept until its end, which costs every event: for log and trace expressions that read
 * it, and for token budgets, which estimate what a stream that breaks off has cost.
 */
export function collectsText(exchange: Pick<Exchange, 'tokenBudgets' | 'slots'>): boolean {
  return exchange.tokenBudgets !== undefined || recordsReadText(gatewayTelemetry.get(exchange))
}

/** Members by index (`llm["completion"]`) are known by their word only; the whole of `llm` has everything. */
function readsText({ reads, source }: Program): boolean {
  if (!readsMember({ reads }, 'llm')) return false
  return /completion|toolCalls/.test(source) || reads.has('*') || ![...reads].some((member) => member.startsWith('llm.'))
}
