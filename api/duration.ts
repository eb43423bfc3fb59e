/** Durations as GEP-2257 writes them: `1h30m`, `500ms`; no fractions, no sign, no ns or us. */

export const DURATION_PATTERN = '^([0-9]{1,5}(h|m|s|ms)){1,4}$'

const duration = new RegExp(DURATION_PATTERN)
const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** Milliseconds of a GEP-2257 duration, or undefined when the text is not one. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 32 || !duration.test(text)) return undefined
  let total = 0
  for (const [, digits, unit] of text.matchAll(/([0-9]+)(h|ms|m|s)/g)) total += Number(digits) * (unitMs[unit ?? ''] ?? 0)
  return total
}

/** The longest that a timer of Node can wait, almost 25 days: a longer one would fire at once. */
export const MAX_TIMER_MS = 2_147_483_647

/** Milliseconds of a duration that somebody waits for, at most MAX_TIMER_MS; undefined when there is none, or the text is not one. */
export function parseTimeout(text: string | undefined): number | undefined {
  const ms = text === undefined ? undefined : parseDuration(text)
  return ms === undefined ? undefined : Math.min(ms, MAX_TIMER_MS)
}

/** The shortest GEP-2257 text of a whole number of milliseconds. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s'
  const parts: string[] = []
  let rest = ms
  for (const unit of ['h', 'm', 's', 'ms']) {
    const size = unitMs[unit] ?? 1
    const count = Math.floor(rest / size)
    if (count > 0) parts.push(`${count}${unit}`)
    rest -= count * size
  }
  return parts.join('')
}
