import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { Listener, Route, RouteMatch } from '#gen/config/types.ts'
import { compileRoutes } from '../../dataplane/route/table.ts'
import { testRequest } from '../../dataplane/testing/exchange.ts'
import { findShadows } from './shadows.ts'

const listener = (hostname?: string): Listener => ({ key: 'l', ...(hostname === undefined ? {} : { hostname }) }) as Listener
const route = (index: number, more: Partial<Route>): Route => ({
  key: `default/r${index}.00`,
  route: { kind: 'HTTPRoute', namespace: 'default', name: `r${index}`, ruleIndex: 0 },
  creationTimestamp: new Date(index * 1000).toISOString(),
  backends: [],
  listeners: ['l'],
  ...more,
})
const find = (...routes: Partial<Route>[]): string[] =>
  findShadows(
    routes.map((more, index) => route(index, more)),
    [listener()],
  ).map(({ loser, match, winner, hosts }) => `${loser.route.name}[${match}] by ${winner.route.name}${hosts.length > 0 ? ` for ${hosts.join()}` : ''}`)

const prefix = (value: string, more: RouteMatch = {}): RouteMatch => ({ path: { type: 'PathPrefix', value }, ...more })
const pattern = (value: string, more: RouteMatch = {}): RouteMatch => ({ path: { type: 'RegularExpression', value }, ...more })
const condition = { name: 'x-a', type: 'Exact', value: '1' } as const

describe('a match is shadowed', () => {
  test.each<[string, Partial<Route>[], string[]]>([
    ['an expression by the prefix of every path', [{ matches: [pattern('/a/.*')] }, { matches: [prefix('/')] }], ['r0[0] by r1']],
    ['an expression by a rule without matches', [{ matches: [pattern('.*')] }, {}], ['r0[0] by r1']],
    ['an expression by the prefix that it begins with', [{ matches: [pattern('/a/b.*')] }, { matches: [prefix('/a')] }], ['r0[0] by r1']],
    [
      'an expression with conditions by a prefix with some of them',
      [{ matches: [pattern('/a', { headers: [condition], method: 'GET' })] }, { matches: [prefix('/', { headers: [condition] })] }],
      ['r0[0] by r1'],
    ],
    ['the younger of two equal matches', [{ matches: [prefix('/a')] }, { matches: [prefix('/b'), prefix('/a/')] }], ['r1[1] by r0']],
    ['one of several hosts', [{ hostnames: ['a.b'] }, { hostnames: ['a.b', 'c.d'] }], ['r1[0] by r0 for l a.b']],
  ])('%s', (_, routes, expected) => expect(find(...routes)).toEqual(expected))

  test.each<[string, Partial<Route>[]]>([
    ['a prefix by a shorter one', [{ matches: [prefix('/a')] }, { matches: [prefix('/')] }]],
    ['an expression by a prefix with another condition', [{ matches: [pattern('/a')] }, { matches: [prefix('/', { method: 'GET' })] }]],
    ['an expression whose last segment differs from the prefix', [{ matches: [pattern('/ab*')] }, { matches: [prefix('/ab')] }]],
    ['an expression of alternatives', [{ matches: [pattern('/a/b|/c')] }, { matches: [prefix('/a')] }]],
    ['another host', [{ hostnames: ['a.b'] }, { hostnames: ['c.d'] }]],
    [
      'one of more than eight conditions',
      [0, 1].map(() => ({ matches: [prefix('/', { headers: Array.from({ length: 9 }, (_, index) => ({ ...condition, name: `x-${index}` })) })] })),
    ],
    ['another match of the same rule', [{ matches: [prefix('/a'), prefix('/a')] }]],
    [
      'a method of a GRPCRoute by the prefix of every path',
      [{ matches: [pattern('/a')], route: { kind: 'GRPCRoute', namespace: 'default', name: 'g', ruleIndex: 0 } }, {}],
    ],
  ])('but not %s', (_, routes) => expect(find(...routes)).toEqual([]))

  test('among thousands of rules for one path', () => {
    const headers = (index: number) => [{ ...condition, value: String(index) }]
    const rules = Array.from({ length: 3000 }, (_, index): Partial<Route> => ({ matches: [prefix('/', { headers: headers(index), method: 'GET' })] }))
    expect(find(...rules, { matches: [prefix('/', { headers: headers(2900), method: 'GET' })] })).toEqual(['r3000[0] by r2900'])
  })

  test('by a rule for the host of the listener', () => {
    const routes = [route(0, {}), route(1, { hostnames: ['*.example.com'] }), route(2, { hostnames: ['a.example.com', 'b.test'] })]
    expect(findShadows(routes, [listener('a.example.com')]).map(({ loser, winner }) => [loser.key, winner.key])).toEqual([
      ['default/r1.00', 'default/r0.00'],
      ['default/r2.00', 'default/r0.00'],
    ])
  })
})

