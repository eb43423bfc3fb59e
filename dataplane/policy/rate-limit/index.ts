import { evalKey, type Program } from '#api/cel/index.ts'
import type { LocalRateLimit } from '#gen/config/types.ts'
import { withSides, type Policy, type Sides } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { checkA2a, readsA2a } from '../../request/expression/a2a.ts'
import { bufferRequest, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { compileCondition } from '../../request/expression/condition.ts'
import { compileExpression, needsRequestBody, parsesJson } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { PolicyState } from '../state.ts'
import type { Allowance, Budget, BudgetTerms } from './bucket.ts'
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
  const { requests, tokens, programs, mcp } = kept.get(entries, [], () => createLimits(entries, state))
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
  if (programs.length > 0) {
    const request = (exchange: Exchange): Charged => {
      const view = new ExchangeView(exchange)
      const tokenBudgets = budgetsOf(tokens, view)
      return {
        allowance: charge(budgetsOf(requests, view)),
        budget: tokenBudgets.length === 0 ? undefined : addTokens(exchange, tokenBudgets),
        mcpLimit: addMcp(exchange),
      }
    }
    return needsRequestBody(programs) ? withBody({ request, response }, maxBufferBytes, programs) : withSides({ request, response })
  }
  const requestBudgets = budgetsOf(requests, undefined)
  if (tokens.length === 0) return withSides({ request: () => charge(requestBudgets), response: addLimitHeaders })
  const tokenBudgets = budgetsOf(tokens, undefined)
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
  /** The budget for a request; undefined if the limit does not apply to it. The view is read by limits with a key or a condition only. */
  budgetOf(view: ExchangeView | undefined): Budget | undefined
}

const budgetsOf = (limits: readonly Limit[], view: ExchangeView | undefined): Budget[] => limits.flatMap(({ budgetOf }) => budgetOf(view) ?? [])

interface Limits {
  readonly requests: readonly Limit[]
  readonly tokens: readonly Limit[]
  /** Limits of requests that MCP backends charge. */
  readonly mcp: readonly McpEntry[]
  /** Expressions of all entries: their keys and conditions. */
  readonly programs: readonly Program[]
}

function createLimits(entries: readonly LocalRateLimit[], { monotonicMs, shared, registry }: PolicyState): Limits {
  const section = shared?.nameOf(entries)
  const state = { monotonicMs, registry, shared: section === undefined ? undefined : shared }
  const nowMs = monotonicMs()
  const programs: Program[] = []
  const mcp: McpEntry[] = []
  const limitsOf = (kind: 'requests' | 'tokens'): Limit[] =>
    entries.flatMap(({ [kind]: amount, unit, burst = 0, key, when }, index) => {
      if (amount === undefined) return []
      const terms = { amount, burst, unitMs: unitMs[unit] }
      const name = `${section} ${index} ${kind}`
      const program = key === undefined ? undefined : compileExpression(key, 'request')
      const condition = when === undefined ? undefined : compileCondition(when, 'applies')
      const read = [program ?? [], condition?.program ?? []].flat()
      programs.push(...read)
      const find = findBudget(terms, program, state, name, nowMs)
      const budgetOf: Limit['budgetOf'] = condition === undefined ? find : (view) => (view === undefined || condition.holds(view) ? find(view) : undefined)
      const stages = kind === 'requests' ? stagesOf(read) : []
      if (stages.length === 0) return [{ budgetOf }]
      mcp.push({ stages, budgetOf })
      return []
    })
  return { requests: limitsOf('requests'), tokens: limitsOf('tokens'), programs, mcp }
}

/** One budget, or one for each value of the key. */
function findBudget(
  terms: Omit<BudgetTerms, 'nowMs'>,
  key: Program | undefined,
  state: Pick<PolicyState, 'monotonicMs' | 'registry' | 'shared'>,
  name: string,
  nowMs: number,
): (view: ExchangeView | undefined) => Budget {
  if (key === undefined) {
    const budget = createBudget({ ...terms, nowMs }, state.shared, name)
    return () => budget
  }
  const budgets = new KeyedBudgets(terms, state, name)
  return (view) => budgets.find(view && evalKey(key, view))
}
