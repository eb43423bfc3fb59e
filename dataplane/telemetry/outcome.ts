import type { Reason } from '#api/errors.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot } from '../exchange/slot.ts'

/** What the backend is spoken to as; `backend.protocol` of expressions. */
export type Protocol = 'http' | 'tcp' | 'a2a' | 'mcp' | 'llm'
const protocolSlot = defineSlot<Protocol>('protocol')

/** Whoever takes a request over as more than HTTP says so. */
export function setProtocol(exchange: Exchange, protocol: Protocol): void {
  protocolSlot.set(exchange, protocol)
}

export function protocolOf(exchange: Exchange): Protocol {
  return protocolSlot.get(exchange) ?? 'http'
}

/** Why the client got what it got: the `reason` of logs and metrics (traffic.md §6). */
export function reasonOf(exchange: Exchange): Reason {
  if (exchange.error !== undefined) return exchange.error.row.reason
  if (exchange.cutBy === 'upstream') return 'UpstreamFailure'
  if (exchange.cutBy === 'timeout') return 'Timeout'
  return exchange.isLocalAnswer ? 'DirectResponse' : 'Upstream'
}

/** Status that went to the client; 0 when it left before there was one. */
export function statusOf(exchange: Exchange): number {
  return exchange.response?.status ?? 0
}
