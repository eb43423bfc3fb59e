import type { Comparison, ComparisonSide } from './comparison.ts'

/** Numbers of one kind; null: no response has the value. */
type Spread = { readonly p50: number; readonly p95: number; readonly mean: number; readonly count: number } | null
/** An estimate with its interval of 95 %; null: there are too few comparisons. */
type Interval = { readonly value: number; readonly low: number; readonly high: number } | null

/** A share with its interval of 95 %. */
export interface Share {
  readonly count: number
  readonly of: number
  readonly value: number
  readonly low: number
  readonly high: number
}

interface SideReport {
  readonly durationMs: Spread
  readonly firstTokenMs: Spread
  readonly outputTokens: Spread
  readonly cost: Spread
  /** US dollars. */
  readonly totalCost: number
}

/** The comparisons of a model with one other model. */
export interface PairReport {
  readonly backend: string
  /** Targets that responded to clients. */
  readonly originals: readonly string[]
  /** Target of the copies. */
  readonly copy: string
  readonly comparisons: number
  /** Copies that failed. */
  readonly errors: Share
  readonly original: SideReport
  readonly copies: SideReport
  /** Copy divided by original: geometric means of the pairs. */
  readonly ratios: { readonly duration: Interval; readonly firstToken: Interval; readonly outputTokens: Interval; readonly cost: Interval }
  readonly sameStop: Share
  /** Of pairs with calls of tools: equal names and arguments. */
  readonly sameTools: Share
  readonly sameToolNames: Share
  readonly jsonOriginal: Share
  readonly jsonCopy: Share
  readonly sameMembers: Share
  readonly similarity: { readonly p10: number; readonly p50: number; readonly count: number } | null
  readonly verdicts: Readonly<Record<NonNullable<Comparison['verdict']>, number>>
  /** Of verdicts with a winner: that of the copy. */
  readonly copyWins: Share
  /** US dollars. */
  readonly judgeCost: number
}

/** Pairs that an interval of a mean needs. */
const MIN_PAIRS = 20
/** Quantile of the normal distribution for an interval of 95 %. */
const Z = 1.96

/** The reports of all pairs of models in some comparisons; the pair with the most comparisons first. */
export function reportPairs(comparisons: readonly Comparison[]): PairReport[] {
  const pairs = Map.groupBy(comparisons, ({ backend, copy }) => `${backend} ${copy.target}`)
  return [...pairs.values()].map(reportPair).toSorted((a, b) => b.comparisons - a.comparisons)
}

/** The comparisons with the greatest differences, the worst first. Equal responses are none. */
export function worstOf(comparisons: readonly Comparison[], count: number): Comparison[] {
  return comparisons
    .filter((each) => differenceOf(each) > 0)
    .toSorted((a, b) => differenceOf(b) - differenceOf(a) || b.timeMs - a.timeMs)
    .slice(0, count)
}

/** How bad a copy is in place of its original: a failure, then calls of tools, JSON, the judge, the reason of the end, and the text. */
function differenceOf({ error, original, copy, tools, sameMembers, similarity, verdict }: Comparison): number {
  if (error !== null) return 1000
  const parts = [
    tools === 'names' && 100,
    tools === 'arguments' && 50,
    original.json === true && copy.json === false && 80,
    sameMembers === false && 40,
    verdict === 'Original' && 30,
    original.stop !== copy.stop && 20,
    similarity !== null && 10 * (1 - similarity),
  ]
  return parts.reduce<number>((sum, part) => sum + (part === false ? 0 : part), 0)
}

