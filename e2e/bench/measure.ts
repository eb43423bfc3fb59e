/** One result of a case; out/results.json is a list of them. */
export interface Result {
  readonly case: string
  readonly ours: number
  readonly peer: number
  readonly peerName: string
  /** ours / peer, or the median of this ratio per round. */
  readonly ratio: number
  readonly unit: string
}

/** Limits of the ratio of a result. */
export interface Bar {
  readonly atLeast?: number
  readonly atMost?: number
}

/** A result with its limits. */
export interface Judged extends Result {
  readonly bar: Bar
  readonly passed: boolean
}

/** Compares a result with its limits. The default `ratio` is ours / peer. */
export function judge(result: Omit<Result, 'ratio'> & { readonly ratio?: number }, bar: Bar): Judged {
  // With a limit of 0, such as for failed requests, the measured number is the ratio.
  const ratio = result.ratio ?? (result.peer === 0 ? result.ours : result.ours / result.peer)
  const passed = Number.isFinite(ratio) && ratio >= (bar.atLeast ?? -Infinity) && ratio <= (bar.atMost ?? Infinity)
  return { ...result, ratio, bar, passed }
}

/** Compares a number with a fixed upper limit instead of another program. */
export function judgeLimit(name: string, ours: number, limit: number, unit: string): Judged {
  return judge({ case: name, ours, peer: limit, peerName: 'limit', unit }, limit === 0 ? { atMost: 0 } : { atMost: 1 })
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which a share (0 to 1) of the values lies; NaN for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  if (sorted.length === 0) return Number.NaN
  if (share === 0.5 && sorted.length % 2 === 0) return ((sorted[sorted.length / 2 - 1] ?? 0) + (sorted[sorted.length / 2] ?? 0)) / 2
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}
