/**
 * Counts the LLM tokens of one request for one limiter. Created per request by a local or global rate limit policy; holds the
 * amount that the request was admitted with.
 */
export interface TokenBudget {
  /**
   * Called once, after the prompt guards and before the request goes to a provider. Charges `estimate`, the counted tokens of the
   * prompt, or 0 if they were not counted. Throws a ProxyError to reject: RATE_LIMIT with the x-ratelimit headers, or another one
   * if the limiter cannot be reached.
   */
  check(estimate: number): void | Promise<void>
  /** Called at most once after a successful `check`: corrects the charge to the actual number of tokens. Never throws. */
  settle(tokens: number): void
}

/**
 * The token limits of a request (traffic.md §8.9, llm.md §11). Rate limit policies set them in `exchange.tokenBudgets`;
 * undefined there: no limits. Only LLM requests use them:
 *
 *     await exchange.tokenBudgets?.check(estimate)      // throws the 429; after the guards, before the upstream call
 *     exchange.tokenBudgets?.settle(input + output)     // when the usage is known, or 0 when the response ended without
 *
 * Retries and failovers check again without being charged again. Without `settle` the estimate is charged. The rate limit policies
 * set the x-ratelimit headers themselves, on rejections and on all other responses.
 */
export class TokenBudgets {
  readonly #budgets: TokenBudget[] = []
  #state: 'new' | 'admitted' | 'settled' = 'new'

  /** Adds the limit of another policy; checked after the existing ones. */
  add(budget: TokenBudget): void {
    this.#budgets.push(budget)
  }

  /** Rejects with a ProxyError if a limit is exhausted; the limits before it have been charged the estimate. */
  async check(estimate = 0): Promise<void> {
    if (this.#state !== 'new') return
    for (const budget of this.#budgets) await budget.check(estimate)
    this.#state = 'admitted'
  }

  /** Charges the tokens of the exchange, input and output. Ignored after the first call and without a successful `check`. */
  settle(tokens: number): void {
    if (this.#state !== 'admitted') return
    this.#state = 'settled'
    for (const budget of this.#budgets) budget.settle(tokens)
  }
}
