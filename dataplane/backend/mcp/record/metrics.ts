import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Registry } from '../../../observe/telemetry/metrics/registry.ts'
import type { Item } from '../target/authorize.ts'
import { hasSucceeded, itemOf } from './log.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../../../observe/telemetry/metrics/area.ts'

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
  'server/discover',
  'subscriptions/listen',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
])

type ItemLabels = Pick<Item, 'kind' | 'target' | 'name'>

/** Counts messages that clients POST (mcp.md §10). */
const mcpMetrics = defineMetrics((registry) => {
  const requests = registry.counter(`${METRIC_PREFIX}mcp_requests_total`, 'MCP messages of clients.', [
    'method',
    'resource_type',
    'server',
    'resource',
    ...ROUTE_LABELS,
  ])
  const counted = new NameSets(MAX_NAMES)
  const listed = new NameSets(MAX_LISTED)
  return {
    listed,
    isKnown: (item: ItemLabels): boolean => counted.has(item) || listed.has(item),
    count(exchange: Exchange, method: string | undefined, item: ItemLabels | undefined, isReal: boolean): void {
      const known = method === undefined ? 'response' : methods.has(method) ? method : 'other'
      const name = item === undefined || !isReal ? UNKNOWN : counted.add(item) ? item.name : 'other'
      requests.series(known, item?.kind ?? UNKNOWN, item?.target ?? UNKNOWN, name, ...routeValues(exchange)).value++
    },
  }
})

/** Names of each kind and target that have a series of their own. */
const MAX_NAMES = 256
/** Names of each kind and target that lists contained. */
const MAX_LISTED = 4096
const MAX_NAME_CHARS = 128

/** Names of items by kind and target, bounded in number and length. */
class NameSets {
  readonly #limit: number
  readonly #sets = new Map<string, Set<string>>()

  constructor(limit: number) {
    this.#limit = limit
  }

  has({ kind, target, name }: ItemLabels): boolean {
    return this.#sets.get(`${kind} ${target}`)?.has(name) === true
  }

  /** Whether the name is in the set, which it is not if the set is full. */
  add({ kind, target, name }: ItemLabels): boolean {
    const key = `${kind} ${target}`
    let names = this.#sets.get(key)
    if (names === undefined) this.#sets.set(key, (names = new Set()))
    if (names.has(name)) return true
    if (names.size >= this.#limit || name.length > MAX_NAME_CHARS) return false
    names.add(name)
    return true
  }
}

/** What a message is counted by. */
export interface CountContext {
  readonly registry: Registry
  readonly exchange: Exchange
}

/** Records the name of an item in a list of its target, as one that may label metrics. */
export function recordListed({ registry }: Pick<CountContext, 'registry'>, item: ItemLabels): void {
  mcpMetrics(registry).listed.add(item)
}

/** Whether the item of the request was in no list and in no successful call: only the response shows whether it exists. */
export function isNewItem({ registry, exchange }: CountContext): boolean {
  const item = itemOf(exchange)
  return item !== undefined && item.kind !== 'task' && !mcpMetrics(registry).isKnown(item)
}

/**
 * Counts a client's message. The label has the name of the item only if the item exists, because clients choose the names: it was in a list or
 * a call of it succeeded. Denied items have no name either, and tasks never: each has an id of its own.
 */
export function countMessage({ registry, exchange }: CountContext, { method }: { readonly method?: string }): void {
  const metrics = mcpMetrics(registry)
  const item = itemOf(exchange)
  metrics.count(exchange, method, item, item !== undefined && item.kind !== 'task' && (metrics.isKnown(item) || hasSucceeded(exchange)))
}
