import { valueColumns, type LedgerRow, type LedgerValue } from './columns.ts'

/** What a batch adds to the counts of `PendingRows`. */
export interface BatchSize {
  readonly rows: number
  /** Characters of the bodies. */
  readonly bodies: number
}

/** Rows of one thread for the store. The entries are JSON already here, because a SQLite file has them as they are. */
export interface LedgerBatch {
  readonly size: BatchSize
  /** Start of the first and of the last request, Unix times in milliseconds. */
  readonly firstMs: number
  readonly lastMs: number
  /** JSON of each `LedgerLabels` that entries share. */
  readonly labels: readonly string[]
  /** JSON of a list of `LedgerEntry`, with times relative to `firstMs`. */
  readonly entries: string
  readonly bodies: readonly LedgerBodies[]
}

/** Values in the order of `labelColumns`. */
export type LedgerLabels = readonly LedgerValue[]
/** Index of the labels in their list, then values in the order of `valueColumns`. Nulls at the end are left out; a weight of null is 1. */
export type LedgerEntry = [labels: number, time: number, ...values: LedgerValue[]]
/** Bodies of the request of one entry. */
export interface LedgerBodies {
  /** Index of the entry. */
  readonly entry: number
  readonly request: string | null
  readonly response: string | null
}

/** A batch of at least one entry, with absolute times. The entries are not changed. */
export function encodeBatch(labels: readonly string[], entries: readonly LedgerEntry[], bodies: readonly LedgerBodies[]): LedgerBatch {
  let [firstMs, lastMs] = [Infinity, -Infinity]
  for (const [, time] of entries) {
    firstMs = Math.min(firstMs, time)
    lastMs = Math.max(lastMs, time)
  }
  const size = { rows: entries.length, bodies: bodies.reduce((sum, each) => sum + lengthOf(each), 0) }
  return { size, firstMs, lastMs, labels, entries: JSON.stringify(entries.map((entry) => compact(entry, firstMs))), bodies }
}

function compact(entry: LedgerEntry, firstMs: number): LedgerEntry {
  let end = entry.length
  while (entry[end - 1] === null) end--
  const copy = entry.slice(0, end) as LedgerEntry
  copy[1] -= firstMs
  return copy
}

/** Characters of bodies. */
export const lengthOf = ({ request, response }: LedgerBodies): number => (request?.length ?? 0) + (response?.length ?? 0)

/** Position of a value in an entry. */
export const positionOf = (column: (typeof valueColumns)[number]): number => 1 + valueColumns.indexOf(column)
const WEIGHT = positionOf('weight')

/** The rows in the order of `columns`. */
export function expandRows({ firstMs, labels, entries, bodies }: LedgerBatch): LedgerRow[] {
  const bodiesOf = new Map(bodies.map((each) => [each.entry, each]))
  const labelsOf = labels.map((each) => JSON.parse(each) as LedgerLabels)
  return (JSON.parse(entries) as LedgerEntry[]).map((entry, index) => {
    const [, time, ...values] = Array.from({ length: 1 + valueColumns.length }, (_, at) => entry[at] ?? (at === WEIGHT ? 1 : null))
    const { request = null, response = null } = bodiesOf.get(index) ?? {}
    return [firstMs + Number(time), ...(labelsOf[entry[0]] ?? []), ...values, request, response]
  })
}
