import type { EndpointNode } from './overview.ts'

/** The duration below which a part of the requests stayed, milliseconds; null if there were none. Linear within a bucket. */
export function quantile(bounds: readonly number[], counts: readonly number[], part: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rank = part * total
  for (const [index, count] of counts.entries()) {
    if (count === 0 || rank > count) {
      rank -= count
      continue
    }
    const low = index === 0 ? 0 : (bounds[index - 1] ?? 0)
    const high = bounds[index] ?? low
    return (low + ((high - low) * rank) / count) * 1000
  }
  return (bounds.at(-1) ?? 0) * 1000
}

/** One endpoint as two destinations, threads or pods see it: the worse health, the sum of the requests in flight. */
export function mergeEndpoint(one: EndpointNode | undefined, other: EndpointNode): EndpointNode {
  if (one === undefined) return other
  const least = (a: number | null, b: number | null): number | null => (a === null || b === null ? (a ?? b) : Math.min(a, b))
  const greatest = (a: number | null, b: number | null): number | null => (a === null || b === null ? (a ?? b) : Math.max(a, b))
  return {
    ...one,
    health: least(one.health, other.health),
    evictedForMs: greatest(one.evictedForMs, other.evictedForMs),
    latencyMs: greatest(one.latencyMs, other.latencyMs),
    pending: one.pending + other.pending,
    draining: one.draining || other.draining,
    zone: one.zone ?? other.zone,
  }
}
