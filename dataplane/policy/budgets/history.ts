import type { BudgetRow, BudgetUse } from '#api/management/budgets.ts'

/** Milliseconds between two samples. */
const SAMPLE_MS = 30_000
/** Points of a budget. When it has more, every second one is dropped, and samples are taken half as often. */
const MAX_POINTS = 120
/** Budgets by key that are remembered. */
const MAX_BUDGETS = 500

type Point = NonNullable<BudgetRow['history']>[number]

interface History {
  readonly points: Point[]
  intervalMs: number
}

/**
 * What was used of budgets over time, in memory: from the first time that someone looked, for as long as the budget is among the most used ones.
 * The start of a new window begins a new history.
 */
export class BudgetHistory {
  readonly #report: () => Promise<BudgetUse>
  #histories = new Map<string, History>()
  #isSampling = false

  constructor(report: () => Promise<BudgetUse>) {
    this.#report = report
  }

  /** The report of the moment with the histories. Samples are taken from now on. */
  async read(): Promise<BudgetUse> {
    if (!this.#isSampling) setInterval(() => void this.#report().then((use) => this.add(use), ignore), SAMPLE_MS).unref()
    this.#isSampling = true
    const use = await this.#report()
    this.add(use)
    return { ...use, rows: use.rows.map((row) => ({ ...row, history: this.#histories.get(idOf(row))?.points.slice() ?? [] })) }
  }

  /** Adds a sample. */
  add({ timeMs, rows }: BudgetUse): void {
    const known = this.#histories
    this.#histories = new Map()
    for (const row of rows.slice(0, MAX_BUDGETS)) {
      const id = idOf(row)
      const before = known.get(id)
      const last = before?.points.at(-1)
      // What a rolling window gets back is no new window.
      const isSame = before !== undefined && last !== undefined && (last.used <= row.used || isRolling(row))
      const history = isSame ? before : { points: [], intervalMs: SAMPLE_MS }
      this.#histories.set(id, history)
      if (isSame && timeMs - last.timeMs < history.intervalMs) continue
      history.points.push({ timeMs, used: row.used })
      if (history.points.length <= MAX_POINTS) continue
      history.points.splice(0, history.points.length, ...history.points.filter((_, index) => index % 2 === 0))
      history.intervalMs *= 2
    }
  }
}

const idOf = ({ policy, budget, key, unit, window }: BudgetRow): string => JSON.stringify([policy, budget, key, unit, window])
/** Calendar windows have names. */
const isRolling = ({ window }: BudgetRow): boolean => /^\d/.test(window)
const ignore = (): undefined => undefined
