import { USD_UNITS, type CompiledLimit } from '#api/budget-limit.ts'
import type { LlmDemand } from '../../request/exchange/token-budgets.ts'
import type { Allowance } from '../rate-limit/bucket.ts'
import { toAmount, type Counter, type Reservation } from './counter.ts'
import { QuotaCounter } from './quota.ts'
import { RemoteCounter } from './remote-counter.ts'
import { ShareCounter } from './share.ts'

/** What an LLM request may use. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly priceOf: LlmDemand['priceOf']
}

/** What a request is charged already. */
export interface Charged {
  /** Whether the request itself is charged. */
  readonly isCharged: boolean
  /** Whether the usage of an LLM request is reserved. */
  readonly isReserved: boolean
}

/** Whether a limit admits a request in any case: its model has no price; that of the response may have one. */
export const lacksPrice = ({ unit }: CompiledLimit, usage: Usage | undefined): boolean => unit === 'usd' && usage?.priceOf === undefined

/** What a request needs of a limit, at most all of it: clients choose their maximum. Undefined: it is not charged to the limit. */
export function amountOf({ unit, amount }: CompiledLimit, { isCharged, isReserved }: Charged, usage: Usage | undefined): number | undefined {
  if (unit === 'requests') return isCharged ? undefined : 1
  if (usage === undefined || isReserved) return undefined
  const { input, output, priceOf } = usage
  const needed = unit === 'tokens' ? input + output : Math.ceil((priceOf?.(input, output) ?? 0) * USD_UNITS)
  return Math.min(amount, toAmount(needed))
}

/** Whether nothing is left, without a reservation. */
export function isUsedUp(counter: Counter, { amount }: CompiledLimit, nowMs: number): boolean {
  if (counter instanceof QuotaCounter) return counter.isUsedUp(nowMs)
  if (counter instanceof ShareCounter || counter instanceof RemoteCounter) return (counter.read(nowMs)?.used ?? 0) >= amount
  return !counter.reserve(nowMs, amount, 0, 1).isAdmitted
}

/** Dollars are stated as dollars. */
export function toAllowance({ unit, amount: own }: CompiledLimit, { isAdmitted, used, taken, resetMs, assigned: amount = own }: Reservation): Allowance {
  const scale = unit === 'usd' ? USD_UNITS : 1
  return { isAdmitted, limit: amount / scale, remaining: Math.floor(Math.max(0, amount - used - taken) / scale), resetMs }
}