function reportPair(all: readonly Comparison[]): PairReport {
  const done = all.filter(({ error }) => error === null)
  const of = (name: 'original' | 'copy', from = done): ComparisonSide[] => from.map((each) => each[name])
  const called = done.filter(({ tools }) => tools !== null)
  const structured = done.filter(({ original, copy }) => original.json !== null && copy.json !== null)
  const members = done.filter(({ sameMembers }) => sameMembers !== null)
  const similarities = done.flatMap(({ similarity }) => similarity ?? []).toSorted((a, b) => a - b)
  const verdicts = { Original: 0, Copy: 0, Tie: 0, Inconsistent: 0, Invalid: 0 }
  for (const { verdict } of done) if (verdict !== null) verdicts[verdict]++
  const ratio = (name: 'durationMs' | 'firstTokenMs' | 'outputTokens' | 'cost'): Interval =>
    ratioOf(done.map(({ original, copy }) => [original[name], copy[name]]))
  const [first] = all
  return {
    backend: first?.backend ?? '',
    originals: [...new Set(of('original', [...all]).map(({ target }) => target))].toSorted(),
    copy: first?.copy.target ?? '',
    comparisons: all.length,
    errors: shareOf(all.length - done.length, all.length),
    original: reportSide(of('original')),
    copies: reportSide(of('copy')),
    ratios: { duration: ratio('durationMs'), firstToken: ratio('firstTokenMs'), outputTokens: ratio('outputTokens'), cost: ratio('cost') },
    sameStop: shareOf(done.filter(({ original, copy }) => original.stop === copy.stop).length, done.length),
    sameTools: shareOf(called.filter(({ tools }) => tools === 'none').length, called.length),
    sameToolNames: shareOf(called.filter(({ tools }) => tools !== 'names').length, called.length),
    jsonOriginal: shareOf(structured.filter(({ original }) => original.json === true).length, structured.length),
    jsonCopy: shareOf(structured.filter(({ copy }) => copy.json === true).length, structured.length),
    sameMembers: shareOf(members.filter(({ sameMembers }) => sameMembers === true).length, members.length),
    similarity: similarities.length === 0 ? null : { p10: quantile(similarities, 0.1), p50: quantile(similarities, 0.5), count: similarities.length },
    verdicts,
    copyWins: shareOf(verdicts.Copy, verdicts.Copy + verdicts.Original),
    judgeCost: sumOf(all.map(({ judgeCost }) => judgeCost ?? 0)),
  }
}

function reportSide(sides: readonly ComparisonSide[]): SideReport {
  const values = (name: 'durationMs' | 'firstTokenMs' | 'outputTokens' | 'cost'): number[] => sides.flatMap((side) => side[name] ?? [])
  return {
    durationMs: spreadOf(values('durationMs')),
    firstTokenMs: spreadOf(values('firstTokenMs')),
    outputTokens: spreadOf(values('outputTokens')),
    cost: spreadOf(values('cost')),
    totalCost: sumOf(values('cost')),
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

/** The nearest rank of sorted numbers. */
const quantile = (sorted: readonly number[], share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0

function spreadOf(numbers: readonly number[]): Spread {
  if (numbers.length === 0) return null
  const sorted = numbers.toSorted((a, b) => a - b)
  return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), mean: sumOf(sorted) / sorted.length, count: sorted.length }
}

/** A share with the interval of Wilson, which holds for few comparisons and for shares of 0 and 1 too. */
export function shareOf(count: number, of: number): Share {
  if (of === 0) return { count, of, value: 0, low: 0, high: 1 }
  const value = count / of
  const center = (value + (Z * Z) / (2 * of)) / (1 + (Z * Z) / of)
  const half = (Z * Math.sqrt((value * (1 - value)) / of + (Z * Z) / (4 * of * of))) / (1 + (Z * Z) / of)
  return { count, of, value, low: Math.max(0, center - half), high: Math.min(1, center + half) }
}

/** The geometric mean of the ratios of pairs, with the interval of the mean of their logarithms. */
function ratioOf(pairs: readonly (readonly [original: number | null, copy: number | null])[]): Interval {
  const logs = pairs.flatMap(([original, copy]) => (original !== null && copy !== null && original > 0 && copy > 0 ? [Math.log(copy / original)] : []))
  if (logs.length < MIN_PAIRS) return null
  const mean = sumOf(logs) / logs.length
  const variance = sumOf(logs.map((log) => (log - mean) ** 2)) / (logs.length - 1)
  const half = Z * Math.sqrt(variance / logs.length)
  return { value: Math.exp(mean), low: Math.exp(mean - half), high: Math.exp(mean + half) }
}
