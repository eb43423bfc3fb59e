import { mergeEndpoint } from '#api/management/merge.ts'
import type { EndpointNode } from '#api/management/overview.ts'
import type { Destinations } from '../destination/destinations.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import type { ThreadEndpoints } from './thread.ts'

/** The endpoints of all destinations in use with their state in this thread. */
export function listEndpoints(destinations: Destinations): ThreadEndpoints[] {
  const byBackend = new Map<string, Map<string, EndpointNode>>()
  for (const { name, endpoints } of destinations.list()) {
    let known = byBackend.get(name)
    if (known === undefined) byBackend.set(name, (known = new Map()))
    for (const endpoint of endpoints) {
      const node = toNode(endpoint)
      known.set(node.address, mergeEndpoint(known.get(node.address), node))
    }
  }
  return [...byBackend].map(([backend, endpoints]) => ({ backend, endpoints: [...endpoints.values()] }))
}

function toNode({ label, health, evicted, latencySeconds, pending, draining }: EndpointState): EndpointNode {
  return {
    address: label,
    health,
    evictedForMs: evicted === undefined ? null : Math.max(0, evicted.untilMs - performance.now()),
    latencyMs: latencySeconds === 0 ? null : latencySeconds * 1000,
    pending,
    draining,
    zone: null,
  }
}
