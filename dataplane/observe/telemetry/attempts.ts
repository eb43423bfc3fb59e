import type { Exchange } from '../../request/exchange/exchange.ts'
import { defineSlot } from '../../request/exchange/slot.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { ClientSpan } from './trace.ts'

const attemptsSlot = defineSlot<Attempt[]>('attempts')

/** Records one of several attempts. Requests with a single attempt need none: the exchange has its timings. */
export function recordAttempt(exchange: Exchange, startedAtMs: number, result: ResponseHead | Error): void {
  const { request, endpoint } = exchange
  const attempt: Attempt = {
    startedAtMs,
    endedAtMs: performance.now(),
    method: request.method,
    host: request.authority,
    path: request.target,
    endpoint,
    ...(result instanceof Error ? { error: result } : { status: result.status }),
  }
  const attempts = attemptsSlot.get(exchange)
  if (attempts === undefined) attemptsSlot.set(exchange, [attempt])
  else attempts.push(attempt)
}

export type Attempt = Omit<ClientSpan, 'kind' | 'subtype'>

/** All attempts of a retried request; empty if there was only one. */
export function attemptsOf(exchange: Exchange): readonly Attempt[] {
  return attemptsSlot.get(exchange) ?? none
}

const none: readonly Attempt[] = []
