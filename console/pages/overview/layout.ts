import { graphlib, layout } from '@dagrejs/dagre'
import type { Overview } from '#api/management/overview.ts'
import { backendTitle, isAdded, routeTitle } from '../../ui/short-form.ts'

type NodeKind = 'gateway' | 'listener' | 'route' | 'backend' | 'endpoint'

/** A node of the graph, with the place of its upper left corner. */
export interface GraphNode {
  readonly id: string
  readonly kind: NodeKind
  readonly title: string
  readonly subtitle: string
  /** Key of its numbers in the stats. */
  readonly stats: string | undefined
  x: number
  y: number
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
  /** The node whose numbers flow along the edge. */
  readonly stats: string | undefined
}

export interface GraphLayout {
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  readonly width: number
  readonly height: number
  /** Number of nodes that were left out. */
  readonly hidden: number
}

export const NODE_WIDTH = 172
export const NODE_HEIGHT = 58
/** More nodes cannot be read, and take long to place. */
const MAX_NODES = 150
const MAX_ENDPOINTS = 6

/** The graph of an overview, from left to right: Gateways, listeners, routes, backends, endpoints. `wanted` decides whether a route is shown. */
export function layOut(overview: Overview, wanted: (route: Overview['routes'][number]) => boolean): GraphLayout {
  const { nodes, edges, hidden } = collect(overview, wanted)
  const graph = new graphlib.Graph().setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 26, marginx: 4, marginy: 4 }).setDefaultEdgeLabel(() => ({}))
  for (const { id } of nodes) graph.setNode(id, { width: NODE_WIDTH, height: NODE_HEIGHT })
  for (const { from, to } of edges) graph.setEdge(from, to)
  layout(graph)
  for (const node of nodes) {
    const { x, y } = graph.node(node.id) as { x: number; y: number }
    node.x = x - NODE_WIDTH / 2
    node.y = y - NODE_HEIGHT / 2
  }
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number }
  return { nodes, edges, width, height, hidden }
}

function collect({ gateways, listeners, routes, backends }: Overview, wanted: (route: Overview['routes'][number]) => boolean) {
  const nodes = new Map<string, GraphNode>()
  const edges: GraphEdge[] = []
  let hidden = 0
  const add = (kind: NodeKind, key: string, title: string, subtitle: string, stats?: string): boolean => {
    const id = `${kind} ${key}`
    if (nodes.has(id)) return true
    if (nodes.size >= MAX_NODES) {
      hidden++
      return false
    }
    nodes.set(id, { id, kind, title, subtitle, stats, x: 0, y: 0 })
    return true
  }
  for (const { key } of gateways) add('gateway', key, key, 'Gateway')
  for (const { key, gateway, name, port, protocol, hostname } of listeners) {
    if (add('listener', key, name, `${protocol} :${port}${hostname === null ? '' : ` ${hostname}`}`, `listener ${key}`))
      edges.push({ from: `gateway ${gateway}`, to: `listener ${key}`, stats: `listener ${key}` })
  }
  const byKey = new Map(backends.map((backend) => [backend.key, backend]))
  for (const route of routes.filter((one) => !isAdded(one) && wanted(one))) {
    const { title, kind } = routeTitle(route)
    const stats = `route ${route.namespace}/${route.name}`
    if (!add('route', route.key, title, `${kind ?? route.kind}${route.hostnames.length === 0 ? '' : ` ${route.hostnames.join(', ')}`}`, stats)) continue
    for (const listener of route.listeners) if (nodes.has(`listener ${listener}`)) edges.push({ from: `listener ${listener}`, to: `route ${route.key}`, stats })
    for (const key of new Set(route.backends)) {
      const backend = byKey.get(key)
      if (!add('backend', key, backendTitle(key), backend?.kind ?? 'unknown', `backend ${key}`)) continue
      edges.push({ from: `route ${route.key}`, to: `backend ${key}`, stats: `backend ${key}` })
      for (const { address } of backend?.endpoints.slice(0, MAX_ENDPOINTS) ?? []) {
        if (add('endpoint', `${key} ${address}`, address, 'endpoint'))
          edges.push({ from: `backend ${key}`, to: `endpoint ${key} ${address}`, stats: undefined })
      }
    }
  }
  return { nodes: [...nodes.values()], edges: unique(edges), hidden }
}

const unique = (edges: readonly GraphEdge[]): GraphEdge[] => [...new Map(edges.map((edge) => [`${edge.from}\n${edge.to}`, edge])).values()]
