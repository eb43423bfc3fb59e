import type { GlobalRateLimit } from '#gen/config/types.ts'
import type { Policy, PolicyContext } from '../../request/exchange/context.ts'
import { ProxyError, retryAfter } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { checkA2a } from '../../request/expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../state.ts'
import type { Allowance } from './bucket.ts'
import { compileDescriptors, describeRequest, type Descriptor, type McpDescriptor } from './descriptors.ts'
import { addHeaders, headersOf } from './headers.ts'
import { tighter } from './local.ts'
import { LimitService, withHits, type Verdict } from './service.ts'
import { addMcpLimit, type McpLimit, type McpStage } from '../../request/exchange/mcp-limits.ts'
import { addTokenBudget, type TokenBudget } from '../../request/exchange/token-budgets.ts'

/**
 * Rate limits that a service counts for all replicas (traffic.md §8.9), by Envoy's protocol. Each descriptor is a counter, with entries
 * computed by expressions. Counters of requests are charged here; counters of tokens are added to `exchange.tokenBudgets` and charged by
 * LLM backends. A request without a descriptor causes no call. `failureMode` decides if the call fails.
 *
 * @throws ProxyError RATE_LIMIT_SERVICE (500), for requests that are rejected because the call failed.
 * @example
 * traffic:
 *   rateLimit:
 *     global:
 *       backendRef:
 *         name: limiter
 *         port: 80
 *       domain: shop
 *       descriptors:
 *         - entries:
 *             - name: tenant
 *               expression: request.headers["x-tenant"]
 */
export function compileGlobalRateLimit(
  section: GlobalRateLimit,
  { kept, destinations, registry }: Pick<PolicyState, 'kept' | 'destinations' | 'registry'>,
  maxBufferBytes = MAX_BUFFER_BYTES,
): Policy {
  const { requests, tokens, mcp, readsBody, checksA2a, parses } = kept.get(section, [], () => compileDescriptors(section))
  const service = new LimitService(destinations.forPolicy(section.backendRef), section, registry)
  return async (c, next) => {
    const { exchange } = c.var
    try {
      if (readsBody) await bufferRequest(exchange, maxBufferBytes, parses)
      if (checksA2a) checkA2a(exchange)
      const counted = describeRequest(exchange, requests)
      const verdict = counted.length === 0 ? undefined : await service.check(exchange, counted)
      if (verdict?.isAdmitted === false) return reject(c, verdict)
      for (const [name, value] of verdict?.requestHeaders ?? []) exchange.request.headers.set(name, value)
      const budget = budgetOf(exchange, service, describeRequest(exchange, tokens))
      const limit = mcp.length === 0 ? undefined : new GlobalMcpLimit(exchange, service, mcp)
      if (limit !== undefined) addMcpLimit(exchange, limit)
      await next()
      if (exchange.response !== undefined) addAll(exchange.response.headers, [verdict, budget?.verdict, limit?.verdict])
      return undefined
    } finally {
      if (readsBody) releaseRequest(exchange)
    }
  }
}

function budgetOf(exchange: Exchange, service: LimitService, descriptors: readonly Descriptor[]): GlobalTokenBudget | undefined {
  if (descriptors.length === 0) return undefined
  const budget = new GlobalTokenBudget(exchange, service, descriptors)
  addTokenBudget(exchange, budget)
  return budget
}

function addAll(headers: HeaderList, verdicts: readonly (Verdict | undefined)[]): void {
  let tightest: Allowance | undefined
  for (const verdict of verdicts) {
    for (const [name, value] of verdict?.responseHeaders ?? []) headers.set(name, value)
    tightest = tighter(tightest, verdict?.allowance)
  }
  if (tightest !== undefined) addHeaders(headers, tightest)
}

/** The 429 with the service's headers and body; its reason in logs is RateLimit. Without a body, it has the format of the backend's clients, if there is one. */
function reject(c: PolicyContext, verdict: Verdict): Response {
  const { exchange } = c.var
  const headers = rejectionHeaders(verdict)
  const error = new ProxyError('RATE_LIMIT', { headers })
  if (verdict.body.length === 0 && exchange.errorFormat?.(error, error.message, exchange.request) !== undefined) throw error
  exchange.error = error
  return verdict.body.length === 0 ? c.body(null, 429, headers) : c.body(new Uint8Array(verdict.body), 429, headers)
}

/** The service's headers, and x-ratelimit headers unless the service sets some of them. Without a known reset, `retry-after` is 1 s. */
function rejectionHeaders({ responseHeaders, allowance }: Verdict): Record<string, string> {
  const theirs = Object.fromEntries(responseHeaders)
  const ours = allowance === undefined ? {} : headersOf(allowance)
  const isTheirs = Object.keys(ours).some((name) => name !== 'retry-after' && name in theirs)
  const reset = Number(theirs['x-ratelimit-reset'])
  return { ...(isTheirs || allowance === undefined ? retryAfter(reset > 0 ? reset * 1000 : (allowance?.resetMs ?? 0)) : ours), ...theirs }
}

/** The counters of one request to an MCP backend. */
class GlobalMcpLimit implements McpLimit {
  readonly #exchange: Exchange
  readonly #service: LimitService
  readonly #descriptors: readonly McpDescriptor[]
  /** The last verdict; undefined if the service was not called or the call failed. */
  verdict: Verdict | undefined = undefined

  constructor(exchange: Exchange, service: LimitService, descriptors: readonly McpDescriptor[]) {
    this.#exchange = exchange
    this.#service = service
    this.#descriptors = descriptors
  }

  async charge(stage: McpStage): Promise<void> {
    const counted = describeRequest(
      this.#exchange,
      this.#descriptors.filter(({ stages }) => stages.includes(stage)).map(({ entries }) => entries),
    )
    if (counted.length === 0) return
    this.verdict = await this.#service.check(this.#exchange, counted)
    if (this.verdict?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: rejectionHeaders(this.verdict) })
    for (const [name, value] of this.verdict?.requestHeaders ?? []) this.#exchange.request.headers.set(name, value)
  }
}

/** The token counters of one request. */
class GlobalTokenBudget implements TokenBudget {
  readonly #exchange: Exchange
  readonly #service: LimitService
  readonly #descriptors: readonly Descriptor[]
  #estimate = 0
  /** Undefined if the service was not called or the call failed. */
  verdict: Verdict | undefined = undefined

  constructor(exchange: Exchange, service: LimitService, descriptors: readonly Descriptor[]) {
    this.#exchange = exchange
    this.#service = service
    this.#descriptors = descriptors
  }

  async check(estimate: number): Promise<void> {
    this.#estimate = estimate
    this.verdict = await this.#service.check(this.#exchange, withHits(this.#descriptors, estimate))
    if (this.verdict?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: rejectionHeaders(this.verdict) })
  }

  /** Charges the difference to the estimate. An excess charge stays: counters of the service cannot be decreased. */
  settle(tokens: number): void {
    const more = tokens - this.#estimate
    if (more > 0) this.#service.charge(this.#descriptors, more)
  }
}
