import { Secret } from '#api/cel/index.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { digestKey } from '../../../policy/api-key-authentication/keys.ts'
import type { Budget } from '../../../policy/rate-limit/bucket.ts'
import { createBudget } from '../../../policy/rate-limit/create.ts'
import { addHeaders } from '../../../policy/rate-limit/headers.ts'
import { LocalTokenBudget } from '../../../policy/rate-limit/local.ts'
import { addTokenBudget } from '../../../request/exchange/token-budgets.ts'
import { createNameTable } from '../common/patterns.ts'
import { variables } from '../../../request/exchange/variables.ts'

const unitMs: Readonly<Record<string, number>> = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000, Days: 86_400_000 }
/** Most API keys whose budgets are kept. Beyond it, the oldest budget is dropped. */
const MAX_KEYS = 10_000

/** Restrictions that the metadata of the client's API key sets. */
export interface KeyPolicy {
  /** Whether the key may use some models only. */
  readonly hasModels: boolean
  isAllowed(model: string): boolean
  /** Throws a ProxyError for a model that the key may not use. */
  check(model: string): void
  /** Adds the x-ratelimit headers of the key's budget, if it was checked. */
  addHeaders(headers: HeaderList): void
}

/** Without restrictions. */
export const allowAll: KeyPolicy = { hasModels: false, isAllowed: () => true, check: () => undefined, addHeaders: () => undefined }
/** Applies until the key is known. */
export const denyAll: KeyPolicy = { ...allowAll, hasModels: true, isAllowed: () => false }

interface KeptBudget {
  readonly terms: string
  readonly budget: Budget
}

/** Token budgets of API keys, by digest of the key. All routes and workers of the process share them. */
export class KeyBudgets {
  readonly #kept = new Map<string, KeptBudget>()
  readonly #nowMs: () => number
  readonly #shared: Parameters<typeof createBudget>[1]

  constructor(nowMs: () => number, shared?: Parameters<typeof createBudget>[1]) {
    this.#nowMs = nowMs
    this.#shared = shared
  }

  /**
   * Applies the metadata of the accepted API key: `metadata.models` (names as clients write them, with `*`) and
   * `metadata.tokenBudget` (`{tokens, unit, burst}`), which is added to `exchange.tokenBudgets`. Invalid metadata allows nothing: a
   * `models` that is not a list denies every model, and an invalid `tokenBudget` throws a ProxyError.
   */
  apply(exchange: Exchange): KeyPolicy {
    const metadata = variables.apiKey.get(exchange)
    if (metadata === undefined) return allowAll
    const { models, tokenBudget, key } = metadata
    const policy = models === undefined ? allowAll : allowListOf(models)
    if (tokenBudget === undefined || !(key instanceof Secret)) return policy
    const budget = this.#addBudget(exchange, digestKey(key.reveal()), tokenBudget)
    return { ...policy, addHeaders: (headers) => void (budget.allowance && addHeaders(headers, budget.allowance)) }
  }

  #addBudget(exchange: Exchange, digest: string, wanted: unknown): LocalTokenBudget {
    const { tokens, unit, burst = 0 } = (typeof wanted === 'object' && wanted !== null ? wanted : {}) as Readonly<Record<string, unknown>>
    const ms = typeof unit === 'string' ? unitMs[unit] : undefined
    if (!isCount(tokens) || !isCount(burst) || ms === undefined)
      throw new ProxyError('LLM_MODEL_DENIED', { detail: 'the tokenBudget of the API key needs tokens (a number) and unit (Seconds, Minutes, Hours or Days)' })
    const terms = `${tokens} ${burst} ${ms}`
    let kept = this.#kept.get(digest)
    if (kept?.terms !== terms) {
      kept = {
        terms,
        budget: createBudget(
          { amount: Math.min(MAX_COUNT, tokens), burst: Math.min(MAX_COUNT, burst), unitMs: ms, nowMs: this.#nowMs() },
          this.#shared,
          `API key ${digest} ${terms}`,
        ),
      }
      if (this.#kept.size >= MAX_KEYS) this.#kept.delete(this.#kept.keys().next().value ?? '')
      this.#kept.set(digest, kept)
    }
    const budget = new LocalTokenBudget([kept.budget], this.#nowMs)
    addTokenBudget(exchange, budget)
    return budget
  }
}

/** Larger numbers of tokens count as this one, the most that a limit of a policy can have. */
const MAX_COUNT = 1_000_000_000_000
const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

function allowListOf(models: unknown): KeyPolicy {
  const names = Array.isArray(models) ? models.filter((name) => typeof name === 'string') : []
  const table = createNameTable(Object.fromEntries(names.map((name) => [name, true])))
  const isAllowed = (model: string): boolean => table(model) === true
  return {
    ...allowAll,
    hasModels: true,
    isAllowed,
    check(model) {
      if (!isAllowed(model))
        throw new ProxyError('LLM_MODEL_DENIED', { detail: model === '' ? 'the request names no model' : `the API key may not use ${model}` })
    },
  }
}
