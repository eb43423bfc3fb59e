import type { Route, RouteMatch } from '#gen/config/types.ts'

/** A rule of an HTTPRoute for tests. The name breaks ties. */
export function testRoute(name: string, matches: RouteMatch[] | undefined, more: Partial<Route> & { ruleIndex?: number } = {}): Route {
  const { ruleIndex = 0, ...fields } = more
  return {
    key: `default/${name}.${String(ruleIndex).padStart(2, '0')}`,
    listeners: ['default/gateway.http'],
    route: { kind: 'HTTPRoute', namespace: 'default', name, ruleIndex },
    ...(matches === undefined ? {} : { matches }),
    ...fields,
  }
}
