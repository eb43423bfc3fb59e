import type { GlobalRateLimit } from '#gen/config/types.ts'
import type { Policy, PolicyContext } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../expression/buffer.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../state.ts'
import { compileDescriptors, describeRequest, type Descriptor } from './descriptors.ts'
import { addHeaders, headersOf } from './headers.ts'
import { tighter } from './local.ts'
import { LimitService, withHits, type Verdict } from './service.ts'
import { TokenBudgets, type TokenBudget } from '../../exchange/token-budgets.ts'

/**
 * Limits that a service keeps for all replicas (traffic.md §8.9). Counters of requests are asked here; counters of tokens are left in
 * `exchange.tokenBudgets` for whoever speaks to an LLM. Without a counter the service is not asked.
 */
export function compileGlobalRateLimit(
  section: GlobalRateLimit,
  { kept, destinations, registry }: Pick<PolicyState, 'kept' | 'destinations' | 'registry'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
): Policy {
  const { requests, tokens, readsBody } = kept.get(section, [], () => compileDescriptors(section))
  const service = new LimitService(destinations.forPolicy(section.backendRef), section, registry)
  return async (c, next) => {
    const { exchange } = c.var
    try {
      if (readsBody) await bufferRequest(exchange, maxBufferBytes)
      const counted = describeRequest(exchange, requests)
      const verdict = counted.length === 0 ? undefined : await service.ask(exchange, counted)
      if (verdict?.isAdmitted === false) return refuse(c, verdict)
      for (const [name, value] of verdict?.requestHeaders ?? []) exchange.request.headers.set(name, value)
      const budget = budgetOf(exchange, service, describeRequest(exchange, tokens))
      await next()
      if (exchange.response !== undefined) addAll(exchange.response.headers, verdict, budget)
      return undefined
    } finally {
      if (readsBody) releaseRequest(exchange)
    }
  }
}

function budgetOf(exchange: Exchange, service: LimitService, descriptors: readonly Descriptor[]): GlobalTokenBudget | undefined {
  if (descriptors.length === 0) return undefined
  const budget = new GlobalTokenBudget(exchange, service, descriptors)
  ;(exchange.tokenBudgets ??= new TokenBudgets()).add(budget)
  return budget
}

function addAll(headers: HeaderList, asked: Verdict | undefined, budget: GlobalTokenBudget | undefined): void {
  for (const verdict of [asked, budget?.verdict]) for (const [name, value] of verdict?.responseHeaders ?? []) headers.set(name, value)
  const tightest = tighter(asked?.allowance, budget?.verdict?.allowance)
  if (tightest !== undefined) addHeaders(headers, tightest)
}

/** The refusal as the service words it; logs call it RateLimit. */
function refuse(c: PolicyContext, verdict: Verdict): Response {
  c.var.exchange.error = new ProxyError('RATE_LIMIT')
  const headers = refusalHeaders(verdict)
  return verdict.body.length === 0 ? c.body(null, 429, headers) : c.body(new Uint8Array(verdict.body), 429, headers)
}

/** The service's headers, and ours unless it has some of those. */
function refusalHeaders({ responseHeaders, allowance }: Verdict): Record<string, string> {
  const theirs = Object.fromEntries(responseHeaders)
  const ours = allowance === undefined ? {} : headersOf(allowance)
  return Object.keys(ours).some((name) => name in theirs) ? theirs : { ...theirs, ...ours }
}

/** One request against counters of tokens. */
class GlobalTokenBudget implements TokenBudget {
  readonly #exchange: Exchange
  readonly #service: LimitService
  readonly #descriptors: readonly Descriptor[]
  #estimate = 0
  /** Undefined: nobody asked, or the service could not be asked. */
  verdict: Verdict | undefined = undefined

  constructor(exchange: Exchange, service: LimitService, descriptors: readonly Descriptor[]) {
    this.#exchange = exchange
    this.#service = service
    this.#descriptors = descriptors
  }

  async check(estimate: number): Promise<void> {
    this.#estimate = estimate
    this.verdict = await this.#service.ask(this.#exchange, withHits(this.#descriptors, estimate))
    if (this.verdict?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: refusalHeaders(this.verdict) })
  }

  /** What was charged too much stays: counters of the service only go up. */
  settle(tokens: number): void {
    const more = tokens - this.#estimate
    if (more > 0) this.#service.charge(this.#descriptors, more)
  }
}
