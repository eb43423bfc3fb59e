import type { Route, RouteMatch } from '#gen/config/types.ts'

/** A rule for tests, of an HTTPRoute unless `kind` is set. The name breaks ties. */
export function testRoute(
  name: string,
  matches: RouteMatch[] | undefined,
  more: Partial<Route> & { ruleIndex?: number; kind?: Route['route']['kind'] } = {},
): Route {
  const { ruleIndex = 0, kind = 'HTTPRoute', ...fields } = more
  return {
    key: `default/${name}.${String(ruleIndex).padStart(2, '0')}`,
    listeners: ['default/gateway.http'],
    route: { kind, namespace: 'default', name, ruleIndex },
    ...(matches === undefined ? {} : { matches }),
    ...fields,
  }
}
