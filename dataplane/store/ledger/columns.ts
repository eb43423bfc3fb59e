/** Columns with values that many requests have in common. */
export const labelColumns = [
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
] as const

/** Columns with values of one request. Those that few requests have are last, because the end of an entry without values is cut off. */
export const valueColumns = [
  'time',
  'duration_ms',
  'input_tokens',
  'output_tokens',
  'cost',
  'cached_tokens',
  'reasoning_tokens',
  'first_token_ms',
  'trace_id',
  'weight',
] as const

/** Columns of the bodies of one request. Tables of earlier versions lack them. */
export const bodyColumns = ['request_body', 'response_body'] as const

const [time, ...otherValues] = valueColumns

/** Columns of a record in the ledger, in the order of a `LedgerRow`. Names as in the table `requests`. */
export const columns = [time, ...labelColumns, ...otherValues, ...bodyColumns] as const

/** Name of a column. */
export type Column = (typeof columns)[number]

/** A value of a record; null: not known, or not applicable. */
export type LedgerValue = string | number | null

/** Values of one request, in the order of `columns`. */
export type LedgerRow = readonly LedgerValue[]

/** Dimensions that a report of the spend can be grouped by. */
const dimensions = [
  'gateway',
  'route',
  'protocol',
  'key',
  'user',
  'team',
  'provider',
  'model',
  'requestedModel',
  'operation',
  'target',
  'tool',
  'status',
  'reason',
  'guard',
  'budget',
  'hour',
  'day',
  'month',
] as const

/** Name of a dimension. */
export type Dimension = (typeof dimensions)[number]

/** Dimensions of one report at most. */
const MAX_DIMENSIONS = 6

/** Reads a comma-separated list of dimensions; the empty text is the empty list. Throws an Error that names an unknown one. */
export function parseDimensions(text: string): Dimension[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))].filter((name) => name !== '')
  const known: readonly string[] = dimensions
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`${JSON.stringify(unknown.slice(0, 100))} is not one of ${known.join(', ')}`)
  if (names.length > MAX_DIMENSIONS) throw new Error(`${names.length} dimensions; at most ${MAX_DIMENSIONS} are possible`)
  return names as Dimension[]
}
