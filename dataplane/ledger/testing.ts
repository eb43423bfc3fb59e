import type { LedgerRows } from './batch.ts'
import { labelColumns, type LedgerRow } from './columns.ts'

/** A batch of rows, each with labels of its own. */
export function batchOf(...rows: readonly LedgerRow[]): LedgerRows {
  const end = 1 + labelColumns.length
  return {
    labels: rows.map((row) => row.slice(1, end)),
    rows: rows.map((row, index) => [index, ...row.slice(0, 1), ...row.slice(end)]),
  }
}
