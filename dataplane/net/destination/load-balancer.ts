import { parseDuration } from '#api/duration.ts'
import type { LoadBalancer } from '#gen/config/types.ts'
import type { LoadBalancing } from '../upstream/balancer/strategy.ts'

/** Compiles the `loadBalancer` section of a backend policy (traffic.md §13.4). */
export function compileLoadBalancer({ type = 'LeastRequest', consistentHash, slowStart, panicThreshold }: LoadBalancer): LoadBalancing {
  const ttlMs = parseDuration(consistentHash?.ttl ?? '')
  const { maxLoad } = consistentHash ?? {}
  return {
    type,
    panicThreshold: panicThreshold === undefined ? undefined : panicThreshold / 100,
    slowStartMs: parseDuration(slowStart?.window ?? ''),
    hash: consistentHash && {
      type: consistentHash.type,
      name: consistentHash.type === 'Header' ? (consistentHash.name ?? '').toLowerCase() : (consistentHash.name ?? ''),
      ttlSeconds: ttlMs === undefined ? undefined : Math.floor(ttlMs / 1000),
      maxLoad: maxLoad === undefined ? undefined : maxLoad / 100,
    },
  }
}
