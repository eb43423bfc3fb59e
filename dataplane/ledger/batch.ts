import { columns, labelColumns, valueColumns, type LedgerRow, type LedgerValue } from './columns.ts'

/** Rows of one thread for the store. */
export interface LedgerBatch {
  /** JSON of LedgerRows. */
  readonly json: string
  readonly rows: number
  /** Characters of the bodies in the rows. */
  readonly bodies: number
}

/** Values in the order of `labelColumns`. */
export type LedgerLabels = readonly LedgerValue[]
/** Index of the labels in their list, then values in the order of `valueColumns`. */
export type LedgerEntry = [labels: number, ...values: LedgerValue[]]

/** Rows with the labels that they share. */
export interface LedgerRows {
  readonly labels: readonly LedgerLabels[]
  readonly rows: readonly Readonly<LedgerEntry>[]
}

/** Decodes a batch. Throws an Error if a row or its labels are not complete. */
export function decodeBatch({ json }: Pick<LedgerBatch, 'json'>): LedgerRows {
  const batch = JSON.parse(json) as LedgerRows
  const { labels, rows } = batch
  const isComplete =
    labels.every(({ length }) => length === labelColumns.length) && rows.every((row) => row.length === 1 + valueColumns.length && row[0] in labels)
  if (!isComplete) throw new Error(`a row has not ${columns.length} values`)
  return batch
}

/** The rows in the order of `columns`. */
export function expandRows({ labels, rows }: LedgerRows): LedgerRow[] {
  return rows.map(([index, time = null, ...values]) => [time, ...(labels[index] ?? []), ...values])
}
