import { columns, type LedgerRow } from './columns.ts'

/** Rows of one thread for the store. */
export interface LedgerBatch {
  /** JSON of a list of rows. */
  readonly json: string
  readonly rows: number
  /** Characters of the bodies in the rows. */
  readonly bodies: number
}

/** Decodes a batch. */
export function decodeBatch({ json }: Pick<LedgerBatch, 'json'>): readonly LedgerRow[] {
  const rows = JSON.parse(json) as readonly LedgerRow[]
  if (rows.some((row) => row.length !== columns.length)) throw new Error(`a row has not ${columns.length} values`)
  return rows
}
