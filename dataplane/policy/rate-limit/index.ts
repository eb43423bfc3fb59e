import { evalKey, type Program } from '#api/cel/index.ts'
import type { LocalRateLimit } from '#gen/config/types.ts'
import { withSides, type Policy, type Sides } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { checkA2a, readsA2a } from '../../request/expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { compileExpression, needsRequestBody, parsesJson } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { PolicyState } from '../state.ts'
import type { Allowance, Budget } from './bucket.ts'
import { createBudget } from './create.ts'
import { addHeaders, headersOf } from './headers.ts'
import { KeyedBudgets } from './keyed.ts'
import { LocalTokenBudget, chargeAll, tighter } from './local.ts'
import { LocalMcpLimit, stagesOf, type McpEntry } from './mcp.ts'
import { addMcpLimit } from '../../request/exchange/mcp-limits.ts'
import { addTokenBudget } from '../../request/exchange/token-budgets.ts'

const unitMs = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000 } as const

/**
 * Rate limits of one data plane (traffic.md §8.9). Keys that read `mcp` are charged by MCP backends. The budgets of a policy are kept over config versions and shared by all routes of its
 * target. An entry with a `key` has a budget for each value. Budgets of requests are charged here, in order; those before the exhausted one stay charged. Budgets of tokens are added to
 * `exchange.tokenBudgets` and charged by LLM backends. Responses have x-ratelimit headers of the tightest budget.
 *
 * @throws ProxyError RATE_LIMIT (429), for each rejected request.
 * @example
 * traffic:
 *   rateLimit:
 *     local:
 *       - requests: 100
 *         unit: Minutes
 *         burst: 20
 *       - requests: 10
 *         unit: Minutes
 *         key: jwt.sub
 */
export function compileLocalRateLimit(entries: readonly LocalRateLimit[], state: PolicyState, maxBufferBytes = MAX_BUFFER_BYTES): Policy {
  const { kept, monotonicMs } = state
  const { requests, tokens, keys, mcp } = kept.get(entries, [], () => createLimits(entries, state))
  const charge = (budgets: readonly Budget[]): Allowance | undefined => {
    const allowance = chargeAll(budgets, monotonicMs())
    if (allowance?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: headersOf(allowance) })
    return allowance
  }
  const addTokens = (exchange: Exchange, budgets: readonly Budget[]): LocalTokenBudget => {
    const budget = new LocalTokenBudget(budgets, monotonicMs)
    addTokenBudget(exchange, budget)
    return budget
  }
  const addLimitHeaders = ({ response }: Exchange, tightest: Allowance | undefined): void => {
    if (tightest !== undefined && response !== undefined) addHeaders(response.headers, tightest)
  }
  const response = (exchange: Exchange, { allowance, budget, mcpLimit }: Charged): void =>
    addLimitHeaders(exchange, tighter(tighter(allowance, budget?.allowance), mcpLimit?.allowance))
  const addMcp = (exchange: Exchange): LocalMcpLimit | undefined => {
    if (mcp.length === 0) return undefined
    const limit = new LocalMcpLimit(exchange, mcp, charge)
    addMcpLimit(exchange, limit)
    return limit
  }
  if (keys.length > 0) {
    const request = (exchange: Exchange): Charged => {
      const view = new ExchangeView(exchange)
      const find = ({ budgetOf }: Limit): Budget => budgetOf(view)
      return {
        allowance: charge(requests.map(find)),
        budget: tokens.length === 0 ? undefined : addTokens(exchange, tokens.map(find)),
        mcpLimit: addMcp(exchange),
      }
    }
    return needsRequestBody(keys) ? withBody({ request, response }, maxBufferBytes, keys) : withSides({ request, response })
  }
  const requestBudgets = requests.map(({ budgetOf }) => budgetOf(undefined))
  if (tokens.length === 0) return withSides({ request: () => charge(requestBudgets), response: addLimitHeaders })
  const tokenBudgets = tokens.map(({ budgetOf }) => budgetOf(undefined))
  return withSides({ request: (exchange) => ({ allowance: charge(requestBudgets), budget: addTokens(exchange, tokenBudgets) }), response })
}

/** Reads the request body for the programs before the request side and keeps it until the response. */
export function withBody<T>({ request, response }: Required<Sides<T>>, maxBufferBytes: number, programs: readonly Program[]): Policy {
  const [parses, checksA2a] = [parsesJson(programs), readsA2a(programs)]
  return async (c, next) => {
    const { exchange } = c.var
    try {
      await bufferRequest(exchange, maxBufferBytes, parses)
      if (checksA2a) checkA2a(exchange)
      const charged = await request(exchange)
      await next()
      response(exchange, charged)
    } finally {
      releaseRequest(exchange)
    }
  }
}

/** The limits that a request was charged to. */
interface Charged {
  readonly allowance: Allowance | undefined
  readonly budget: LocalTokenBudget | undefined
  readonly mcpLimit?: LocalMcpLimit | undefined
}

interface Limit {
  /** The budget for a request. The view is read by limits with a key only. */
  budgetOf(view: ExchangeView | undefined): Budget
}

interface Limits {
  readonly requests: readonly Limit[]
  readonly tokens: readonly Limit[]
  /** Limits of requests that MCP backends charge. */
  readonly mcp: readonly McpEntry[]
  /** Expressions of all entries with a key. */
  readonly keys: readonly Program[]
}

function createLimits(entries: readonly LocalRateLimit[], { monotonicMs, shared, registry }: PolicyState): Limits {
  const section = shared?.nameOf(entries)
  const state = { monotonicMs, registry, shared: section === undefined ? undefined : shared }
  const nowMs = monotonicMs()
  const keys: Program[] = []
  const mcp: McpEntry[] = []
  const limitsOf = (kind: 'requests' | 'tokens'): Limit[] =>
    entries.flatMap(({ [kind]: amount, unit, burst = 0, key }, index) => {
      if (amount === undefined) return []
      const terms = { amount, burst, unitMs: unitMs[unit] }
      const name = `${section} ${index} ${kind}`
      if (key === undefined) {
        const budget = createBudget({ ...terms, nowMs }, state.shared, name)
        return [{ budgetOf: () => budget }]
      }
      const program = compileExpression(key, 'request')
      keys.push(program)
      const budgets = new KeyedBudgets(terms, state, name)
      const budgetOf: Limit['budgetOf'] = (view) => budgets.find(view && evalKey(program, view))
      const stages = kind === 'requests' ? stagesOf([program]) : []
      if (stages.length === 0) return [{ budgetOf }]
      mcp.push({ stages, budgetOf })
      return []
    })
  return { requests: limitsOf('requests'), tokens: limitsOf('tokens'), keys, mcp }
}
