/** Three significant digits, with a thin space between thousands. */
export function formatNumber(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en').replaceAll(',', '\u2009')
  return value >= 100 ? value.toFixed(0) : value >= 10 ? trim(value.toFixed(1)) : trim(value.toFixed(2))
}

const trim = (text: string): string => text.replace(/\.?0+$/, '')

export function formatRate(perSecond: number): string {
  return `${formatNumber(perSecond)}/s`
}

/** A duration in milliseconds: `0.42 ms`, `12.3 ms`, `1.25 s`. */
export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  return ms >= 1000 ? `${formatNumber(ms / 1000)} s` : `${formatNumber(ms)} ms`
}

/** A long duration by its greatest unit: `12 s`, `5 min`, `3 h`, `2 d`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, ms / 1000)
  if (seconds < 60) return `${Math.floor(seconds)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 * 2 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** Time of day with milliseconds, in the zone of the browser. */
export function formatTime(ms: number): string {
  const date = new Date(ms)
  return `${date.toLocaleTimeString('en-GB')}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

export const formatPercent = (part: number): string => `${formatNumber(part * 100)} %`

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 ** 2 ? `${formatNumber(bytes / 1024)} KiB` : `${formatNumber(bytes / 1024 ** 2)} MiB`
}
