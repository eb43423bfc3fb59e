import type { LocalRateLimit } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../exchange/context.ts'
import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { PolicyState } from '../state.ts'
import { Bucket, type Allowance } from './bucket.ts'
import { addHeaders, headersOf } from './headers.ts'
import { LocalTokenBudget, takeAll, tighter } from './local.ts'
import { TokenBudgets } from '../../exchange/token-budgets.ts'

const unitMs = { Seconds: 1000, Minutes: 60_000, Hours: 3_600_000 } as const

/**
 * Local rate limits (traffic.md §8.9). The list is that of one policy on one target, which keeps its budgets over config versions
 * and shares them among all its routes. Entries for requests are asked here, in order; those before one that refuses have been
 * charged. Entries for tokens are left in `exchange.tokenBudgets` for whoever speaks to an LLM.
 */
export function compileLocalRateLimit(entries: readonly LocalRateLimit[], { kept, monotonicMs }: PolicyState): Policy {
  const { requests, tokens } = kept.get(entries, [], () => createBuckets(entries, monotonicMs()))
  const ask = (): Allowance | undefined => {
    const asked = takeAll(requests, monotonicMs())
    if (asked?.isAdmitted === false) throw new ProxyError('RATE_LIMIT', { headers: headersOf(asked) })
    return asked
  }
  const tell = ({ response }: Exchange, tightest: Allowance | undefined): void => {
    if (tightest !== undefined && response !== undefined) addHeaders(response.headers, tightest)
  }
  if (tokens.length === 0) return withSides({ request: ask, response: tell })
  return withSides({
    request(exchange) {
      const asked = ask()
      const budget = new LocalTokenBudget(tokens, monotonicMs)
      ;(exchange.tokenBudgets ??= new TokenBudgets()).add(budget)
      return { asked, budget }
    },
    response: (exchange, { asked, budget }) => tell(exchange, tighter(asked, budget.allowance)),
  })
}

interface Buckets {
  readonly requests: readonly Bucket[]
  readonly tokens: readonly Bucket[]
}

function createBuckets(entries: readonly LocalRateLimit[], nowMs: number): Buckets {
  const bucketsOf = (kind: 'requests' | 'tokens'): Bucket[] =>
    entries.flatMap(({ [kind]: amount, unit, burst = 0 }) => (amount === undefined ? [] : new Bucket({ amount, burst, unitMs: unitMs[unit], nowMs })))
  return { requests: bucketsOf('requests'), tokens: bucketsOf('tokens') }
}
