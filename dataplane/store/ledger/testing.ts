import { encodeBatch, type LedgerBatch, type LedgerEntry } from './batch.ts'
import { labelColumns, valueColumns, type LedgerRow } from './columns.ts'

/** A batch of rows, each with labels of its own. */
export function batchOf(...rows: readonly LedgerRow[]): LedgerBatch {
  const end = 1 + labelColumns.length
  const bodiesAt = end + valueColumns.length - 1
  return encodeBatch(
    rows.map((row) => JSON.stringify(row.slice(1, end))),
    rows.map((row, index) => [index, row[0], ...row.slice(end, bodiesAt)] as LedgerEntry),
    rows.flatMap((row, entry) => {
      const [request = null, response = null] = row.slice(bodiesAt) as (string | null)[]
      return request === null && response === null ? [] : [{ entry, request, response }]
    }),
  )
}
