import { spendGroups, spendStatement, type Dialect } from './sql.ts'
import { openForReading, recordsBetween } from './sqlite-store.ts'
import type { SpendGroups, SpendQuery } from './store.ts'

const period = (format: string): string => `strftime('${format}', time / 1000, 'unixepoch')`
const dialect: Dialect = {
  total: (column) => `total(${column})`,
  periods: { hour: period('%Y-%m-%dT%H:00Z'), day: period('%Y-%m-%d'), month: period('%Y-%m') },
}

/** Reads a report from the SQLite file of a ledger. Synchronous; takes about a second for some million records. Throws if the file cannot be read. */
export function readSpend(path: string, query: SpendQuery): SpendGroups {
  const database = openForReading(path)
  try {
    const statement = database.prepare(spendStatement(query, recordsBetween(database), dialect))
    return spendGroups(query, statement.all(Math.floor(query.sinceMs), Math.floor(query.untilMs)))
  } finally {
    database.close()
  }
}
