import type { Route, TcpRoute } from '#gen/config/types.ts'

/** Oldest first, then `namespace/name`, then the rule's place; a route of unknown age is the youngest. */
export function compareRouteAge(a: Route | TcpRoute, b: Route | TcpRoute): number {
  return compareText(a.creationTimestamp ?? '~', b.creationTimestamp ?? '~') || compareText(nameOf(a), nameOf(b)) || a.route.ruleIndex - b.route.ruleIndex
}

const nameOf = ({ route }: Route | TcpRoute): string => `${route.namespace}/${route.name}`

/** By code unit: RFC 3339 in UTC and object names sort so, and locales must not change routing. */
function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
