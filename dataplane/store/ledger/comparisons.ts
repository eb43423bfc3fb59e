import type { Comparison } from '#api/management/comparison.ts'
import { openForReading } from './sqlite-store.ts'

/** Most comparisons of a report; the newest are read. */
const MAX_COMPARISONS = 20_000

/** What to read: comparisons of a model in a time; `untilMs` is exclusive. */
export interface ComparisonQuery {
  readonly model: string
  readonly sinceMs: number
  readonly untilMs: number
}

/** Reads the comparisons of a model from the SQLite file of a ledger, the newest first. Throws if the file cannot be read. */
export function readComparisons(path: string, { model, sinceMs, untilMs }: ComparisonQuery): { readonly comparisons: Comparison[]; readonly isCut: boolean } {
  const { database } = openForReading(path)
  try {
    const rows = database
      .prepare(
        `SELECT response_body AS body FROM requests
         WHERE "operation" = 'shadow' AND "target" = ? AND "time" >= ? AND "time" < ? AND response_body IS NOT NULL
         ORDER BY "time" DESC LIMIT ${MAX_COMPARISONS + 1}`,
      )
      .all(model, Math.floor(sinceMs), Math.floor(untilMs))
    const comparisons = rows.slice(0, MAX_COMPARISONS).flatMap(({ body }) => parseComparison(String(body)) ?? [])
    return { comparisons, isCut: rows.length > MAX_COMPARISONS }
  } finally {
    database.close()
  }
}

/** A row of another program may hold anything. */
function parseComparison(text: string): Comparison | undefined {
  try {
    const value = JSON.parse(text) as Partial<Comparison> | null
    return value?.original?.target === undefined || value.copy?.target === undefined || value.model === undefined ? undefined : (value as Comparison)
  } catch {
    return undefined
  }
}
