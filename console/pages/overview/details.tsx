import type { EndpointNode, ModelNode, Overview } from '#api/management/overview.ts'
import { rowOf } from '../../api/live.ts'
import { linkTo, location } from '../../ui/router.ts'
import { formatAge, formatMs, formatNumber, formatRate } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'

/** Details of the selected node of the graph, `?node=<kind> <key>`. */
export function Details({ overview }: { readonly overview: Overview }) {
  const selected = location.value.query.get('node')
  if (selected === null) return null
  const [kind, key] = split(selected)
  const route = overview.routes.find((item) => kind === 'route' && item.key === key)
  const listener = overview.listeners.find((item) => kind === 'listener' && item.key === key)
  const backend = overview.backends.find((item) => (kind === 'backend' && item.key === key) || (kind === 'endpoint' && key.startsWith(`${item.key} `)))
  return (
    <Panel title={`${kind} ${key}`} aside={<a href={linkTo(['overview'])}>close</a>}>
      <div class="body stack">
        <Numbers stats={kind === 'route' && route ? `route ${route.namespace}/${route.name}` : `${kind} ${key}`} />
        {listener && <Certificates listener={listener} />}
        {route && <a href={linkTo(['routes', route.kind, route.namespace, route.name])}>Open the rules and policies of this route</a>}
        {backend && backend.models.length > 0 && <Models models={backend.models} />}
        {backend && <Endpoints endpoints={backend.endpoints} />}
      </div>
    </Panel>
  )
}

function split(text: string): [string, string] {
  const at = text.indexOf(' ')
  return [text.slice(0, at), text.slice(at + 1)]
}

function Numbers({ stats }: { readonly stats: string }) {
  const row = rowOf(stats)
  if (row === undefined) return <p class="muted">No requests in the last seconds.</p>
  return (
    <dl class="pairs">
      <dt>Requests</dt>
      <dd>{formatRate(row.requestsPerSecond)}</dd>
      <dt>4xx, 5xx</dt>
      <dd>
        {formatNumber(row.clientErrors)}, {formatNumber(row.serverErrors)} of {formatNumber(row.requests)}
      </dd>
      <dt>p50, p95</dt>
      <dd>
        {formatMs(row.p50Ms)}, {formatMs(row.p95Ms)}
      </dd>
    </dl>
  )
}

function Certificates({ listener: { certificates } }: { readonly listener: Overview['listeners'][number] }) {
  if (certificates.length === 0) return null
  return (
    <ul class="stack">
      {certificates.map(({ secret, names, notAfterMs }) => (
        <li key={secret}>
          Certificate <code>{secret}</code> for {names.join(', ')},{' '}
          {notAfterMs < Date.now() ? <Badge tone="bad">expired</Badge> : `expires in ${formatAge(notAfterMs - Date.now())}`}
        </li>
      ))}
    </ul>
  )
}

type Targets = ModelNode['rules'][number]['to']

/** A row for each rule and fallback of a model, in the order in which they are used. */
function Models({ models }: { readonly models: readonly ModelNode[] }) {
  return (
    <Scroll label="Models">
      <table>
        <thead>
          <tr>
            <th>Model</th>
            <th>When</th>
            <th>Targets</th>
          </tr>
        </thead>
        <tbody>
          {models.flatMap(({ name, visibility, by, sticky, rules, fallback }) => [
            ...rules.map(({ when, to, rollout }, index) => (
              <tr key={`${name} ${index}`}>
                <td class="mono">
                  {index === 0 && name} {index === 0 && visibility === 'Internal' && <Badge tone="plain">internal</Badge>}
                </td>
                <td>{when === null ? <span class="muted">{rules.length > 1 ? 'otherwise' : 'always'}</span> : <code>{when}</code>}</td>
                <td>
                  {describeTargets(to, sticky === null ? by : `sticky by ${sticky}`)}
                  {rollout !== null && <div class="muted">rollout {rollout}</div>}
                </td>
              </tr>
            )),
            ...fallback.map(({ on, to }, index) => (
              <tr key={`${name} fallback ${index}`}>
                <td />
                <td class="muted">after {on.join(', ')}</td>
                <td>{describeTargets(to, by)}</td>
              </tr>
            )),
          ])}
        </tbody>
      </table>
    </Scroll>
  )
}

function describeTargets(targets: Targets, choice: string): string {
  if (targets.length === 1) return targets[0]?.target ?? ''
  return `${targets.map(({ target, weight }) => `${target} (${weight})`).join(', ')}; ${choice}`
}

function Endpoints({ endpoints }: { readonly endpoints: readonly EndpointNode[] }) {
  if (endpoints.length === 0) return <p class="muted">The backend has no endpoints.</p>
  return (
    <Scroll label="Endpoints">
      <table>
        <thead>
          <tr>
            <th>Endpoint</th>
            <th>State</th>
            <th class="num">Health</th>
            <th class="num">Latency</th>
            <th class="num">Open requests</th>
            <th>Zone</th>
          </tr>
        </thead>
        <tbody>
          {endpoints.map(({ address, health, evictedForMs, evictedBecause, failedCheck, latencyMs, pending, draining, zone }) => (
            <tr key={address}>
              <td class="mono">{address}</td>
              <td>
                <Badge tone={evictedForMs !== null || failedCheck !== null ? 'bad' : draining ? 'warn' : 'good'}>
                  {evictedForMs !== null ? `evicted for ${formatMs(evictedForMs)}` : failedCheck !== null ? 'fails checks' : draining ? 'draining' : 'in use'}
                </Badge>
                {(evictedBecause ?? failedCheck) !== null && <span class="muted"> {evictedBecause ?? failedCheck}</span>}
              </td>
              <td class="num">{health === null ? '–' : formatNumber(health)}</td>
              <td class="num">{formatMs(latencyMs)}</td>
              <td class="num">{pending}</td>
              <td>{zone ?? '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}
