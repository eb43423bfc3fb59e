import type { Series } from '#api/management/stats.ts'
import { useResource } from '../api/resource.ts'
import { Chart } from './chart.tsx'
import { formatAge, formatMs, formatNumber } from './format.ts'
import { Panel } from './panel.tsx'

const INTERVAL_MS = 10_000
/** Two minutes: a process that started later has no more, and one point would be at the edge of a chart of 15 minutes. */
const MIN_POINTS = 12
/** Points of 15 minutes. */
const MAX_POINTS = 90
/** Height of the bars, in units of the drawing. */
const HEIGHT = 64

type Point = Series['points'][number]

const parts = [
  ['serverErrors', 'is-bad', '5xx'],
  ['clientErrors', 'is-warn', '4xx'],
  ['others', 'is-good', 'other'],
] as const

/** Requests by outcome, p50 and p95 of a node over the last 15 minutes, side by side. */
export function History({ of }: { readonly of: string }) {
  const { value } = useResource<Series>(`/api/v1/series?key=${encodeURIComponent(of)}`, INTERVAL_MS)
  const points = value?.points ?? []
  const padded = padPoints(points)
  const step = value?.stepSeconds ?? 10
  const end = (value?.endMs ?? 0) / 1000
  return (
    <div class="split history">
      <Panel title="Requests" aside={<Legend />}>
        <Strip points={points} stepSeconds={step} endSeconds={end} />
      </Panel>
      <Panel title="Duration" aside={describeSpan(points.length)}>
        {points.some(({ requests }) => requests > 0) ? (
          <Chart
            label="p50 and p95 of the duration"
            times={padded.map((_, index) => end - (padded.length - 1 - index) * step)}
            lines={[
              { label: 'p50', color: '--accent' },
              { label: 'p95', color: '--warn' },
            ]}
            values={[padded.map((point) => point?.p50Ms ?? null), padded.map((point) => point?.p95Ms ?? null)]}
            format={formatMs}
            height={132}
          />
        ) : (
          <p class="quiet-box">No request in the last 15 minutes</p>
        )}
      </Panel>
    </div>
  )
}

/** Points of at least two minutes, of which those before the start of the process have no value. */
export const padPoints = (points: readonly Point[]): (Point | undefined)[] => [
  ...Array.from<undefined>({ length: Math.max(0, MIN_POINTS - points.length) }),
  ...points,
]

/** The time that a history covers. */
export const describeSpan = (count: number): string => (count >= MAX_POINTS ? 'last 15 minutes' : 'since the start')

const Legend = () => (
  <ul class="legend">
    {parts.toReversed().map(([name, tone, label]) => (
      <li key={name} class={tone}>
        {label}
      </li>
    ))}
  </ul>
)

interface StripProps {
  readonly points: readonly Point[]
  readonly stepSeconds: number
  readonly endSeconds: number
}

/** One bar for each step, with server errors at the bottom. The steps before the start of the process are empty. */
function Strip({ points, stepSeconds, endSeconds }: StripProps) {
  const columns = Math.max(MIN_POINTS, points.length)
  const most = Math.max(1, ...points.map(({ requests }) => requests))
  const total = points.reduce((sum, { requests }) => sum + requests, 0)
  const failed = points.reduce((sum, { serverErrors }) => sum + serverErrors, 0)
  const offset = columns - points.length
  const timeAt = (index: number): string => new Date((endSeconds - (points.length - index) * stepSeconds) * 1000).toLocaleTimeString('en-GB')
  return (
    <div class="strip">
      <svg
        viewBox={`0 0 ${columns * 4} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total} requests ${describeSpan(points.length)}, ${failed} of them failed`}
      >
        {points.map((point, index) => (
          <g key={index}>
            <title>{`${timeAt(index)}: ${formatNumber(point.requests / stepSeconds)}/s, ${point.clientErrors} × 4xx, ${point.serverErrors} × 5xx`}</title>
            <rect class="hit" x={(offset + index) * 4} y={0} width={4} height={HEIGHT} />
            {barsOf(point, most).map(({ tone, y, height }) => (
              <rect key={tone} class={tone} x={(offset + index) * 4 + 0.5} y={y} width={3} height={height} />
            ))}
          </g>
        ))}
      </svg>
      <p class="scale muted">
        <span>{formatAge(columns * stepSeconds * 1000)} ago</span>
        <span>
          at most {formatNumber(most / stepSeconds)}/s · {formatNumber(total)} in all
        </span>
        <span>now</span>
      </p>
    </div>
  )
}

function barsOf(point: Point, most: number): { tone: string; y: number; height: number }[] {
  const counts = {
    serverErrors: point.serverErrors,
    clientErrors: point.clientErrors,
    others: Math.max(0, point.requests - point.serverErrors - point.clientErrors),
  }
  let top = HEIGHT
  return parts.flatMap(([name, tone]) => {
    if (counts[name] === 0) return []
    const height = Math.max(1, (counts[name] / most) * (HEIGHT - 4))
    top -= height
    return [{ tone, y: top, height }]
  })
}
