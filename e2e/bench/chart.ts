import type { Judged } from './measure.ts'

const ROW = 34
const LEFT = 400
const SCALE = 240
const WIDTH = 1030

/** Result relative to its limit: 1 is at the limit, more is better. Undefined if there is no limit. */
export function marginOf({ ratio, bar }: Judged): number | undefined {
  if (bar.atLeast !== undefined) return ratio / bar.atLeast
  if (bar.atMost === undefined) return undefined
  if (bar.atMost === 0) return ratio === 0 ? 1 : 0
  return ratio === 0 ? 2 : bar.atMost / ratio
}

/** Draws one bar for each result that has a limit, and a line at the limit. */
export function drawChart(results: readonly Judged[], footnote: string): string {
  const rows = results.flatMap((result) => {
    const margin = marginOf(result)
    return margin === undefined ? [] : [{ result, margin }]
  })
  const height = 70 + rows.length * ROW
  const line = LEFT + SCALE
  const bars = rows.map(({ result, margin }, index) => {
    const y = 50 + index * ROW
    const width = Math.max(2, Math.min(margin, 2.2) * SCALE)
    const text = `${format(result.ours)} ${result.unit}, ${result.peerName} ${format(result.peer)}`
    return [
      `<text x="${LEFT - 10}" y="${y + 15}" text-anchor="end">${escape(result.case)}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${width.toFixed(0)}" height="22" fill="${result.passed ? '#2f7d5b' : '#b5472f'}"/>`,
      `<text x="${LEFT + 8}" y="${y + 15}" fill="#fff" stroke="#333" stroke-width="2.5" paint-order="stroke">${escape(text)}</text>`,
    ].join('\n')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="10" y="22" font-size="15" font-weight="bold">Results relative to their limits (the line); further right is better</text>
<text x="10" y="40" fill="#666" font-size="11">${escape(footnote)}</text>
${bars.join('\n')}
<line x1="${line}" x2="${line}" y1="44" y2="${height - 14}" stroke="#222" stroke-width="1.5"/>
</svg>
`
}

/** A number with a precision that fits tables and charts. */
export function format(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return Number(value.toPrecision(3)).toString()
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
