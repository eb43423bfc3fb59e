/** Most output tokens of an answer to a request that does not limit them. */
export const DEFAULT_OUTPUT_TOKENS = 4096

/** The facts about an LLM request that its price and its limits depend on. */
export interface LlmDemand {
  /** Name of the model at the provider, if it is known. */
  readonly model: string | undefined
  /** Tokens of the prompt, estimated by its length. */
  readonly promptTokens: number
  /** Most output tokens of an answer; default: 4096. */
  readonly maxTokens: number | undefined
  /** Answers that the client asks for, each with up to `maxTokens`; default: 1. */
  readonly answers?: number
  /** Price of tokens in US dollars; undefined: the model has no price. */
  readonly priceOf: ((inputTokens: number, outputTokens: number) => number) | undefined
}

/**
 * Counts the LLM tokens of one request for one limiter. Created per request by a local or global rate limit policy, or by a budget; holds
 * the amount that the request was admitted with.
 */
export interface TokenBudget {
  /**
   * Called once, after the prompt guards and before the request goes to a provider. Charges `estimate`, the counted tokens of the
   * prompt, or 0 if they were not counted. Throws a ProxyError to reject: RATE_LIMIT with the x-ratelimit headers, or another one
   * if the limiter cannot be reached. Without `demand`, the gateway does not interpret the request.
   */
  check(estimate: number, demand?: LlmDemand): void | Promise<void>
  /** Called for each further attempt: what applies to its model only is charged too. Throws as `check`; then nothing stays charged. */
  checkAgain?(demand: LlmDemand | undefined): void | Promise<void>
  /** Throws a ProxyError if the request lacks what it is charged by. Called before a request that may cost something. */
  requireKey?(): void
  /**
   * Called at most once after a successful `check`: corrects the charge to the actual number of tokens, and to their price in US dollars
   * if it is known. Not a number: the actual number is not known, what `check` has charged is final. Never throws.
   */
  settle(tokens: number, usd?: number): void
  /** Returns what is reserved: the next check is for another model. Default: `settle` with 0. */
  reopen?(): void
  /** A model that replaces the one of the request because a limit is exceeded. Called before `check`, once per attempt. */
  replacement?(): string | undefined
}

/**
 * The token limits of a request (traffic.md §8.9 and §8.14, llm.md §11). Rate limit policies and budgets set them in
 * `exchange.tokenBudgets`; undefined there: no limits. Only LLM requests use them:
 *
 *     await exchange.tokenBudgets?.check(estimate, demand)   // throws the 429; after the guards, before the upstream call
 *     exchange.tokenBudgets?.settle(input + output, usd)     // when the usage is known, or 0 when the response ended without
 *
 * Retries and failovers check again without being charged again. Without `settle` the estimate is charged. The policies set the
 * x-ratelimit headers themselves, on rejections and on all other responses.
 */
export class TokenBudgets {
  readonly #budgets: TokenBudget[]
  #state: 'new' | 'admitted' | 'settled' = 'new'
  /** Number of budgets with a successful check. */
  #checked = 0
  #readsDemand: boolean

  constructor(first: TokenBudget) {
    this.#budgets = [first]
    this.#readsDemand = first.replacement !== undefined
  }

  /** Adds the limit of another policy; checked after the existing ones. */
  add(budget: TokenBudget): void {
    this.#budgets.push(budget)
    this.#readsDemand ||= budget.replacement !== undefined
  }

  /** Whether `check` needs the second argument. */
  get readsDemand(): boolean {
    return this.#readsDemand
  }

  /** Throws a ProxyError, or rejects with one, if a limit is exhausted; what the limits before it have been charged is returned. */
  check(estimate = 0, demand?: LlmDemand): void | Promise<void> {
    if (this.#state === 'admitted') return this.#checkAgain(demand)
    if (this.#state === 'settled') return
    const tokens = toTokens(estimate)
    try {
      while (this.#checked < this.#budgets.length) {
        const pending = this.#budgets[this.#checked]?.check(tokens, demand)
        if (pending !== undefined)
          return pending.then(
            () => {
              this.#checked++
              return this.check(estimate, demand)
            },
            (error: unknown) => this.#return(error),
          )
        this.#checked++
      }
    } catch (error) {
      this.#return(error)
    }
    this.#state = 'admitted'
  }

  async #checkAgain(demand: LlmDemand | undefined): Promise<void> {
    try {
      for (const budget of this.#budgets) await budget.checkAgain?.(demand)
    } catch (error) {
      this.#state = 'new'
      this.#return(error)
    }
  }

  /** Returns what is reserved, because another target serves the request: the next check is for its model and price. */
  reopen(): void {
    if (this.#state === 'settled') return
    for (const budget of this.#budgets) {
      if (budget.reopen !== undefined) budget.reopen()
      else if (this.#state === 'admitted') budget.settle(0, 0)
    }
    this.#state = 'new'
    this.#checked = 0
  }

  #return(error: unknown): never {
    for (const budget of this.#budgets.slice(0, this.#checked)) budget.settle(0, 0)
    this.#checked = 0
    throw error
  }

  /** Throws a ProxyError if a limit needs something that the request lacks, such as a key. */
  requireKeys(): void {
    for (const budget of this.#budgets) budget.requireKey?.()
  }

  /** The first model that replaces the one of the request; undefined: the request keeps its model. */
  replacement(): string | undefined {
    for (const budget of this.#budgets) {
      const model = budget.replacement?.()
      if (model !== undefined) return model
    }
    return undefined
  }

  /**
   * Charges the tokens of the exchange, input and output, and their price. Ignored after the first call and without a successful `check`.
   * What was reserved stays charged if `tokens` is not a number.
   */
  settle(tokens: number, usd?: number): void {
    if (this.#state !== 'admitted') return
    this.#state = 'settled'
    const price = usd !== undefined && Number.isFinite(usd) && !Number.isNaN(tokens) ? Math.max(0, usd) : undefined
    for (const budget of this.#budgets) budget.settle(Number.isNaN(tokens) ? tokens : toTokens(tokens), price)
  }
}

/** The most tokens of one request, beyond those of any model: sums of them are exact in all counters. */
const MAX_TOKENS = 2 ** 40

/** A number of tokens as counters can hold it. */
const toTokens = (count: number): number => (Number.isNaN(count) ? MAX_TOKENS : Math.min(MAX_TOKENS, Math.max(0, Math.round(count))))

/** Adds a limit to those of the request. */
export function addTokenBudget(exchange: { tokenBudgets: TokenBudgets | undefined }, budget: TokenBudget): void {
  if (exchange.tokenBudgets === undefined) exchange.tokenBudgets = new TokenBudgets(budget)
  else exchange.tokenBudgets.add(budget)
}
