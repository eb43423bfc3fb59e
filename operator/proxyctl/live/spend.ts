import { mergeSpend } from '#api/management/merge.ts'
import type { Spend, SpendRow } from '#api/management/spend.ts'
import { parseDuration } from '#api/duration.ts'
import { parseDimensions, type Dimension } from '../../../dataplane/store/ledger/columns.ts'
import { listTargets, locate } from './admin.ts'
import { TargetError, Targets } from '../console/targets.ts'
import { alignColumns, CommandError, UsageError, type Output } from '../output.ts'
import type { Command, Invocation } from '../types.ts'

const DAY_MS = 86_400_000

interface Period {
  readonly sinceMs: number
  readonly untilMs: number
}

/** Prints the spend of the ledgers of a Gateway, or of a file. */
export const runSpend: Command = async (invocation) => {
  const { args, options, output } = invocation
  if (args.length > 0) throw new UsageError('spend takes no argument; --by names the dimensions')
  const by = readDimensions(options.by)
  const period = readPeriod(invocation, Date.now())
  const spend = options.file === undefined ? await readPods(invocation, by, period) : await readFile(options.file, by, period)
  output.print(spend, () => (output.isCsv ? formatCsv(spend) : formatTable(spend, output)))
  const unpriced = Math.round(sumOf(spend.rows, 'unpriced'))
  if (unpriced > 0) output.note(`${unpriced} requests used models without a price and are missing in the cost; --by model -o wide shows them\n`)
  if (spend.isCut) output.note('there are more groups; use fewer dimensions or a shorter time\n')
  return 0
}

function readDimensions(text = 'model'): readonly Dimension[] {
  try {
    return parseDimensions(text)
  } catch (error) {
    throw new UsageError(`--by: ${(error as Error).message}`)
  }
}

export function readPeriod({ options: { since = '7d', until } }: Invocation, nowMs: number): Period {
  // Exclusive, so that requests of this millisecond are counted.
  const untilMs = until === undefined ? nowMs + 1 : parseTime('--until', until, nowMs)
  const sinceMs = parseTime('--since', since, nowMs)
  if (sinceMs >= untilMs) throw new UsageError('--since is not before --until')
  return { sinceMs, untilMs }
}

/** The time before a duration such as `7d` or `12h`, or a date or time of ISO 8601; without a zone UTC. */
function parseTime(option: string, text: string, nowMs: number): number {
  const days = /^([1-9]\d{0,4})d$/.exec(text)?.[1]
  const agoMs = days === undefined ? parseDuration(text) : Number(days) * DAY_MS
  if (agoMs !== undefined) return Math.max(0, nowMs - agoMs)
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)
  const ms = isTime ? Date.parse(/T.*(?:Z|[+-]\d\d:\d\d)$/.test(text) || !text.includes('T') ? text : `${text}Z`) : Number.NaN
  if (Number.isNaN(ms) || ms < 0)
    throw new UsageError(`${option}: ${JSON.stringify(text)} is neither a duration such as 7d or 12h, nor a time such as 2027-01-31T00:00:00Z`)
  return ms
}

async function readFile(path: string, by: readonly Dimension[], period: Period): Promise<Spend> {
  // Loaded on demand: an older Node warns when it loads SQLite.
  const { readSpend } = await import('../../../dataplane/store/ledger/spend.ts')
  try {
    return { by: [...by], ...period, ...readSpend(path, { by, ...period }) }
  } catch (error) {
    throw new CommandError('PX6009', `${path}: ${(error as Error).message}; --file names the file of config.ledger.sqlite.path`, { cause: error })
  }
}

/** The sum of all data planes. Reports those that are missing in it. */
async function readPods(invocation: Invocation, by: readonly Dimension[], { sinceMs, untilMs }: Period): Promise<Spend> {
  const { output } = invocation
  const location = await output.wait('searching for the data plane', locate(invocation))
  const targets = new Targets(() => listTargets(location))
  const query = new URLSearchParams({ by: by.join(','), since: String(sinceMs), until: String(untilMs) })
  try {
    const reports = await output.wait('reading the ledgers', targets.json<Spend>(`/api/v1/spend?${query.toString()}`))
    const names = new Set(reports.map(({ name }) => name))
    const missing = (await targets.all()).filter(({ name }) => !names.has(name)).map(({ name }) => name)
    if (missing.length > 0) output.note(`missing in the sums, because they did not return a report: ${missing.join(', ')}\n`)
    const [first, ...others] = reports.map(({ value }) => value)
    if (first === undefined) throw new CommandError('PX6004', 'no data plane returned a report')
    return mergeSpend([first, ...others])
  } catch (error) {
    if (error instanceof TargetError) throw new CommandError('PX6004', error.message, { cause: error })
    if (error instanceof CommandError) throw error
    throw new CommandError('PX6003', `the data plane cannot be reached: ${(error as Error).message}; name it with --admin HOST:PORT or --gateway NS/NAME`, {
      cause: error,
    })
  }
}

type Sum = Exclude<keyof SpendRow, 'group'>
const sumOf = (rows: readonly SpendRow[], name: Sum): number => rows.reduce((sum, row) => sum + row[name], 0)
const whole = (value: number): string => String(Math.round(value))

const tableColumns: readonly (readonly [title: string, name: Sum, format: (value: number) => string, isWide?: boolean])[] = [
  ['REQUESTS', 'requests', whole],
  ['ERRORS', 'errors', whole],
  ['INPUT', 'inputTokens', whole],
  ['OUTPUT', 'outputTokens', whole],
  ['CACHED', 'cachedTokens', whole, true],
  ['REASONING', 'reasoningTokens', whole, true],
  ['UNPRICED', 'unpriced', whole, true],
  ['SECONDS', 'seconds', (value) => value.toFixed(1), true],
  ['COST', 'cost', (value) => value.toFixed(4)],
]

function formatTable({ by, rows }: Spend, output: Output): string[] {
  if (rows.length === 0) return ['no requests']
  const shown = tableColumns.filter(([, , , isWide]) => output.isWide || isWide !== true)
  const cellsOf = (of: readonly SpendRow[]): string[] => shown.map(([, name, format]) => format(sumOf(of, name)))
  const total = rows.length > 1 ? [[...by.map((_, index) => (index === 0 ? 'TOTAL' : '')), ...cellsOf(rows)]] : []
  return alignColumns([
    [...by.map((name) => name.toUpperCase()), ...shown.map(([title]) => title)],
    ...rows.map((row) => [...row.group.map((value) => (value === null ? '-' : printable(value))), ...cellsOf([row])]),
    ...total,
  ])
}

/** Clients choose the names of models: control characters could steer the terminal. */
export const printable = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd')

const sumNames: readonly Sum[] = ['requests', 'errors', 'inputTokens', 'outputTokens', 'cachedTokens', 'reasoningTokens', 'cost', 'unpriced', 'seconds']

/** RFC 4180, with a header. Numbers have at most nine digits after the point. */
function formatCsv({ by, rows }: Spend): string[] {
  const lines = rows.map((row) => [...row.group.map(csvText), ...sumNames.map((name) => String(Number(row[name].toFixed(9))))].join(','))
  return [[...by, ...sumNames].join(','), ...lines]
}

/** A cell. A spreadsheet would run a text that begins like a formula, so such a text gets an apostrophe. */
function csvText(value: string | null): string {
  if (value === null) return ''
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
