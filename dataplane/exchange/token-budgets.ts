/**
 * What one limiter counts of a request's LLM tokens, in tokens. Made by a rate limit policy for each request, local or global;
 * it holds what that request was admitted with.
 */
export interface TokenBudget {
  /**
   * Asked once, before the request goes to a provider and after the prompt guards. `estimate` is the number of tokens that the
   * prompt was counted to have, 0 where nobody counted; it is charged at once. Throws a ProxyError (RATE_LIMIT with the
   * x-ratelimit headers, or another for a limiter that cannot be asked) to refuse.
   */
  check(estimate: number): void | Promise<void>
  /** Called at most once, after `check` has admitted: charges what the exchange really took, the estimate counted in. Never throws. */
  settle(tokens: number): void
}

/**
 * The token limits that a request is under (traffic.md §8.9, llm.md §11). Rate limit policies leave them in
 * `exchange.tokenBudgets`; undefined there: no such limits. Only who speaks to an LLM calls them, so that other traffic is never
 * touched:
 *
 *     await exchange.tokenBudgets?.check(estimate)      // throws the 429; after the guards, before the upstream call
 *     exchange.tokenBudgets?.settle(input + output)     // when the usage is known, or 0 when the answer ended without
 *
 * Retries and failovers ask again and are not counted again. What was not settled costs the estimate. The x-ratelimit headers are
 * the policies' own work, on refusals and on all other answers.
 */
export class TokenBudgets {
  readonly #budgets: TokenBudget[] = []
  #state: 'new' | 'admitted' | 'settled' = 'new'

  /** The limits of a further policy; asked after those that are there. */
  add(budget: TokenBudget): void {
    this.#budgets.push(budget)
  }

  /** Rejects with a ProxyError when one of the limits is used up; those before it have been charged the estimate. */
  async check(estimate = 0): Promise<void> {
    if (this.#state !== 'new') return
    for (const budget of this.#budgets) await budget.check(estimate)
    this.#state = 'admitted'
  }

  /** The tokens of the whole exchange, input and output. The first call counts; without an admission nothing does. */
  settle(tokens: number): void {
    if (this.#state !== 'admitted') return
    this.#state = 'settled'
    for (const budget of this.#budgets) budget.settle(tokens)
  }
}
