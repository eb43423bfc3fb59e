import { format } from '../chart.ts'

/** CPU of a request for each program, in microseconds. */
export interface Group {
  readonly title: string
  readonly bars: readonly { readonly name: string; readonly value: number }[]
}

const WIDTH = 760
const LEFT = 150
const RIGHT = 110
const BAR = 18
const GAP = 34

/**
 * Draws a group of bars per case. Each group has a scale of its own, because a chat completion costs many times a plain request. The background is
 * transparent, and the colours follow the reader's light or dark scheme.
 * @param ownName name of the program whose bars are highlighted
 */
export function drawPeers(groups: readonly Group[], ownName: string, footnote: string): string {
  let y = 50
  const parts: string[] = []
  for (const { title, bars } of groups) {
    const scale = (WIDTH - LEFT - RIGHT) / Math.max(...bars.map(({ value }) => value))
    y += GAP
    parts.push(`<text class="title" x="10" y="${y - 8}">${escape(title)}</text>`)
    for (const { name, value } of bars) {
      const isOwn = name === ownName
      parts.push(
        `<text x="${LEFT - 8}" y="${y + 13}" text-anchor="end"${isOwn ? ' class="own-name"' : ''}>${escape(name)}</text>`,
        `<rect class="${isOwn ? 'own' : 'peer'}" x="${LEFT}" y="${y}" width="${Math.max(2, value * scale).toFixed(1)}" height="${BAR - 4}" rx="2"/>`,
        `<text x="${(LEFT + value * scale + 6).toFixed(1)}" y="${y + 13}">${format(value)} µs</text>`,
      )
      y += BAR
    }
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y + 40}" viewBox="0 0 ${WIDTH} ${y + 40}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="CPU time per request of several gateways">
<style>
text { fill: #24292f } .title { font-weight: 600; font-size: 14px } .own-name { font-weight: 600 } .note { fill: #57606a; font-size: 11px }
.own { fill: #1f7a5c } .peer { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .note { fill: #8b949e } .own { fill: #3fb68b } .peer { fill: #6e7681 } }
</style>
<text class="title" x="10" y="24">CPU time per request, one core for the gateway; shorter is better</text>
<text class="note" x="10" y="42">${escape(footnote)}</text>
${parts.join('\n')}
</svg>
`
}

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
