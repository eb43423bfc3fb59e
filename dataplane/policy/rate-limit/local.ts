import { ProxyError } from '../../exchange/error.ts'
import type { Allowance, Bucket } from './bucket.ts'
import { headersOf } from './headers.ts'
import type { TokenBudget } from '../../exchange/token-budgets.ts'

/** Asks all in order. Those before the one that refuses have been charged. `tightest`: the one with the least left, or that refused. */
export function takeAll(buckets: readonly Bucket[], nowMs: number, count?: number): Allowance | undefined {
  let tightest: Allowance | undefined
  for (const bucket of buckets) {
    const allowance = bucket.take(nowMs, count)
    if (!allowance.isAdmitted) return allowance
    tightest = tighter(tightest, allowance)
  }
  return tightest
}

export function tighter(a: Allowance | undefined, b: Allowance | undefined): Allowance | undefined {
  return a === undefined || b === undefined ? (a ?? b) : b.remaining < a.remaining ? b : a
}

/** One request against the token entries of one policy. */
export class LocalTokenBudget implements TokenBudget {
  readonly #buckets: readonly Bucket[]
  readonly #nowMs: () => number
  #estimate = 0
  /** Of the admission; undefined: nobody asked, this was no LLM request. */
  allowance: Allowance | undefined = undefined

  constructor(buckets: readonly Bucket[], nowMs: () => number) {
    this.#buckets = buckets
    this.#nowMs = nowMs
  }

  check(estimate: number): void {
    this.#estimate = estimate
    this.allowance = takeAll(this.#buckets, this.#nowMs(), estimate)
    if (this.allowance?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: headersOf(this.allowance) })
  }

  settle(tokens: number): void {
    const nowMs = this.#nowMs()
    for (const bucket of this.#buckets) bucket.charge(nowMs, tokens - this.#estimate)
  }
}
