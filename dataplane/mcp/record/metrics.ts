import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { Registry } from '../../telemetry/metrics/registry.ts'
import { itemOf } from './log.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../../telemetry/metrics/area.ts'

/** Methods of MCP. All others are counted as `other`. */
const methods = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
])

interface CountedMessage {
  readonly method: string | undefined
  readonly kind?: string | undefined
  readonly target?: string | undefined
  readonly name?: string | undefined
}

/** Counts messages that clients POST (mcp.md §10). */
const mcpMetrics = defineMetrics((registry) => {
  const requests = registry.counter(`${METRIC_PREFIX}mcp_requests_total`, 'MCP messages of clients.', [
    'method',
    'resource_type',
    'server',
    'resource',
    ...ROUTE_LABELS,
  ])
  const names = new Map<string, Set<string>>()
  return {
    count(exchange: Exchange, { method, kind = UNKNOWN, target = UNKNOWN, name }: CountedMessage): void {
      const known = method === undefined ? 'response' : methods.has(method) ? method : 'other'
      requests.series(known, kind, target, boundName(names, `${kind} ${target}`, name), ...routeValues(exchange)).value++
    },
  }
})

const MAX_NAMES = 256

/** Bounds the label values: names and URIs are chosen by clients. Up to MAX_NAMES of each kind and target get a series of their own. */
function boundName(known: Map<string, Set<string>>, group: string, name = UNKNOWN): string {
  if (name === UNKNOWN) return name
  let names = known.get(group)
  if (names === undefined) known.set(group, (names = new Set()))
  if (names.has(name)) return name
  if (names.size >= MAX_NAMES || name.length > 128) return 'other'
  names.add(name)
  return name
}

/** Counts a client's message. Denied items are counted without their name. */
export function countMessage(
  { registry, exchange }: { readonly registry: Registry; readonly exchange: Exchange },
  { method }: { readonly method?: string },
): void {
  const item = itemOf(exchange)
  mcpMetrics(registry).count(exchange, { method, ...item })
}
