import { expect } from '@jest/globals'
import { compileWindows } from '#api/budget-window.ts'
import { fc } from '#api/property-testing.ts'
import type { Budget } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { TokenBudgets } from '../../request/exchange/token-budgets.ts'
import { testExchange } from '../../testing/exchange.ts'
import type { PolicyState } from '../state.ts'
import { BudgetCharge } from './charge.ts'
import { compileSections } from './compile.ts'
import { Ledger } from './ledger.ts'

/** Processes that charge the same counters. */
export interface Books {
  /** Fields of the budget that name the counters. */
  readonly budget: Partial<Budget>
  /** State of each process, with `epochMs` of the test as clock. */
  readonly states: readonly PolicyState[]
  /** Ends a process in the middle of its requests and starts it again. What its requests had reserved stays charged. Undefined: counters are lost then. */
  restart?: (nth: number) => void | Promise<void>
  /** Waits until a store has what was sent. */
  flush?: () => Promise<void>
  close?: () => void | Promise<void>
}

/** Amounts that clients and providers may name. */
const edges = [0, -1, -1e300, 0.4, 99.5, 2 ** 44 - 1, 2 ** 44, 2 ** 44 + 1, 2 ** 53, 2 ** 53 + 2, 1e15, 1e300, Infinity, NaN]
const amount = fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 0, max: 150 }) }, fc.constantFrom(...edges))
const whose = fc.integer({ min: 0, max: 1 })

type Step =
  | { readonly type: 'reserve'; readonly process: number; readonly max: number | undefined }
  | { readonly type: 'settle'; readonly nth: number; readonly used: number }
  | { readonly type: 'cancel'; readonly nth: number }
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'restart'; readonly process: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('reserve' as const), process: whose, max: fc.option(amount, { nil: undefined }) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('settle' as const), nth: fc.nat({ max: 5 }), used: amount }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('cancel' as const), nth: fc.nat({ max: 5 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('wait' as const),
      ms: fc.constantFrom(0, 1000, 3_600_000, 86_400_000, 3 * 86_400_000, -1000, -86_400_000, -40 * 86_400_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restart' as const), process: whose }) },
)

const START = Date.parse('2026-11-23T10:00:00Z')
const DEFAULT_OUTPUT = 4096
/** Beyond it a request counts as this many tokens. */
const MAX_TOKENS = 2 ** 40

interface Held {
  readonly budgets: TokenBudgets
  readonly process: number
  readonly index: number
  readonly taken: number
}

/** What a counter is to have: a sum for each window of what was used, and of what is reserved. */
class Model {
  readonly held: Held[] = []
  readonly #charged = new Map<number, number>()
  readonly windows = compileWindows('Day')

  usedAt(index: number): number {
    return this.held.reduce((sum, each) => sum + (each.index === index ? each.taken : 0), this.#charged.get(index) ?? 0)
  }

  charge(index: number, used: number): void {
    this.#charged.set(index, (this.#charged.get(index) ?? 0) + used)
  }
}

/**
 * Runs random sequences of reservations, settlements, cancellations, time and restarts in two processes, and compares what is admitted and
 * what is left with a model that adds up.
 */
export async function checkConservation(open: (epochMs: () => number) => Books | Promise<Books>, numRuns: number): Promise<void> {
  let run = 0
  const limits = fc.constantFrom(1, 100, 5000, 1_000_000_000_000)
  await fc.assert(
    fc.asyncProperty(limits, fc.constantFrom('Reject' as const, 'Audit' as const), fc.array(step, { maxLength: 40 }), async (limit, onExceeded, steps) => {
      // Counters of servers outlive a run.
      const name = `b${++run}`
      let nowMs = START
      // A clock that is set back opens no window again.
      let latestMs = START
      const books = await open(() => nowMs)
      const budgets = compileSections([{ policy: 'ns/p', budgets: [{ name, limits: [{ tokens: limit, window: 'Day' }], onExceeded, ...books.budget }] }])
      const model = new Model()
      const reserve = async (process: number, max: number | undefined): Promise<void> => {
        const state = books.states[process % books.states.length] as PolicyState
        const charge = new BudgetCharge({ budgets, ledger: Ledger.of(state), state, spent: new Map() }, testExchange())
        await charge.begin()
        const tokens = new TokenBudgets(charge)
        const { index } = model.windows.at(latestMs)
        const used = model.usedAt(index)
        const taken = Number.isNaN(max) ? limit : Math.min(limit, Math.max(0, Math.round(max ?? DEFAULT_OUTPUT)))
        const isAdmitted = used < limit
        const outcome = await Promise.resolve()
          .then(() => tokens.check(0, { model: 'm', promptTokens: 0, maxTokens: max, priceOf: undefined }))
          .then(
            () => 'admitted',
            (error: unknown) => (error instanceof ProxyError && error.code === 'BUDGET' ? 'rejected' : error),
          )
        expect(outcome).toBe(isAdmitted || onExceeded === 'Audit' ? 'admitted' : 'rejected')
        if (outcome !== 'admitted') return
        expect(charge.allowance?.remaining).toBe(Math.max(0, limit - used - taken))
        model.held.push({ budgets: tokens, process, index, taken })
      }
      const settle = async (nth: number, used: number): Promise<void> => {
        const [held] = model.held.splice(nth % Math.max(1, model.held.length), 1)
        if (held === undefined) return
        held.budgets.settle(used)
        await books.flush?.()
        model.charge(held.index, Number.isNaN(used) ? held.taken : Math.min(MAX_TOKENS, Math.max(0, Math.round(used))))
      }
      try {
        for (const each of steps) {
          if (each.type === 'reserve') await reserve(each.process, each.max)
          else if (each.type === 'settle') await settle(each.nth, each.used)
          else if (each.type === 'cancel') await settle(each.nth, 0)
          else if (each.type === 'wait') latestMs = Math.max(latestMs, (nowMs += each.ms))
          else if (books.restart !== undefined) {
            for (const lost of model.held.filter((held) => held.process % books.states.length === each.process % books.states.length)) {
              model.held.splice(model.held.indexOf(lost), 1)
              model.charge(lost.index, lost.taken)
            }
            await books.restart(each.process % books.states.length)
          }
        }
        while (model.held.length > 0) await settle(0, 0)
        await reserve(0, 0)
      } finally {
        await books.close?.()
      }
    }),
    { numRuns },
  )
}
