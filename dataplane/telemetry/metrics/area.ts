import type { Exchange } from '../../exchange/exchange.ts'
import type { Registry } from './registry.ts'

/**
 * The metrics of one area, such as LLM or MCP: a file `metrics.ts` of its room calls this once, at its top level, and exports what it
 * gives. They are made when the first request needs them, once per registry, so a process that never proxies to a model shows none.
 */
export function defineMetrics<T>(create: (registry: Registry) => T): (registry: Registry) => T {
  const made = new WeakMap<Registry, T>()
  return (registry) => {
    let metrics = made.get(registry)
    if (metrics === undefined) made.set(registry, (metrics = create(registry)))
    return metrics
  }
}

/** Value of a label that is not known. */
export const UNKNOWN = 'unknown'

/** The labels R of traffic.md §11: where in the config a request was. */
export const ROUTE_LABELS = ['bind', 'gateway', 'listener', 'route', 'route_rule'] as const

/** Values of `ROUTE_LABELS`, in their order. */
export function routeValues({ connection, labels }: Exchange): string[] {
  return [connection.bind, labels?.gateway || UNKNOWN, labels?.listener || UNKNOWN, labels?.route || UNKNOWN, labels?.rule || UNKNOWN]
}

/** Seconds of whole calls (traffic.md §11). */
export const CALL_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80] as const
