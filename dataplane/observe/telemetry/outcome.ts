import type { Reason } from '#api/errors.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { defineSlot } from '../../request/exchange/slot.ts'

/** Application protocol of a request; `backend.protocol` in expressions. */
export type Protocol = 'http' | 'tcp' | 'a2a' | 'mcp' | 'llm'
const protocolSlot = defineSlot<Protocol>('protocol')

/** Called by services that handle a request as a protocol on top of HTTP. */
export function setProtocol(exchange: Exchange, protocol: Protocol): void {
  protocolSlot.set(exchange, protocol)
}

export function protocolOf(exchange: Exchange): Protocol {
  return protocolSlot.get(exchange) ?? 'http'
}

/** The `reason` of the response in logs and metrics (traffic.md §6). */
export function reasonOf(exchange: Exchange): Reason {
  if (exchange.error !== undefined) return exchange.error.row.reason
  if (exchange.cutBy === 'upstream') return 'UpstreamFailure'
  if (exchange.cutBy === 'timeout') return 'Timeout'
  return exchange.isLocalAnswer ? 'DirectResponse' : 'Upstream'
}

/** Status of the response; 0 if the client disconnected before there was one. */
export function statusOf(exchange: Exchange): number {
  return exchange.response?.status ?? 0
}

/** Results of guards, the strongest first. */
const guardActions = ['Reject', 'Mask', 'FailOpen', 'Allow'] as const
type GuardAction = (typeof guardActions)[number]

/** The strongest result of the guards of a request; undefined: no guard has checked it. */
export const guardOutcome = defineSlot<GuardAction>('guardOutcome')

/** Called with the result of each guard. */
export function recordGuard(exchange: Exchange, action: GuardAction): void {
  const known = guardOutcome.get(exchange)
  if (known === undefined || guardActions.indexOf(action) < guardActions.indexOf(known)) guardOutcome.set(exchange, action)
}
