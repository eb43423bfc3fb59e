import { readOnExceeded, type OnExceeded } from '#api/budget.ts'
import type { Program } from '#api/cel/index.ts'
import type { Budget, BudgetLimit } from '#gen/config/types.ts'
import { compileExpression } from '../../expression/program.ts'
import { compileWindows, type Windows } from './window.ts'

/** A limit in the unit of its counter. */
export interface CompiledLimit {
  readonly unit: 'usd' | 'tokens' | 'requests'
  readonly amount: number
  readonly windows: Windows
  /** Name of its counters; the same in all workers, and after changes of the policy. */
  readonly name: string
  /** For clients: `500 USD per Month`. */
  readonly text: string
}

export interface CompiledBudget {
  readonly name: string
  /** `<namespace>/<name>` of the policy. */
  readonly policy: string
  readonly key: Program | undefined
  readonly ignoresMissingKey: boolean
  readonly limits: readonly CompiledLimit[]
  readonly models: Program | undefined
  readonly onExceeded: OnExceeded
  /** Percentages, the highest first. */
  readonly alertAt: readonly number[]
  readonly allowsUnpriced: boolean
  readonly exposesRemaining: boolean
  /** Budgets above it, from its parent up. */
  readonly ancestors: readonly CompiledBudget[]
}

/** Budgets of one policy. */
export interface BudgetSection {
  readonly policy: string
  readonly budgets: readonly Budget[]
}

/** Units of a counter in one US dollar: a tenth of a millionth, so that the prices of single tokens add up to the cent. */
export const USD_UNITS = 10_000_000

export function compileSections(sections: readonly BudgetSection[]): CompiledBudget[] {
  return sections.flatMap(({ policy, budgets }) => {
    const compiled = new Map(budgets.map((budget) => [budget.name, compileBudget(policy, budget)]))
    return budgets.flatMap(({ name }) => {
      const own = compiled.get(name)
      return own === undefined ? [] : Object.assign(own, { ancestors: ancestorsOf(name, budgets).flatMap((other) => compiled.get(other) ?? []) })
    })
  })
}

function compileBudget(policy: string, budget: Budget): CompiledBudget {
  const { name, key, onMissingKey, limits, models, onExceeded, alertAt = [], unpriced, timeZone, exposeRemaining = false } = budget
  return {
    name,
    policy,
    key: key === undefined ? undefined : compileExpression(key, 'request'),
    ignoresMissingKey: onMissingKey === 'Ignore',
    limits: limits.map((limit) => compileLimit(`${policy} ${name}`, limit, timeZone)),
    models: models === undefined ? undefined : compileExpression(models, 'backend'),
    onExceeded: readOnExceeded(onExceeded) ?? 'Reject',
    alertAt: alertAt.toSorted((a, b) => b - a),
    allowsUnpriced: unpriced === 'Allow',
    exposesRemaining: exposeRemaining,
    ancestors: [],
  }
}

/** Compiles a limit; `budget` is `<policy> <name of the budget>`. */
export function compileLimit(budget: string, { usd, tokens, requests, window }: BudgetLimit, timeZone: string | undefined): CompiledLimit {
  const windows = compileWindows(window, timeZone)
  const [unit, amount, text] =
    usd !== undefined
      ? (['usd', Number(usd) * USD_UNITS, `${usd} USD`] as const)
      : tokens !== undefined
        ? (['tokens', tokens, `${tokens} tokens`] as const)
        : (['requests', requests ?? 0, `${requests ?? 0} requests`] as const)
  return { unit, amount, windows, name: `${budget} ${unit} ${window}`, text: `${text} per ${window}` }
}

/** Names of the budgets above one; the names of a circle once each. */
function ancestorsOf(name: string, budgets: readonly Budget[]): string[] {
  const seen = new Set([name])
  let parent = budgets.find((budget) => budget.name === name)?.parent
  while (parent !== undefined && !seen.has(parent)) {
    seen.add(parent)
    const above = parent
    parent = budgets.find((budget) => budget.name === above)?.parent
  }
  seen.delete(name)
  return [...seen]
}
