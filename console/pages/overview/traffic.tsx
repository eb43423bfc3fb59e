import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Series } from '#api/management/stats.ts'
import { get } from '../../api/client.ts'
import { poll } from '../../api/visible.ts'
import { Chart } from '../../ui/chart.tsx'
import { formatMs, formatRate } from '../../ui/format.ts'
import { describeSpan, padPoints } from '../../ui/history.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Loading } from '../../ui/states.tsx'

const INTERVAL_MS = 10_000

/** Requests, errors and latency of all listeners over at most 15 minutes. */
export function TrafficPanel() {
  const series = useSeries('total')
  const data = useMemo(() => series && chartData(series), [series])
  return (
    <Panel title="Traffic" aside={series && describeSpan(series.points.length)} class="traffic">
      {data === undefined ? <Loading /> : <Charts {...data} />}
    </Panel>
  )
}

function Charts(data: ReturnType<typeof chartData>) {
  return (
    <div class="charts">
      <Chart
        label="Requests per second, and those that failed"
        times={data.times}
        values={[data.rates, data.errors]}
        lines={[
          { label: 'requests', color: '--accent', isFilled: true },
          { label: '5xx', color: '--bad' },
        ]}
        format={formatRate}
      />
      <Chart
        label="Latency: 50th and 95th percentile"
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

function chartData({ points, endMs, stepSeconds }: Series) {
  const padded = padPoints(points)
  const start = endMs / 1000 - (padded.length - 1) * stepSeconds
  return {
    times: padded.map((_, index) => start + index * stepSeconds),
    rates: padded.map((point) => (point ? point.requests / stepSeconds : null)),
    errors: padded.map((point) => (point ? point.serverErrors / stepSeconds : null)),
    p50: padded.map((point) => point?.p50Ms ?? null),
    p95: padded.map((point) => point?.p95Ms ?? null),
  }
}
