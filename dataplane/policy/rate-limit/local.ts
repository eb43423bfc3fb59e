import { ProxyError } from '../../request/exchange/error.ts'
import type { Allowance, Budget } from './bucket.ts'
import { headersOf } from './headers.ts'
import type { TokenBudget } from '../../request/exchange/token-budgets.ts'

/** Charges all buckets in order, up to the first that is exhausted. Returns the allowance of that one, else of the one with the least left. */
export function chargeAll(buckets: readonly Budget[], nowMs: number): Allowance | undefined {
  let tightest: Allowance | undefined
  for (const bucket of buckets) {
    const allowance = bucket.take(nowMs)
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
  /** By bucket: the time at which it is refilled after the estimate was taken. */
  #refillsAtMs: readonly number[] = []
  /** Allowance when the request was admitted; undefined if this is no LLM request. */
  allowance: Allowance | undefined = undefined

  constructor(buckets: readonly Budget[], nowMs: () => number) {
    this.#buckets = buckets
    this.#nowMs = nowMs
  }

  check(estimate: number): void {
    const nowMs = this.#nowMs()
    const refillsAtMs: number[] = []
    let tightest: Allowance | undefined
    for (const bucket of this.#buckets) {
      const allowance = bucket.take(nowMs, estimate)
      if (!allowance.isAdmitted) {
        for (const taken of this.#buckets.slice(0, refillsAtMs.length)) taken.charge(nowMs, -estimate)
        this.allowance = allowance
        throw new ProxyError('RATE_LIMIT', { headers: headersOf(allowance) })
      }
      tightest = tighter(tightest, allowance)
      refillsAtMs.push(nowMs + allowance.resetMs)
    }
    this.#estimate = estimate
    this.#refillsAtMs = refillsAtMs
    this.allowance = tightest
  }

  /** What is left of an estimate is not returned after a refill, which has filled the bucket without it. */
  settle(tokens: number): void {
    if (Number.isNaN(tokens)) return
    const nowMs = this.#nowMs()
    const change = tokens - this.#estimate
    for (const [nth, bucket] of this.#buckets.entries()) if (change > 0 || nowMs < (this.#refillsAtMs[nth] ?? 0)) bucket.charge(nowMs, change)
  }
}
