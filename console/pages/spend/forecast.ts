import type { BudgetRow } from '#api/management/budgets.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }
/** Least time that the points of a trend cover. */
const MIN_TREND_MS = 5 * MINUTE_MS

/** When the window of a budget began, Unix time in milliseconds. Months begin a calendar month before their end. */
export function windowStart({ window, windowEndMs }: Pick<BudgetRow, 'window' | 'windowEndMs'>): number {
  switch (window) {
    case 'Minute':
      return windowEndMs - MINUTE_MS
    case 'Hour':
      return windowEndMs - HOUR_MS
    case 'Day':
      return windowEndMs - DAY_MS
    case 'Week':
      return windowEndMs - 7 * DAY_MS
    case 'Month': {
      const start = new Date(windowEndMs)
      start.setUTCMonth(start.getUTCMonth() - 1)
      return start.getTime()
    }
    default:
      return windowEndMs - [...window.matchAll(/(\d+)(ms|[smhd])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * (unitMs[unit ?? ''] ?? 0), 0)
  }
}

export interface Forecast {
  /** Used per millisecond. */
  readonly rate: number
  /** When nothing is left, at this rate; undefined: not before the end of the window. */
  readonly usedUpMs: number | undefined
  /** What is left at the end of the window; 0 if it is used up before. */
  readonly leftAtEnd: number
}

/** A rolling window has a length instead of a name. */
const isRolling = ({ window }: BudgetRow): boolean => /^\d/.test(window)

/** The history within the window. */
function pointsOf(row: BudgetRow, nowMs: number): NonNullable<BudgetRow['history']> {
  const lengthMs = row.windowEndMs - windowStart(row)
  const startMs = isRolling(row) ? nowMs - lengthMs : windowStart(row)
  return (row.history ?? []).filter(({ timeMs }) => timeMs >= startMs && timeMs < nowMs)
}

/**
 * Continues what was used so far along a line: through the history (least squares) if it covers some minutes, else at the mean rate since the start of
 * the window. A rolling window without history is taken as steady.
 */
export function forecast(row: BudgetRow, nowMs: number): Forecast {
  const startMs = windowStart(row)
  const points = pointsOf(row, nowMs)
  const first = points[0]?.timeMs ?? nowMs
  const hasTrend = points.length >= 3 && nowMs - first >= Math.min(MIN_TREND_MS, (row.windowEndMs - startMs) / 4)
  const mean = isRolling(row) ? 0 : row.used / Math.max(1, nowMs - startMs)
  const rate = Math.max(0, hasTrend ? slopeOf([...points, { timeMs: nowMs, used: row.used }]) : mean)
  const usedUpMs = row.left === 0 ? nowMs : rate === 0 ? Infinity : nowMs + row.left / rate
  const isUsedUp = usedUpMs <= row.windowEndMs
  return { rate, usedUpMs: isUsedUp ? usedUpMs : undefined, leftAtEnd: isUsedUp ? 0 : row.left - rate * Math.max(0, row.windowEndMs - nowMs) }
}

function slopeOf(points: readonly { readonly timeMs: number; readonly used: number }[]): number {
  const meanTime = points.reduce((sum, { timeMs }) => sum + timeMs, 0) / points.length
  const meanUsed = points.reduce((sum, { used }) => sum + used, 0) / points.length
  let above = 0
  let below = 0
  for (const { timeMs, used } of points) {
    above += (timeMs - meanTime) * (used - meanUsed)
    below += (timeMs - meanTime) ** 2
  }
  return below === 0 ? 0 : above / below
}

/** A chart of what is left: Unix times in seconds, what was left, and what will be. */
export interface BurnDown {
  readonly times: readonly number[]
  readonly left: readonly (number | null)[]
  readonly ahead: readonly (number | null)[]
}

/** The chart of a budget, from the start of its window, or from the first point of a rolling one, to its end. */
export function burnDown(row: BudgetRow, nowMs: number): BurnDown {
  const points = pointsOf(row, nowMs)
  const { usedUpMs, leftAtEnd } = forecast(row, nowMs)
  const known: [number, number][] = [
    ...(isRolling(row) ? [] : [[windowStart(row), row.limit] as [number, number]]),
    ...points.map(({ timeMs, used }): [number, number] => [timeMs, Math.max(0, row.limit - used)]),
    [nowMs, row.left],
  ]
  const future: [number, number][] = usedUpMs === undefined ? [[row.windowEndMs, leftAtEnd]] : [[usedUpMs, 0]]
  const ahead = future.filter(([timeMs]) => timeMs > nowMs)
  if (usedUpMs !== undefined && row.windowEndMs > Math.max(usedUpMs, nowMs)) ahead.push([row.windowEndMs, 0])
  return {
    times: [...known, ...ahead].map(([timeMs]) => timeMs / 1000),
    left: [...known.map(([, value]) => value), ...ahead.map(() => null)],
    ahead: [...known.map((_, index) => (index === known.length - 1 ? row.left : null)), ...ahead.map(([, value]) => value)],
  }
}

/** Sums by period, with a 0 for each period without requests. `periodMs`: an hour or a day. */
export function fill(
  rows: readonly { readonly group: readonly (string | null)[]; readonly cost: number }[],
  sinceMs: number,
  untilMs: number,
  periodMs: number,
) {
  const costs = new Map(rows.map(({ group, cost }) => [Date.parse(group[0] ?? ''), cost]))
  const times: number[] = []
  const values: number[] = []
  for (let timeMs = Math.floor(sinceMs / periodMs) * periodMs; timeMs < untilMs; timeMs += periodMs) {
    times.push(timeMs / 1000)
    values.push(costs.get(timeMs) ?? 0)
  }
  return { times, values }
}
