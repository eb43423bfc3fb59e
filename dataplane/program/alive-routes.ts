import type { ConfigSnapshot } from '../config/store.ts'

/** Whether a route, as a label of metrics, is in the config. */
export function aliveRoutes({ routes, tcpRoutes }: ConfigSnapshot): (route: string) => boolean {
  const alive = new Set([...routes.values(), ...tcpRoutes.values()].map(({ route }) => `${route.namespace}/${route.name}`))
  return (route) => alive.has(route)
}
