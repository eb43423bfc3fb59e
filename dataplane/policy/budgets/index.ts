import type { Program } from '#api/cel/index.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { addTokenBudget } from '../../request/exchange/token-budgets.ts'
import { MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import { needsRequestBody } from '../../request/expression/program.ts'
import { addHeaders } from '../rate-limit/headers.ts'
import { withBody } from '../rate-limit/index.ts'
import type { PolicyState } from '../state.ts'
import { BudgetCharge, REMAINING_USD } from './charge.ts'
import { compileSections, type BudgetSection } from './compile.ts'
import { Ledger } from './ledger.ts'

/**
 * Budgets of money, LLM tokens and requests, by key (traffic.md §8.14). Requests are charged here, in order; tokens and dollars by LLM
 * backends through `exchange.tokenBudgets`. The budgets of all policies that apply to a request hold.
 *
 * @throws ProxyError BUDGET (429) for a used-up budget, BUDGET_KEY (403) for a request without key, BUDGET_PRICE (403) for a model without price.
 * @example
 * traffic:
 *   budgets:
 *     - name: team
 *       key: apiKey.metadata.team
 *       limits:
 *         - { usd: '500', window: Month }
 *         - { requests: 100, window: 1m }
 */
export function compileBudgets(sections: readonly BudgetSection[], state: PolicyState, maxBufferBytes = MAX_BUFFER_BYTES): Policy {
  const budgets = compileSections(sections)
  const context = { budgets, ledger: Ledger.of(state), state, spent: new Map() }
  const add = (exchange: Exchange, charge: BudgetCharge): BudgetCharge => {
    addTokenBudget(exchange, charge)
    return charge
  }
  const request = (exchange: Exchange): BudgetCharge | Promise<BudgetCharge> => {
    const charge = new BudgetCharge(context, exchange)
    const waiting = charge.begin()
    return waiting === undefined ? add(exchange, charge) : waiting.then(() => add(exchange, charge))
  }
  const response = ({ response: head }: Exchange, { allowance, remainingUsd }: BudgetCharge): void => {
    if (head === undefined) return
    if (allowance !== undefined) addHeaders(head.headers, allowance)
    // Clients must not take the one of an upstream for ours.
    if (remainingUsd === undefined) head.headers.remove(REMAINING_USD)
    else head.headers.set(REMAINING_USD, remainingUsd)
  }
  const programs: Program[] = budgets.flatMap(({ key, models }) => [key, models]).filter((program) => program !== undefined)
  return needsRequestBody(programs) ? withBody({ request, response }, maxBufferBytes, programs) : withSides({ request, response })
}
