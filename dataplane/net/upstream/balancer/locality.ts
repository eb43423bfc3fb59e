import type { Endpoint, Service } from '#gen/config/types.ts'

/** Location of this process; undefined members are unknown, and all endpoints are then equally near. */
export interface Place {
  readonly node: string | undefined
  readonly zone: string | undefined
}

/** An endpoint and its distance, default 0. Only the nearest available endpoints are used. */
export type PlacedEndpoint = Endpoint & { readonly distance?: number }

/**
 * The endpoints of a Service that this process may use, with their distances (traffic.md §13). `internalTrafficPolicy: Local` drops
 * those of other nodes; `trafficDistribution` prefers the own zone, or the own node and then the own zone.
 */
export function placeEndpoints(
  endpoints: readonly Endpoint[],
  { trafficDistribution, internalTrafficPolicy }: Pick<Service, 'trafficDistribution' | 'internalTrafficPolicy'>,
  own: Place,
): readonly PlacedEndpoint[] {
  const usable = internalTrafficPolicy === 'Local' && own.node !== undefined ? endpoints.filter(({ node }) => node === own.node) : endpoints
  if (trafficDistribution === undefined) return usable
  const isNodePreferred = trafficDistribution === 'PreferSameNode' && own.node !== undefined
  const distanceTo = ({ node, zone }: Endpoint): number => (isNodePreferred && node === own.node ? 0 : own.zone !== undefined && zone === own.zone ? 1 : 2)
  return usable.map((endpoint) => ({ ...endpoint, distance: distanceTo(endpoint) }))
}

/** The zone of a node, from the endpoints of Services on it; undefined if there are none. */
export function findZone(services: Iterable<Service>, node: string): string | undefined {
  for (const { ports } of services)
    for (const port of ports) for (const endpoint of port.endpoints) if (endpoint.node === node && endpoint.zone) return endpoint.zone
  return undefined
}

/** The endpoints with the smallest distance. */
export function nearestOf<T extends { readonly distance: number }>(endpoints: readonly T[]): readonly T[] {
  const least = Math.min(...new Set(endpoints.map(({ distance }) => distance)))
  return endpoints.every(({ distance }) => distance === least) ? endpoints : endpoints.filter(({ distance }) => distance === least)
}
