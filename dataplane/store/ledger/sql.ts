import type { SpendRow } from '#api/management/spend.ts'
import type { Dimension } from './columns.ts'
import type { SpendGroups, SpendQuery } from './store.ts'

/** Groups of one report at most, those of the highest cost. */
const MAX_GROUPS = 10_000

/** What differs between databases. */
export interface Dialect {
  /** Expression of the sum of a column, 0 without values. */
  total(column: string): string
  /** Expression of the start of the hour, day or month of `time`, in ISO 8601 and UTC. */
  readonly periods: Readonly<Record<'hour' | 'day' | 'month', string>>
}

/** SQL expressions of the dimensions that are not columns of their own name. */
const expressions: Readonly<Partial<Record<Dimension, string>>> = { model: 'coalesce(model, requested_model)', requestedModel: 'requested_model' }

const isPeriod = (name: Dimension): name is 'hour' | 'day' | 'month' => name === 'hour' || name === 'day' || name === 'month'

const sumsOf = ({ total }: Dialect) =>
  ({
    requests: 'sum(weight)',
    errors: 'sum(CASE WHEN status = 0 OR status >= 400 THEN weight ELSE 0 END)',
    inputTokens: total('input_tokens'),
    outputTokens: total('output_tokens'),
    cachedTokens: total('cached_tokens'),
    reasoningTokens: total('reasoning_tokens'),
    cost: total('cost'),
    unpriced: 'sum(CASE WHEN cost IS NULL AND (input_tokens > 0 OR output_tokens > 0) THEN weight ELSE 0 END)',
    seconds: 'sum(duration_ms * weight) / 1000.0',
  }) as const satisfies Readonly<Record<Exclude<keyof SpendRow, 'group'>, string>>

/** The statement of a report. `from` is the table with the condition of the time: `requests WHERE time >= ? AND time < ?`. */
export function spendStatement({ by }: Pick<SpendQuery, 'by'>, from: string, dialect: Dialect): string {
  const groups = by.map((name, index) => `${isPeriod(name) ? dialect.periods[name] : (expressions[name] ?? `"${name}"`)} AS g${index}`)
  // Not the name of a column: ClickHouse would replace the column by it.
  const values = Object.entries(sumsOf(dialect)).map(([name, sum]) => `${sum} AS "total_${name}"`)
  const order = ['"total_cost" DESC', '"total_requests" DESC', ...by.map((_, index) => `g${index}`)]
  const grouping = by.length > 0 ? `GROUP BY ${by.map((_, index) => `g${index}`).join(', ')}` : 'HAVING count(*) > 0'
  return `SELECT ${[...groups, ...values].join(', ')} FROM ${from} ${grouping} ORDER BY ${order.join(', ')} LIMIT ${MAX_GROUPS + 1}`
}

/** The report of the rows that the database returned. Numbers may be texts. */
export function spendGroups({ by }: Pick<SpendQuery, 'by'>, found: readonly Readonly<Record<string, unknown>>[]): SpendGroups {
  return {
    isCut: found.length > MAX_GROUPS,
    rows: found.slice(0, MAX_GROUPS).map((row) => ({
      group: by.map((_, index) => toText(row[`g${index}`])),
      requests: Number(row['total_requests']),
      errors: Number(row['total_errors']),
      inputTokens: Number(row['total_inputTokens']),
      outputTokens: Number(row['total_outputTokens']),
      cachedTokens: Number(row['total_cachedTokens']),
      reasoningTokens: Number(row['total_reasoningTokens']),
      cost: Number(row['total_cost']),
      unpriced: Number(row['total_unpriced']),
      // Databases add up in different orders.
      seconds: Math.round(Number(row['total_seconds']) * 1000) / 1000,
    })),
  }
}

const toText = (value: unknown): string | null => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null)
