import { Secret } from '#api/cel/index.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { HeaderList } from '../../http/headers.ts'
import { digestKey } from '../../policy/api-key-authentication/keys.ts'
import { Bucket } from '../../policy/rate-limit/bucket.ts'
import { addHeaders } from '../../policy/rate-limit/headers.ts'
import { LocalTokenBudget } from '../../policy/rate-limit/local.ts'
import { TokenBudgets } from '../../exchange/token-budgets.ts'
import { createNameTable } from '../settings/patterns.ts'
import { variables } from '../../exchange/variables.ts'

const unitMs: Readonly<Record<string, number>> = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000, Days: 86_400_000 }
/** Keys with budgets of their own; when there are more, the oldest starts anew. */
const MAX_KEYS = 10_000

/** What the metadata of the client's API key says about models. */
export interface KeyPolicy {
  isAllowed(model: string): boolean
  /** Throws a ProxyError for a model that the key may not use. */
  check(model: string): void
  /** Adds the x-ratelimit headers of the key's own budget, once it was asked. */
  addHeaders(headers: HeaderList): void
}

const anything: KeyPolicy = { isAllowed: () => true, check: () => undefined, addHeaders: () => undefined }
/** Until the key is known. */
export const nothing: KeyPolicy = { ...anything, isAllowed: () => false }

interface KeptBudget {
  readonly terms: string
  readonly bucket: Bucket
}

/** Budgets of API keys, by digest of the key: one for all replicas' routes of a process. */
export class KeyBudgets {
  readonly #kept = new Map<string, KeptBudget>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /**
   * What the key that the API key policy accepted comes with: `metadata.models` (names with `*`, as clients write them) and
   * `metadata.tokenBudget` (`{tokens, unit, burst}`). The budget is left in `exchange.tokenBudgets`. Metadata that cannot be
   * understood allows nothing.
   */
  apply(exchange: Exchange): KeyPolicy {
    const metadata = variables.apiKey.get(exchange)
    if (metadata === undefined) return anything
    const { models, tokenBudget, key } = metadata
    const policy = models === undefined ? anything : allowListOf(models)
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
      kept = { terms, bucket: new Bucket({ amount: tokens, burst, unitMs: ms, nowMs: this.#nowMs() }) }
      if (this.#kept.size >= MAX_KEYS) this.#kept.delete(this.#kept.keys().next().value ?? '')
      this.#kept.set(digest, kept)
    }
    const budget = new LocalTokenBudget([kept.bucket], this.#nowMs)
    ;(exchange.tokenBudgets ??= new TokenBudgets()).add(budget)
    return budget
  }
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0

function allowListOf(models: unknown): KeyPolicy {
  const names = Array.isArray(models) ? models.filter((name) => typeof name === 'string') : []
  const table = createNameTable(Object.fromEntries(names.map((name) => [name, true])))
  const isAllowed = (model: string): boolean => table(model) === true
  return {
    ...anything,
    isAllowed,
    check(model) {
      if (!isAllowed(model)) throw new ProxyError('LLM_MODEL_DENIED', { detail: `the API key may not use ${model}` })
    },
  }
}