describe('the matcher of the data plane', () => {
  const paths = ['/', '/a', '/a/', '/a/b', '/a/b/c', '/ab', '/b']
  const hosts = ['a.example.com', 'b.example.com', 'other.test']
  const match = fc.record(
    {
      path: fc.oneof(
        fc.record({ type: fc.constantFrom('Exact' as const, 'PathPrefix' as const), value: fc.constantFrom(...paths) }),
        fc.record({
          type: fc.constant('RegularExpression' as const),
          value: fc.constantFrom('/a', '/a/b.*', '/a/b?', '/a/b|/b', '/ab*', '.*', '/a/.*', '/a/', '(/a)/b', '/a{1}/b'),
        }),
      ),
      method: fc.constantFrom('GET', 'POST'),
      headers: fc.subarray([
        { name: 'x-a', type: 'Exact' as const, value: '1' },
        { name: 'X-B', type: 'RegularExpression' as const, value: '1|2' },
      ]),
      queryParams: fc.subarray([{ name: 'q', type: 'Exact' as const, value: '1' }]),
    },
    { requiredKeys: [] },
  )
  const routes = fc.array(
    fc.record(
      {
        matches: fc.array(match, { maxLength: 3 }),
        hostnames: fc.uniqueArray(fc.constantFrom('a.example.com', '*.example.com', 'b.example.com'), { maxLength: 2 }),
        kind: fc.constantFrom('HTTPRoute', 'HTTPRoute', 'GRPCRoute'),
      },
      { requiredKeys: ['kind'] },
    ),
    { minLength: 2, maxLength: 5 },
  )

  test('never selects a match that is shadowed', () => {
    let shadows = 0
    fc.assert(
      fc.property(routes, fc.constantFrom(undefined, '*.example.com', 'a.example.com'), (written, hostname) => {
        const rules = written.map(({ kind, ...more }, index) =>
          route(index, { ...more, route: { kind, namespace: 'default', name: `r${index}`, ruleIndex: 0 } }),
        )
        const found = findShadows(rules, [listener(hostname)])
        if (found.length === 0) return
        shadows += found.length
        const table = compileRoutes(rules, hostname)
        for (const authority of hosts) {
          for (const path of [...paths, '/a/bc', '/a/b/', '/abb', '/c']) {
            for (const [method, headers, query] of [
              ['GET', {}, ''],
              ['POST', { 'x-a': '1' }, ''],
              ['GET', { 'x-a': '1', 'x-b': '2' }, '?q=1'],
              ['GET', { 'x-b': '1' }, '?q=1'],
            ] as const) {
              const selected = table.match(testRequest({ method, target: `${path}${query}`, authority }, headers))
              for (const shadow of found) {
                if (selected?.route !== shadow.loser || shadow.hosts.length > 0) continue
                expect(selected.rule.matches.indexOf(selected.match)).not.toBe(shadow.match)
              }
            }
          }
        }
      }),
    )
    expect(shadows).toBeGreaterThan(20)
  })
})

test('thousands of rules with one path take little time', () => {
  const many = Array.from({ length: 3000 }, (_, index) =>
    route(index % 10, { key: `default/r${index}.00`, matches: [prefix('/', { headers: [{ name: 'x-a', type: 'Exact', value: String(index) }] })] }),
  )
  const started = performance.now()
  expect(findShadows(many, [listener()])).toEqual([])
  expect(performance.now() - started).toBeLessThan(10_000)
})
