import { compileWindows, type Windows } from './budget-window.ts'

/** The fields of a limit of a policy. */
export interface LimitFields {
  readonly usd?: string
  readonly tokens?: number
  readonly requests?: number
  readonly window: string
}

/** A limit in the unit of its counter. */
export interface CompiledLimit {
  readonly unit: 'usd' | 'tokens' | 'requests'
  readonly amount: number
  readonly windows: Windows
  /** Name of its counters; the same in all workers, and after changes of the policy. */
  readonly name: string
  /** As the policy has it. */
  readonly window: string
  /** For clients: `500 USD per Month`. */
  readonly text: string
}

/** Units of a counter in one US dollar: a tenth of a millionth, so that the prices of single tokens add up to the cent. */
export const USD_UNITS = 10_000_000

/**
 * Compiles the limits of a budget; `budget` is `<policy> <name of the budget>`. Limits of one unit and window have one counter, and the lowest
 * of them is its limit, so that a request is counted once.
 */
export function compileLimits(budget: string, limits: readonly LimitFields[], timeZone: string | undefined): CompiledLimit[] {
  const byName = new Map<string, CompiledLimit>()
  for (const fields of limits) {
    const limit = compileLimit(budget, fields, timeZone)
    const known = byName.get(limit.name)
    if (known === undefined || limit.amount < known.amount) byName.set(limit.name, limit)
  }
  return [...byName.values()]
}

function compileLimit(budget: string, { usd, tokens, requests, window }: LimitFields, timeZone: string | undefined): CompiledLimit {
  const windows = compileWindows(window, timeZone)
  const [unit, amount, text] =
    usd !== undefined
      ? (['usd', Number(usd) * USD_UNITS, `${usd} USD`] as const)
      : tokens !== undefined
        ? (['tokens', tokens, `${tokens} tokens`] as const)
        : (['requests', requests ?? 0, `${requests ?? 0} requests`] as const)
  return { unit, amount, windows, name: `${budget} ${unit} ${window}`, window, text: `${text} per ${window}` }
}
