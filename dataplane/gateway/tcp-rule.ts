import type { BackendFull, TcpRoute } from '#gen/config/types.ts'
import type { Destinations } from '../net/destination/destinations.ts'
import type { RouteLabels } from '../request/exchange/exchange.ts'
import { createWeightedPicker } from '../route/weights.ts'
import type { Destination } from '../net/upstream/destination.ts'

/** A compiled L4 route. */
export interface TcpRule {
  readonly labels: RouteLabels
  /** Picks a destination by weight; undefined if there is none. */
  readonly pick: () => Destination | undefined
}

export function compileTcpRule(route: TcpRoute, labels: Partial<RouteLabels>, destinations: Destinations, random: () => number, outer?: BackendFull): TcpRule {
  const backends = (route.backends ?? []).map(({ ref, weight = 1 }) => ({ destination: destinations.get(ref, outer), weight }))
  const pickIndex = createWeightedPicker(
    backends.map(({ weight }) => weight),
    random,
  )
  return {
    labels: { gateway: '', listener: '', ...labels, route: `${route.route.namespace}/${route.route.name}`, rule: route.route.rule ?? '' },
    pick: () => (pickIndex === undefined ? undefined : backends[pickIndex()]?.destination),
  }
}
