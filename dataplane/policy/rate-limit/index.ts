import type { LocalRateLimit } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { PolicyState } from '../state.ts'
import type { Allowance, Budget } from './bucket.ts'
import { createBudget } from './create.ts'
import { addHeaders, headersOf } from './headers.ts'
import { LocalTokenBudget, chargeAll, tighter } from './local.ts'
import { TokenBudgets } from '../../exchange/token-budgets.ts'

const unitMs = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000 } as const

/**
 * Rate limits of one data plane (traffic.md §8.9). The budgets of a policy are kept over config versions and shared by all routes of its
 * target. Budgets of requests are charged here, in order; those before the exhausted one stay charged. Budgets of tokens are added to
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
 */
export function compileLocalRateLimit(entries: readonly LocalRateLimit[], { kept, monotonicMs, shared }: PolicyState): Policy {
  const { requests, tokens } = kept.get(entries, [], () => createBudgets(entries, monotonicMs(), shared))
  const charge = (): Allowance | undefined => {
    const allowance = chargeAll(requests, monotonicMs())
    if (allowance?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: headersOf(allowance) })
    return allowance
  }
  const addLimitHeaders = ({ response }: Exchange, tightest: Allowance | undefined): void => {
    if (tightest !== undefined && response !== undefined) addHeaders(response.headers, tightest)
  }
  if (tokens.length === 0) return withSides({ request: charge, response: addLimitHeaders })
  return withSides({
    request(exchange) {
      const allowance = charge()
      const budget = new LocalTokenBudget(tokens, monotonicMs)
      ;(exchange.tokenBudgets ??= new TokenBudgets()).add(budget)
      return { allowance, budget }
    },
    response: (exchange, { allowance, budget }) => addLimitHeaders(exchange, tighter(allowance, budget.allowance)),
  })
}

interface Budgets {
  readonly requests: readonly Budget[]
  readonly tokens: readonly Budget[]
}

function createBudgets(entries: readonly LocalRateLimit[], nowMs: number, shared: PolicyState['shared']): Budgets {
  const section = shared?.nameOf(entries)
  const budgetsOf = (kind: 'requests' | 'tokens'): Budget[] =>
    entries.flatMap(({ [kind]: amount, unit, burst = 0 }, index) =>
      amount === undefined
        ? []
        : createBudget({ amount, burst, unitMs: unitMs[unit], nowMs }, section === undefined ? undefined : shared, `${section} ${index} ${kind}`),
    )
  return { requests: budgetsOf('requests'), tokens: budgetsOf('tokens') }
}
