import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Series } from '#api/management/stats.ts'
import { get } from '../../api/client.ts'
import { poll } from '../../api/visible.ts'
import { Chart } from '../../ui/chart.tsx'
import { formatMs, formatRate } from '../../ui/format.ts'

const INTERVAL_MS = 10_000

/** Requests, errors and latency of all listeners over the last 15 minutes. */
export function TrafficChart() {
  const series = useSeries('total')
  const data = useMemo(() => series && chartData(series), [series])
  if (data === undefined) return <p class="loading">Loading…</p>
  return (
    <div class="charts">
      <Chart
        label="Requests per second over the last 15 minutes, and those that failed"
        times={data.times}
        values={[data.rates, data.errors]}
        lines={[
          { label: 'requests', color: '--accent', isFilled: true },
          { label: '5xx', color: '--bad' },
        ]}
        format={formatRate}
      />
      <Chart
        label="Latency over the last 15 minutes: 50th and 95th percentile"
        times={data.times}
        values={[data.p50, data.p95]}
        lines={[
          { label: 'p50', color: '--good' },
          { label: 'p95', color: '--warn' },
        ]}
        format={formatMs}
      />
    </div>
  )
}

function useSeries(key: string): Series | undefined {
  const [series, setSeries] = useState<Series>()
  useEffect(() => {
    const read = (): void => void get<Series>(`/api/v1/series?key=${encodeURIComponent(key)}`).then(setSeries, () => undefined)
    return poll(read, INTERVAL_MS)
  }, [key])
  return series
}

/** Points of 15 minutes. */
const POINTS = 90

/** The time before the start of the process is shown too, so that the axis always covers 15 minutes. */
function chartData({ points, endMs, stepSeconds }: Series) {
  const padded = [...Array.from<undefined>({ length: Math.max(0, POINTS - points.length) }), ...points]
  const start = endMs / 1000 - (padded.length - 1) * stepSeconds
  return {
    times: padded.map((_, index) => start + index * stepSeconds),
    rates: padded.map((point) => (point ? point.requests / stepSeconds : null)),
    errors: padded.map((point) => (point ? point.serverErrors / stepSeconds : null)),
    p50: padded.map((point) => point?.p50Ms ?? null),
    p95: padded.map((point) => point?.p95Ms ?? null),
  }
}
