import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { Registry } from './registry.ts'

/**
 * Defines the metrics of one module, such as LLM or MCP. They are created on first use, once per registry, so that a process that
 * never proxies to a model exposes none.
 *
 * @example
 * export const llmMetrics = defineMetrics((registry) => ({ requests: registry.counter('proxy_llm_requests_total', 'Requests.') }))
 */
export function defineMetrics<T>(create: (registry: Registry) => T): (registry: Registry) => T {
  const made = new WeakMap<Registry, T>()
  return (registry) => {
    let metrics = made.get(registry)
    if (metrics === undefined) made.set(registry, (metrics = create(registry)))
    return metrics
  }
}

/** Value of an unknown label. */
export const UNKNOWN = 'unknown'

/** The labels R of traffic.md §11: position of a request in the config. */
export const ROUTE_LABELS = ['bind', 'gateway', 'listener', 'route', 'route_rule'] as const

/** Values of `ROUTE_LABELS`, in their order. */
export function routeValues({ connection, labels }: Exchange): string[] {
  return [connection.bind, labels?.gateway || UNKNOWN, labels?.listener || UNKNOWN, labels?.route || UNKNOWN, labels?.rule || UNKNOWN]
}

/** Bucket bounds for durations of calls, in seconds (traffic.md §11). */
export const CALL_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80] as const
