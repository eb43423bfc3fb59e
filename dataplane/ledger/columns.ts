/** Columns of a record in the ledger, in the order of a `LedgerRow`. Names as in the table `requests`. */
export const columns = [
  'time',
  'protocol',
  'gateway',
  'route',
  'key',
  'user',
  'team',
  'operation',
  'provider',
  'requested_model',
  'model',
  'target',
  'tool',
  'status',
  'reason',
  'guard',
  'budget',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'cost',
  'duration_ms',
  'first_token_ms',
  'trace_id',
  'weight',
] as const

/** Name of a column. */
export type Column = (typeof columns)[number]

/** Values of one request, in the order of `columns`; null: not known, or not applicable. */
export type LedgerRow = readonly (string | number | null)[]

/** Dimensions that a report of the spend can be grouped by, with the SQL expression of each. */
export const dimensions = {
  gateway: 'gateway',
  route: 'route',
  protocol: 'protocol',
  key: 'key',
  user: 'user',
  team: 'team',
  provider: 'provider',
  model: 'coalesce(model, requested_model)',
  requestedModel: 'requested_model',
  operation: 'operation',
  target: 'target',
  tool: 'tool',
  status: 'status',
  reason: 'reason',
  guard: 'guard',
  budget: 'budget',
  hour: "strftime('%Y-%m-%dT%H:00Z', time / 1000, 'unixepoch')",
  day: "strftime('%Y-%m-%d', time / 1000, 'unixepoch')",
  month: "strftime('%Y-%m', time / 1000, 'unixepoch')",
} as const satisfies Readonly<Record<string, string>>

/** Name of a dimension. */
export type Dimension = keyof typeof dimensions

/** Dimensions of one report at most. */
const MAX_DIMENSIONS = 6

/** Reads a comma-separated list of dimensions; the empty text is the empty list. Throws an Error that names an unknown one. */
export function parseDimensions(text: string): Dimension[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))].filter((name) => name !== '')
  const unknown = names.find((name) => !Object.hasOwn(dimensions, name))
  if (unknown !== undefined) throw new Error(`${JSON.stringify(unknown.slice(0, 100))} is not one of ${Object.keys(dimensions).join(', ')}`)
  if (names.length > MAX_DIMENSIONS) throw new Error(`${names.length} dimensions; at most ${MAX_DIMENSIONS} are possible`)
  return names as Dimension[]
}
