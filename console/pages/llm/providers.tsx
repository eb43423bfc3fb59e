import type { BackendNode } from '#api/management/overview.ts'
import { formatAge, formatMs, formatPercent } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { backendTitle } from '../../ui/short-form.ts'
import { Scroll } from '../../ui/scroll.tsx'

/** The endpoints of the providers of AI backends: which receive traffic, and which are evicted for how long. */
export function Providers({ backends }: { readonly backends: readonly BackendNode[] }) {
  return (
    <Panel title="Providers">
      <Scroll label="Endpoints of providers">
        <table class="providers">
          <thead>
            <tr>
              <th>Backend</th>
              <th>Endpoint</th>
              <th>State</th>
              <th class="num">Health</th>
              <th class="num">In flight</th>
              <th class="num">Latency</th>
            </tr>
          </thead>
          <tbody>
            {backends.flatMap(({ key, endpoints }) =>
              endpoints.map(({ address, health, evictedForMs, evictedBecause, failedCheck, pending, latencyMs }) => (
                <tr key={`${key} ${address}`}>
                  <td>{backendTitle(key)}</td>
                  <td class="mono">{address}</td>
                  <td>
                    <State health={health} evictedForMs={evictedForMs} failedCheck={failedCheck} />
                    {(evictedBecause ?? failedCheck) !== null && <span class="muted"> {evictedBecause ?? failedCheck}</span>}
                  </td>
                  <td class="num">{health === null ? '–' : formatPercent(health)}</td>
                  <td class="num">{pending}</td>
                  <td class="num">{formatMs(latencyMs)}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}

function State({ health, evictedForMs, failedCheck }: Pick<BackendNode['endpoints'][number], 'health' | 'evictedForMs' | 'failedCheck'>) {
  if (evictedForMs !== null) return <Badge tone="bad">evicted for {formatAge(evictedForMs)}</Badge>
  if (failedCheck !== null) return <Badge tone="bad">fails checks</Badge>
  return health === null ? <Badge>no requests yet</Badge> : <Badge tone="good">takes traffic</Badge>
}
