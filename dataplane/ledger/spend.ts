import type { SpendRow } from '#api/management/spend.ts'
import { dimensions, type Dimension } from './columns.ts'
import { openForReading } from './store.ts'

/** Groups of one report at most, those of the highest cost. */
const MAX_GROUPS = 10_000

/** The requests of a report. */
export interface SpendQuery {
  readonly by: readonly Dimension[]
  /** Start, Unix time in milliseconds. */
  readonly sinceMs: number
  /** End, exclusive. */
  readonly untilMs: number
}

/** Groups of a report, the highest cost first. */
export interface SpendGroups {
  readonly rows: SpendRow[]
  /** There are more than MAX_GROUPS. */
  readonly isCut: boolean
}

const sums = {
  requests: 'sum(weight)',
  errors: 'sum(CASE WHEN status = 0 OR status >= 400 THEN weight ELSE 0 END)',
  inputTokens: 'total(input_tokens)',
  outputTokens: 'total(output_tokens)',
  cachedTokens: 'total(cached_tokens)',
  reasoningTokens: 'total(reasoning_tokens)',
  cost: 'total(cost)',
  unpriced: 'sum(CASE WHEN cost IS NULL AND (input_tokens > 0 OR output_tokens > 0) THEN weight ELSE 0 END)',
  seconds: 'sum(duration_ms * weight) / 1000.0',
} as const satisfies Readonly<Record<Exclude<keyof SpendRow, 'group'>, string>>
const sumNames = Object.keys(sums) as (keyof typeof sums)[]

/** Reads a report from the file of a ledger. Synchronous; takes about a second for some million records. Throws if the file cannot be read. */
export function readSpend(path: string, { by, sinceMs, untilMs }: SpendQuery): SpendGroups {
  const database = openForReading(path)
  try {
    const groups = by.map((name, index) => `${dimensions[name]} AS g${index}`)
    const values = sumNames.map((name) => `${sums[name]} AS "${name}"`)
    const order = ['"cost" DESC', '"requests" DESC', ...by.map((_, index) => `g${index}`)]
    const sql = `SELECT ${[...groups, ...values].join(', ')} FROM requests WHERE time >= ? AND time < ?
      ${by.length > 0 ? `GROUP BY ${by.map((_, index) => `g${index}`).join(', ')}` : 'HAVING count(*) > 0'} ORDER BY ${order.join(', ')} LIMIT ?`
    const found = database.prepare(sql).all(Math.floor(sinceMs), Math.floor(untilMs), MAX_GROUPS + 1)
    return {
      isCut: found.length > MAX_GROUPS,
      rows: found.slice(0, MAX_GROUPS).map((row) => ({
        group: by.map((_, index) => toText(row[`g${index}`])),
        ...(Object.fromEntries(sumNames.map((name) => [name, Number(row[name])])) as Record<keyof typeof sums, number>),
      })),
    }
  } finally {
    database.close()
  }
}

const toText = (value: unknown): string | null => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null)
