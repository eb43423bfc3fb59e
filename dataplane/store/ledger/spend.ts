import type { DatabaseSync } from 'node:sqlite'
import { positionOf, type LedgerEntry } from './batch.ts'
import { labelColumns, type Column } from './columns.ts'
import { spendGroups, spendStatement, type Dialect } from './sql.ts'
import { oldRecords, openForReading, quote } from './sqlite-store.ts'
import type { SpendGroups, SpendQuery } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Sums that are in memory at a time. */
const MAX_SUMS = 50_000

/** Columns that reports add up. */
const summed = ['duration_ms', 'input_tokens', 'output_tokens', 'cost', 'cached_tokens', 'reasoning_tokens', 'weight'] as const
const reported: readonly Column[] = ['time', ...labelColumns, ...summed]
const SUMS = `SELECT ${quote(reported)} FROM sums CROSS JOIN labels ON labels.id = sums.labels`

const period = (format: string): string => `strftime('${format}', time / 1000, 'unixepoch')`
const dialect: Dialect = {
  total: (column) => `total(${column})`,
  periods: { hour: period('%Y-%m-%dT%H:00Z'), day: period('%Y-%m-%d'), month: period('%Y-%m') },
}

/** Reads a report from the SQLite file of a ledger. Synchronous; takes about a second for some million records. Throws if the file cannot be read. */
export function readSpend(path: string, query: SpendQuery): SpendGroups {
  const { database, hasBatches } = openForReading(path)
  const [since, until] = [Math.floor(query.sinceMs), Math.floor(query.untilMs)]
  const inTime = 'WHERE time >= ?1 AND time < ?2'
  try {
    const periodMs = query.by.includes('hour') ? HOUR_MS : DAY_MS
    if (hasBatches) sumUp(database, { since, until, periodMs })
    const old = oldRecords(database, reported).map((records) => `${records} ${inTime}`)
    const from = hasBatches ? `(${[`${SUMS} WHERE time > ?1 - ${periodMs} AND time < ?2`, ...old].join(' UNION ALL ')})` : `requests ${inTime}`
    return spendGroups(query, database.prepare(spendStatement(query, from, dialect)).all(since, until))
  } finally {
    database.close()
  }
}

/** Sums of records. */
type Sums = Record<(typeof summed)[number], number>

/**
 * Creates the temporary table `sums`, in which one row has what records of the same labels in the same period have together. The sums of its
 * rows are those of the records. SQLite itself would take ten times as long to read the entries.
 */
function sumUp(database: DatabaseSync, { since, until, periodMs }: { since: number; until: number; periodMs: number }): void {
  database.exec(`CREATE TEMP TABLE sums (labels INTEGER, time INTEGER, ${quote(summed)})`)
  const insert = database.prepare(`INSERT INTO sums VALUES (?, ?, ${summed.map(() => '?').join(', ')})`)
  /** By ids of labels, then by periods and kinds. */
  const groups = new Map<number, Map<number, Sums>>()
  let count = 0
  const write = (): void => {
    for (const [labels, ofLabels] of groups)
      for (const [key, sums] of ofLabels) {
        const { weight, duration_ms, cost } = sums
        const row = { ...sums, duration_ms: duration_ms / weight, cost: key % KINDS === PRICED ? cost : null }
        insert.run(labels, Math.floor(key / KINDS) * periodMs, ...summed.map((name) => row[name]))
      }
    groups.clear()
    count = 0
  }
  const batches = database.prepare('SELECT first, labels, entries FROM batches WHERE last >= ? AND first < ?').iterate(since, until)
  for (const { first, labels, entries } of batches) {
    const ids = JSON.parse(String(labels)) as number[]
    for (const entry of JSON.parse(String(entries)) as LedgerEntry[]) {
      const time = Number(first) + entry[1]
      if (time < since || time >= until) continue
      const id = ids[entry[0]] ?? 0
      let ofLabels = groups.get(id)
      if (ofLabels === undefined) groups.set(id, (ofLabels = new Map()))
      const key = Math.floor(time / periodMs) * KINDS + kindOf(entry)
      let sums = ofLabels.get(key)
      if (sums === undefined) {
        ofLabels.set(key, (sums = { duration_ms: 0, input_tokens: 0, output_tokens: 0, cost: 0, cached_tokens: 0, reasoning_tokens: 0, weight: 0 }))
        count++
      }
      addTo(sums, entry)
    }
    if (count >= MAX_SUMS) write()
  }
  write()
}

const [DURATION, INPUT, OUTPUT, COST] = [positionOf('duration_ms'), positionOf('input_tokens'), positionOf('output_tokens'), positionOf('cost')]
const [CACHED, REASONING, WEIGHT] = [positionOf('cached_tokens'), positionOf('reasoning_tokens'), positionOf('weight')]

const numberAt = (entry: LedgerEntry, at: number): number => (entry[at] ?? 0) as number

function addTo(sums: Sums, entry: LedgerEntry): void {
  const weight = numberAt(entry, WEIGHT) || 1
  sums.weight += weight
  sums.duration_ms += numberAt(entry, DURATION) * weight
  sums.input_tokens += numberAt(entry, INPUT)
  sums.output_tokens += numberAt(entry, OUTPUT)
  sums.cost += numberAt(entry, COST)
  sums.cached_tokens += numberAt(entry, CACHED)
  sums.reasoning_tokens += numberAt(entry, REASONING)
}

/** Kinds of records that a report counts apart: with a cost, with tokens that have no price, without tokens. */
const [PRICED, UNPRICED, FREE, KINDS] = [0, 1, 2, 3]

function kindOf(entry: LedgerEntry): number {
  if (typeof entry[COST] === 'number') return PRICED
  return numberAt(entry, INPUT) > 0 || numberAt(entry, OUTPUT) > 0 ? UNPRICED : FREE
}
