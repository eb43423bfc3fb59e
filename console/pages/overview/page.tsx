import { overview, rowOf } from '../../api/live.ts'
import { formatMs, formatPercent, formatRate } from '../../ui/format.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { curlOf } from '../../ui/sample-request.ts'
import { Empty, Loading } from '../../ui/states.tsx'
import { Details } from './details.tsx'
import { Graph } from './graph.tsx'
import { Problems } from './problems.tsx'
import { TrafficPanel } from './traffic.tsx'

export function OverviewPage() {
  const data = overview.value
  if (data === undefined) return <Loading />
  const command = curlOf(data)
  const hasTraffic = (rowOf('total')?.requests ?? 0) > 0
  return (
    <>
      <PageHead title="Overview" />
      <Problems problems={data.problems} />
      <Totals />
      <Panel title="Gateways" aside="requests per second, the last 10 to 20 seconds" class="graph-panel">
        {data.gateways.length === 0 ? (
          <Empty title="The gateway has no listener">Apply a Gateway, or add binds to the config file.</Empty>
        ) : (
          <Graph overview={data} />
        )}
        {!hasTraffic && command !== undefined && (
          <Empty title="No request in the last seconds">
            <span>Send one:</span>
            <code>{command}</code>
          </Empty>
        )}
      </Panel>
      <Details overview={data} />
      <TrafficPanel />
    </>
  )
}

function Totals() {
  const total = rowOf('total')
  const requests = total?.requests ?? 0
  const share = (count: number): string => (requests === 0 ? '–' : formatPercent(count / requests))
  return (
    <dl class="tiles">
      <div>
        <dt>Requests</dt>
        <dd>{formatRate(total?.requestsPerSecond ?? 0)}</dd>
      </div>
      <div>
        <dt>4xx</dt>
        <dd class={total !== undefined && total.clientErrors > 0 ? 'is-warn' : ''}>{share(total?.clientErrors ?? 0)}</dd>
      </div>
      <div>
        <dt>5xx and failures</dt>
        <dd class={total !== undefined && total.serverErrors > 0 ? 'is-bad' : ''}>{share(total?.serverErrors ?? 0)}</dd>
      </div>
      <div>
        <dt>p50</dt>
        <dd>{formatMs(total?.p50Ms)}</dd>
      </div>
      <div>
        <dt>p95</dt>
        <dd>{formatMs(total?.p95Ms)}</dd>
      </div>
    </dl>
  )
}
