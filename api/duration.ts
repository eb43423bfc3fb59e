// Durations in the format of GEP-2257: `1h30m`, `500ms`; without fractions, signs, ns and us.

/** Pattern of a GEP-2257 duration, for schemas. */
export const DURATION_PATTERN = '^([0-9]{1,5}(h|m|s|ms)){1,4}$'

const duration = new RegExp(DURATION_PATTERN)
const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** Milliseconds of a GEP-2257 duration; undefined if the text is invalid. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 32 || !duration.test(text)) return undefined
  let total = 0
  for (const [, digits, unit] of text.matchAll(/([0-9]+)(h|ms|m|s)/g)) total += Number(digits) * (unitMs[unit ?? ''] ?? 0)
  return total
}

/** Maximum delay of a Node.js timer, almost 25 days; a longer one fires immediately. */
export const MAX_TIMER_MS = 2_147_483_647

/** Milliseconds of a timeout, at most MAX_TIMER_MS; undefined if there is none, or the text is invalid. */
export function parseTimeout(text: string | undefined): number | undefined {
  const ms = text === undefined ? undefined : parseDuration(text)
  return ms === undefined ? undefined : Math.min(ms, MAX_TIMER_MS)
}

/** Formats whole milliseconds as the shortest GEP-2257 duration. */
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
