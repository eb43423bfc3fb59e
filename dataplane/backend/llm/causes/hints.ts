import type { HeaderList } from '../../../http/headers.ts'

/** What a provider says about the next attempt, besides the cause. */
export interface Hints {
  readonly retryAfterMs: number | undefined
  readonly shouldRetry: boolean | undefined
}

/** Longest delay that is believed. After it, one request finds out whether the limit still holds. */
export const MAX_HINT_MS = 3_600_000
/** A larger `x-ratelimit-reset` is a Unix time, not a number of seconds. */
const RESET_SECONDS_LIMIT = 30 * 86_400
/** A larger time is in milliseconds. */
const EPOCH_SECONDS_LIMIT = 1e11
/** Limits of the providers, by the names in their headers. */
const limits = [
  ...['requests', 'tokens'].map((kind) => [`x-ratelimit-reset-${kind}`, `x-ratelimit-remaining-${kind}`] as const),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (kind) => [`anthropic-ratelimit-${kind}-reset`, `anthropic-ratelimit-${kind}-remaining`] as const,
  ),
]

/**
 * Reads the hints of a failed response, in this order: `x-should-retry`, `retry-after-ms`, `retry-after` (seconds with a fraction, or a date), `retryInfoMs`
 * (RetryInfo in the body), then the resets of the limits that are used up: durations, seconds, Unix times or RFC 3339 (llm.md §15.4). Times in the past
 * and values that are none of these are ignored.
 */
export function readHints(headers: HeaderList, epochMs: number, retryInfoMs?: number): Hints {
  const word = headers.get('x-should-retry')?.trim().toLowerCase()
  const delay =
    secondsOf(headers.get('retry-after-ms'), 1) ?? readRetryAfter(headers.get('retry-after'), epochMs) ?? retryInfoMs ?? readResets(headers, epochMs)
  return {
    retryAfterMs: delay === undefined ? undefined : Math.min(delay, MAX_HINT_MS),
    shouldRetry: word === 'true' ? true : word === 'false' ? false : undefined,
  }
}

function readRetryAfter(text: string | undefined, epochMs: number): number | undefined {
  return text === undefined ? undefined : (secondsOf(text, 1000) ?? timeOf(text, epochMs))
}

function readResets(headers: HeaderList, epochMs: number): number | undefined {
  const reset = spanOf(headers.get('x-ratelimit-reset'), epochMs)
  if (reset !== undefined) return reset
  const waits: number[] = []
  const used: number[] = []
  for (const [name, remaining] of limits) {
    const wait = spanOf(headers.get(name), epochMs)
    if (wait === undefined) continue
    waits.push(wait)
    if (headers.get(remaining)?.trim() === '0') used.push(wait)
  }
  if (used.length > 0) return Math.max(...used)
  // Which of them is used up is unknown; the next attempt tells.
  return waits.length === 0 ? undefined : Math.min(...waits)
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A duration such as `6m0s`, a number of seconds, a Unix time or a date, as milliseconds from now. */
function spanOf(text: string | undefined, epochMs: number): number | undefined {
  if (text === undefined) return undefined
  const plain = secondsOf(text, 1)
  if (plain !== undefined) return plain < RESET_SECONDS_LIMIT ? plain * 1000 : left(plain < EPOCH_SECONDS_LIMIT ? plain * 1000 : plain, epochMs)
  return durationMs(text) ?? timeOf(text, epochMs)
}

/** Parses a duration such as `1m30s`, `250ms` or `34.07s`; undefined if it is none, or 0. */
export function durationMs(text: string): number | undefined {
  if (text.length > 40 || !/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(text)) return undefined
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)) sum += Number(amount) * (unitMs[unit ?? 's'] ?? 0)
  return sum > 0 ? Math.round(sum) || 1 : undefined
}

/** A positive number, times `factor`. */
function secondsOf(text: string | undefined, factor: number): number | undefined {
  const number = text !== undefined && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : NaN
  return number > 0 && Number.isFinite(number) ? number * factor : undefined
}

/** An HTTP date or a time of RFC 3339. */
function timeOf(text: string, epochMs: number): number | undefined {
  const date = text.length <= 40 && /^(?:[A-Za-z]{3,9},? |\d{4}-\d\d-\d\dT)/.test(text.trim()) ? Date.parse(text) : NaN
  return Number.isNaN(date) ? undefined : left(date, epochMs)
}

const left = (timeMs: number, epochMs: number): number | undefined => (timeMs > epochMs ? timeMs - epochMs : undefined)
