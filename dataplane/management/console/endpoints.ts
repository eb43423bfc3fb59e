import { mergeEndpoint } from '#api/management/merge.ts'
import type { EndpointNode } from '#api/management/overview.ts'
import type { Destinations } from '../../net/destination/destinations.ts'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import type { Measured } from '../../net/upstream/destination.ts'

/** The endpoints of a destination; `backend` is its name in logs and metrics. */
export interface ThreadEndpoints {
  readonly backend: string
  readonly endpoints: readonly EndpointNode[]
}

/** The endpoints of all destinations in use with their state in this thread. */
export function listEndpoints(destinations: Pick<Destinations, 'list'>): ThreadEndpoints[] {
  const byBackend = new Map<string, Map<string, EndpointNode>>()
  for (const { name, endpoints, measured } of destinations.list()) {
    let known = byBackend.get(name)
    if (known === undefined) byBackend.set(name, (known = new Map()))
    for (const endpoint of endpoints) {
      const node = toNode(endpoint, measured ?? endpoint)
      known.set(node.address, mergeEndpoint(known.get(node.address), node))
    }
  }
  return [...byBackend].map(([backend, endpoints]) => ({ backend, endpoints: [...endpoints.values()] }))
}

function toNode({ label, draining, check }: EndpointState, { health, failures, evicted, latencySeconds, pending }: Measured): EndpointNode {
  return {
    address: label,
    health,
    evictedForMs: evicted === undefined ? null : Math.max(0, evicted.untilMs - performance.now()),
    evictedBecause: evicted === undefined ? null : describeEviction(failures, evicted.status),
    failedCheck: check?.problem ?? null,
    latencyMs: latencySeconds === 0 ? null : latencySeconds * 1000,
    pending,
    draining,
    zone: null,
  }
}

/** Why an endpoint was evicted. `status` of the response; 0: the call failed. */
function describeEviction(failures: number, status: number): string {
  const last = status === 0 ? 'without a response' : `with status ${status}`
  return failures <= 1 ? `an unhealthy call ${last}` : `${failures} unhealthy calls in a row, the last ${last}`
}
