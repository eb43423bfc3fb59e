import { describe, expect, test } from '@jest/globals'
import type { Listener, Route, RouteMatch } from '#gen/config/types.ts'
import { explainPrecedence } from './precedence.ts'

const listener = { key: 'ns/gw.http', name: 'http', bind: 'b', gateway: { namespace: 'ns', name: 'gw' }, protocol: 'HTTP' } as Listener

function route(name: string, match: RouteMatch, more: Partial<Route> = {}): Route {
  return { key: `ns/${name}.0`, listeners: [listener.key], route: { kind: 'HTTPRoute', namespace: 'ns', name, ruleIndex: 0 }, matches: [match], ...more }
}
const prefix = (value: string): RouteMatch => ({ path: { type: 'PathPrefix', value } })
const exact = (value: string): RouteMatch => ({ path: { type: 'Exact', value } })

/** The matches that win over a prefix of /shop. */
async function rivals(other: Route, own: Route = route('own', prefix('/shop'), { creationTimestamp: '2026-01-02T00:00:00Z' })) {
  const [found] = await explainPrecedence(listener, [other, own], own)
  return found?.rivals.map(({ route: name, reason }) => [name, reason])
}

describe('a match wins over another one', () => {
  test.each<[string, Route, string]>([
    ['by the type of its path', route('a', exact('/shop/cart')), 'an exact path wins over a path prefix'],
    ['by the length of its path', route('a', prefix('/shop/cart')), 'its path is longer'],
    ['by its method', route('a', { ...prefix('/shop'), method: 'POST' }), 'it matches a method'],
    ['by its headers', route('a', { ...prefix('/shop'), headers: [{ name: 'x', type: 'Exact', value: '1' }] }), 'it matches more headers'],
    [
      'by its query parameters',
      route('a', { ...prefix('/shop'), queryParams: [{ name: 'x', type: 'Exact', value: '1' }] }),
      'it matches more query parameters',
    ],
    ['by the age of its route', route('a', prefix('/shop'), { creationTimestamp: '2026-01-01T00:00:00Z' }), 'its route is older'],
    ['by the name of its route', route('a', prefix('/shop'), { creationTimestamp: '2026-01-02T00:00:00Z' }), 'the name of its route comes first'],
    ['by its hostname', route('a', prefix('/'), { hostnames: ['shop.example'] }), 'hostname shop.example is more specific'],
  ])('%s', async (_, other, reason) => expect(await rivals(other)).toEqual([['HTTPRoute ns/a', reason]]))

  test.each<[string, Route]>([
    ['with a path outside of its own', route('a', prefix('/other'))],
    ['with a longer segment', route('a', exact('/shopping'))],
    ['with a shorter path', route('a', prefix('/'))],
    ['with a regular expression', route('a', { path: { type: 'RegularExpression', value: '/shop.*' } })],
  ])('but not one %s', async (_, other) => expect(await rivals(other)).toEqual([]))

  test('but not if no request satisfies both', async () => {
    const own = route('own', { ...prefix('/shop'), method: 'GET' })
    expect(await rivals(route('a', { ...exact('/shop'), method: 'POST' }), own)).toEqual([])
    const headers = (value: string): RouteMatch => ({ ...prefix('/shop'), headers: [{ name: 'X-A', type: 'Exact', value }] })
    expect(await rivals(route('a', headers('1')), route('own', headers('2')))).toEqual([])
  })
})

test('the position of a match counts the matches of its hostname', async () => {
  const own = route('own', prefix('/shop'), { hostnames: ['a.example', '*.example'] })
  const others = [route('x', exact('/'), { hostnames: ['a.example'] }), route('y', prefix('/'), { hostnames: ['a.example'] }), route('z', prefix('/'))]
  expect((await explainPrecedence(listener, [...others, own], own)).map(({ hostname, position, of }) => [hostname, position, of])).toEqual([
    ['a.example', 2, 3],
    ['*.example', 1, 1],
  ])
})
