import type { VNode } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { EndpointNode, Overview } from '#api/management/overview.ts'
import type { StatsRow } from '#api/management/stats.ts'
import { rowOf, stats } from '../../api/live.ts'
import { linkTo, location, navigate } from '../../ui/router.ts'
import { formatMs, formatNumber } from '../../ui/format.ts'
import { layOut, NODE_HEIGHT, NODE_WIDTH, type GraphEdge, type GraphLayout, type GraphNode } from './layout.ts'

/** The graph of all Gateways with live numbers. */
export function Graph({ overview }: { readonly overview: Overview }) {
  const [filter, setFilter] = useState('')
  const text = filter.toLowerCase()
  // The overview is read again every few seconds; the layout depends on its structure only.
  const structure = JSON.stringify([
    overview.listeners,
    overview.routes,
    overview.backends.map(({ key, endpoints }) => [key, endpoints.map(({ address }) => address)]),
  ])
  const graph = useMemo(() => layOut(overview, (route) => `${route.key} ${route.hostnames.join(' ')}`.toLowerCase().includes(text)), [structure, text])
  const problems = new Map(overview.problems.flatMap(({ object, severity }) => (object === null ? [] : [[object, severity] as const])))
  return (
    <>
      {(overview.routes.length > 8 || filter !== '') && (
        <div class="body">
          <input
            type="search"
            data-search
            aria-label="Filter routes"
            placeholder="Filter routes by name or host"
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </div>
      )}
      <Tree graph={graph} stateOf={(node) => stateOf(node, problems.get(node.id), endpointOf(overview, node))} />
      <div class="graph" tabIndex={0} role="region" aria-label="Graph of Gateways, listeners, routes, backends and endpoints">
        <svg width={graph.width} height={graph.height} viewBox={`0 0 ${graph.width} ${graph.height}`}>
          <Edges graph={graph} />
          {graph.nodes.map((node) => (
            <Node key={node.id} node={node} severity={problems.get(node.id)} endpoint={endpointOf(overview, node)} />
          ))}
        </svg>
      </div>
      {graph.hidden > 0 && <p class="muted more">{graph.hidden} more nodes are not shown: filter the routes.</p>}
    </>
  )
}

interface State {
  readonly tone: string
  readonly text: string
}

/** The graph as a list, for screens that are narrower than the graph. */
function Tree({ graph: { nodes, edges }, stateOf: read }: { readonly graph: GraphLayout; readonly stateOf: (node: GraphNode) => State }) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const branch = (node: GraphNode, depth: number): VNode[] => {
    const { tone, text } = read(node)
    const row = (
      <li key={`${depth} ${node.id}`} class={tone} ref={(item) => item?.style.setProperty('--depth', String(depth))}>
        <a href={linkTo(['overview'], { node: node.id })}>{node.title}</a> <span class="muted">{node.subtitle}</span>
        {text !== '' && <p class="state">{text}</p>}
      </li>
    )
    return [row, ...edges.filter(({ from }) => from === node.id).flatMap(({ to }) => branch(byId.get(to) as GraphNode, depth + 1))]
  }
  return <ul class="tree">{nodes.filter(({ kind }) => kind === 'gateway').flatMap((node) => branch(node, 0))}</ul>
}

function Edges({ graph: { nodes, edges } }: { readonly graph: GraphLayout }) {
  const places = new Map(nodes.map((node) => [node.id, node]))
  const most = Math.max(1, ...(stats.value?.rows.map(({ requestsPerSecond }) => requestsPerSecond) ?? []))
  return (
    <g fill="none">
      {edges.map((edge) => {
        const [from, to] = [places.get(edge.from), places.get(edge.to)]
        return from && to && <Edge key={`${edge.from}\n${edge.to}`} edge={edge} from={from} to={to} most={most} />
      })}
    </g>
  )
}

