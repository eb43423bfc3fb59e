import { reportPairs, worstOf, type PairReport, type Share } from '#api/management/comparison-report.ts'
import type { Comparison, ComparisonSide } from '#api/management/comparison.ts'
import { CommandError, UsageError } from '../output.ts'
import type { Command } from '../types.ts'
import { printable, readPeriod } from './spend.ts'

/** Comparisons that are listed one by one. */
const WORST = 10

/** Prints how the responses of a model and those of its shadow differ, from the file of a ledger. */
export const runModelsCompare: Command = async (invocation) => {
  const { args, options, output } = invocation
  const [model, ...rest] = args
  if (model === undefined || rest.length > 0) throw new UsageError('models compare needs NAME, the name of a model with a shadow')
  if (options.file === undefined) throw new UsageError('--file must name the file of config.ledger.sqlite.path')
  const period = readPeriod(invocation, Date.now())
  // Loaded on demand: an older Node warns when it loads SQLite.
  const { readComparisons } = await import('../../../dataplane/store/ledger/comparisons.ts')
  let found: ReturnType<typeof readComparisons>
  try {
    found = readComparisons(options.file, { model, ...period })
  } catch (error) {
    throw new CommandError('PX6009', `${options.file}: ${(error as Error).message}; --file names the file of config.ledger.sqlite.path`, { cause: error })
  }
  const { comparisons, isCut } = found
  const report = { model, ...period, pairs: reportPairs(comparisons), worst: worstOf(comparisons, WORST), isCut }
  const worst = (pair: PairReport): Comparison[] => {
    const own = comparisons.filter(({ backend, copy }) => backend === pair.backend && copy.target === pair.copy)
    return worstOf(own, WORST)
  }
  output.print(report, () => (comparisons.length === 0 ? ['no comparisons'] : report.pairs.flatMap((pair) => describePair(model, pair, worst(pair)))))
  if (isCut) output.note('there are more comparisons, of which the oldest are missing; use a later --since\n')
  return 0
}

const shares = [
  ['same stop reason', 'sameStop'],
  ['same calls of tools', 'sameTools'],
  ['same names of tools', 'sameToolNames'],
  ['JSON, original', 'jsonOriginal'],
  ['JSON, copy', 'jsonCopy'],
  ['same members of JSON', 'sameMembers'],
  ['copy wins, of decided', 'copyWins'],
] as const

/** A pair as Markdown, which can be pasted and read in a terminal. */
function describePair(model: string, pair: PairReport, worst: readonly Comparison[]): string[] {
  const { original, copies, ratios, verdicts } = pair
  const judged = verdicts.Original + verdicts.Copy + verdicts.Tie + verdicts.Inconsistent + verdicts.Invalid
  const spread = (
    name: string,
    key: 'durationMs' | 'firstTokenMs' | 'outputTokens' | 'cost',
    ratio: PairReport['ratios']['cost'],
    digits: number,
  ): string[][] =>
    original[key] === null && copies[key] === null
      ? []
      : (['p50', 'p95', 'mean'] as const).map((part, index) => [
          `${name}, ${part}`,
          numberOf(original[key], part, digits),
          numberOf(copies[key], part, digits),
          index === 0 && ratio !== null ? `${ratio.value.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})` : '',
        ])
  return [
    `## ${cell(model)}: ${cell(pair.originals.join(', '))} and ${cell(pair.copy)}`,
    '',
    `${pair.comparisons} comparisons in ${cell(pair.backend)}; ${pair.errors.count} copies failed (${shareText(pair.errors)}).`,
    '',
    ...table([
      ['', 'original', 'copy', 'ratio (95 %)'],
      ...spread('latency ms', 'durationMs', ratios.duration, 0),
      ...spread('first token ms', 'firstTokenMs', ratios.firstToken, 0),
      ...spread('output tokens', 'outputTokens', ratios.outputTokens, 0),
      ...spread('cost USD', 'cost', ratios.cost, 6),
      ['cost USD, sum', original.totalCost.toFixed(6), copies.totalCost.toFixed(6), ''],
    ]),
    '',
    ...table([
      ['', 'share (95 %)', 'of'],
      ...shares.flatMap(([name, key]) => (pair[key].of === 0 ? [] : [[name, shareText(pair[key]), String(pair[key].of)]])),
    ]),
    '',
    ...(pair.similarity === null
      ? []
      : [`Similarity of the texts: median ${pair.similarity.p50.toFixed(2)}, 10 % are below ${pair.similarity.p10.toFixed(2)}.`]),
    ...(judged === 0
      ? []
      : [
          `Judge: original ${verdicts.Original}, copy ${verdicts.Copy}, tie ${verdicts.Tie}, inconsistent ${verdicts.Inconsistent}, invalid ${verdicts.Invalid}; ${pair.judgeCost.toFixed(6)} USD.`,
        ]),
    'Intervals assume independent requests: those of one session make them too narrow.',
    '',
    ...(worst.length === 0
      ? []
      : ['Greatest differences:', '', ...table([['request', 'error', 'stop', 'tools', 'JSON', 'similarity', 'verdict'], ...worst.map(describeOne)]), '']),
  ]
}

function describeOne({ requestId, error, original, copy, tools, similarity, verdict }: Comparison): string[] {
  const both = (of: (side: ComparisonSide) => string): string => (of(original) === of(copy) ? of(copy) : `${of(original)} / ${of(copy)}`)
  return [
    cell(requestId ?? '-'),
    cell(error ?? '-'),
    error === null ? cell(both(({ stop }) => stop ?? '-')) : '-',
    tools ?? '-',
    error === null ? both(({ json }) => (json === null ? '-' : json ? 'yes' : 'no')) : '-',
    similarity === null ? '-' : similarity.toFixed(2),
    verdict ?? '-',
  ]
}

/** Rows as a table of Markdown, whose columns are aligned in a terminal too. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string => `| ${cells.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [header = [], ...others] = rows
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...others.map(line)]
}

const numberOf = (spread: PairReport['copies']['cost'], part: 'p50' | 'p95' | 'mean', digits: number): string =>
  spread === null ? '-' : spread[part].toFixed(digits)
const percent = (value: number): string => `${(100 * value).toFixed(1)} %`
const shareText = ({ value, low, high }: Share): string => `${percent(value)} (${percent(low)} to ${percent(high)})`
/** Clients choose request ids, and upstreams errors: neither may end a cell of the table, or steer the terminal. */
const cell = (text: string): string => printable(text.slice(0, 100)).replaceAll('|', '\\|')
