import { ProxyError } from '../../exchange/error.ts'
import type { Allowance, Budget } from './bucket.ts'
import { headersOf } from './headers.ts'
import type { TokenBudget } from '../../exchange/token-budgets.ts'

/** Charges all buckets in order, up to the first that is exhausted. Returns the allowance of that one, else of the one with the least left. */
export function chargeAll(buckets: readonly Budget[], nowMs: number, count?: number): Allowance | undefined {
  let tightest: Allowance | undefined
  for (const bucket of buckets) {
    const allowance = bucket.take(nowMs, count)
    if (!allowance.isAdmitted) return allowance
    tightest = tighter(tightest, allowance)
  }
  return tightest
}

/** The allowance with the least left. */
export function tighter(a: Allowance | undefined, b: Allowance | undefined): Allowance | undefined {
  return a === undefined || b === undefined ? (a ?? b) : b.remaining < a.remaining ? b : a
}

/** The token budgets of one policy for one request. */
export class LocalTokenBudget implements TokenBudget {
  readonly #buckets: readonly Budget[]
  readonly #nowMs: () => number
  #estimate = 0
  /** Allowance when the request was admitted; undefined if this is no LLM request. */
  allowance: Allowance | undefined = undefined

  constructor(buckets: readonly Budget[], nowMs: () => number) {
    this.#buckets = buckets
    this.#nowMs = nowMs
  }

  check(estimate: number): void {
    this.#estimate = estimate
    this.allowance = chargeAll(this.#buckets, this.#nowMs(), estimate)
    if (this.allowance?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: headersOf(this.allowance) })
  }

  settle(tokens: number): void {
    const nowMs = this.#nowMs()
    for (const bucket of this.#buckets) bucket.charge(nowMs, tokens - this.#estimate)
  }
}