function Edge({ edge, from, to, most }: { readonly edge: GraphEdge; readonly from: GraphNode; readonly to: GraphNode; readonly most: number }) {
  const row = edge.stats === undefined ? undefined : rowOf(edge.stats)
  const rate = row?.requestsPerSecond ?? 0
  const [x1, y1, x2, y2] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2, to.x, to.y + NODE_HEIGHT / 2]
  const bend = (x2 - x1) / 2
  const tone = row !== undefined && row.serverErrors > 0 ? 'is-bad' : rate > 0 ? 'is-live' : ''
  return (
    <path
      class={`edge ${tone}`}
      d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
      stroke-width={rate > 0 ? 1.5 + 2.5 * Math.sqrt(rate / most) : 1.2}
    />
  )
}

interface NodeProps {
  readonly node: GraphNode
  readonly severity: string | undefined
  readonly endpoint: EndpointNode | undefined
}

function Node({ node, severity, endpoint }: NodeProps) {
  const isSelected = location.value.query.get('node') === node.id
  const state = stateOf(node, severity, endpoint)
  const open = (): void => (isSelected ? navigate(['overview']) : navigate(['overview'], { node: node.id }))
  return (
    <g
      class={`node is-${node.kind} ${state.tone} ${isSelected ? 'is-selected' : ''}`}
      transform={`translate(${node.x} ${node.y})`}
      role="button"
      tabIndex={0}
      aria-pressed={isSelected}
      onClick={open}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return
        event.preventDefault()
        open()
      }}
    >
      <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
      <rect class="mark" width="4" height={NODE_HEIGHT - 16} x="0" y="8" rx="2" />
      <text class="title" x="14" y="19">
        {shorten(node.title, 20)}
      </text>
      <text class="sub" x="14" y="34">
        {shorten(node.subtitle, 22)}
      </text>
      <text class="numbers" x="14" y="49">
        {state.text}
      </text>
      <title>{`${node.title}\n${node.subtitle}`}</title>
    </g>
  )
}

function stateOf({ stats: key }: GraphNode, severity: string | undefined, endpoint: EndpointNode | undefined): State {
  if (endpoint !== undefined) return endpointState(endpoint)
  const row = key === undefined ? undefined : rowOf(key)
  return { tone: toneOf(row, severity), text: key === undefined ? '' : numbersOf(row) }
}

function numbersOf(row: StatsRow | undefined): string {
  if (row === undefined || row.requests === 0) return 'no requests'
  const second = row.serverErrors === 0 ? `p95 ${formatMs(row.p95Ms)}` : `${formatNumber((100 * row.serverErrors) / row.requests)} % failed`
  return `${formatNumber(row.requestsPerSecond)}/s · ${second}`
}

function toneOf(row: StatsRow | undefined, severity: string | undefined): string {
  if (severity === 'error' || (row !== undefined && row.serverErrors > 0)) return 'is-bad'
  return severity === 'warning' ? 'is-warn' : row !== undefined && row.requests > 0 ? 'is-good' : ''
}

function endpointState({ evictedForMs, draining, health, latencyMs, pending }: EndpointNode): { tone: string; text: string } {
  if (evictedForMs !== null) return { tone: 'is-bad', text: `evicted for ${formatMs(evictedForMs)}` }
  if (draining) return { tone: 'is-warn', text: 'draining' }
  if (health === null) return { tone: '', text: 'not used yet' }
  return { tone: health < 0.9 ? 'is-warn' : 'is-good', text: `${formatNumber(health * 100)} % · ${formatMs(latencyMs)} · ${pending} open` }
}

function endpointOf({ backends }: Overview, { id, kind }: GraphNode): EndpointNode | undefined {
  if (kind !== 'endpoint') return undefined
  return backends
    .flatMap(({ key, endpoints }) => endpoints.map((endpoint) => ({ id: `endpoint ${key} ${endpoint.address}`, endpoint })))
    .find((item) => item.id === id)?.endpoint
}

const shorten = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length - 1)}…`)
