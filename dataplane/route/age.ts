import type { Route, TcpRoute } from '#gen/config/types.ts'

/** Compares by age, oldest first, then by `namespace/name`, then by rule index. A route of unknown age counts as the youngest. */
export function compareRouteAge(a: Route | TcpRoute, b: Route | TcpRoute): number {
  return compareText(a.creationTimestamp ?? '~', b.creationTimestamp ?? '~') || compareText(nameOf(a), nameOf(b)) || a.route.ruleIndex - b.route.ruleIndex
}

const nameOf = ({ route }: Route | TcpRoute): string => `${route.namespace}/${route.name}`

/** Compares by code unit, which orders RFC 3339 times in UTC and object names. Locales must not change routing. */
function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
