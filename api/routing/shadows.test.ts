import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { Listener, Route, RouteMatch } from '#gen/config/types.ts'
import { createListenerTable, selectListener } from '../../dataplane/route/listeners.ts'
import { compileRoutes } from '../../dataplane/route/table.ts'
import { testRequest } from '../../dataplane/testing/exchange.ts'
import { effectiveHostnames, matchesHostname } from './hostnames.ts'
import { nameOfWinner, ShadowIndex, type Rule, type Shadow } from './shadows.ts'

const listener = (hostname?: string, key = 'l'): Listener => ({ key, bind: 'b', protocol: 'HTTP', ...(hostname === undefined ? {} : { hostname }) }) as Listener
const route = (index: number, more: Partial<Route>): Route => ({
  key: `default/r${index}.00`,
  route: { kind: 'HTTPRoute', namespace: 'default', name: `r${index}`, ruleIndex: 0 },
  creationTimestamp: new Date(index * 1000).toISOString(),
  backends: [],
  listeners: ['l'],
  ...more,
})
const findAll = (rules: readonly Rule[], listeners: readonly Listener[]): Shadow[] => {
  const index = new ShadowIndex(listeners)
  for (const rule of rules) index.add(rule)
  return rules.flatMap((rule) => index.find(rule))
}
const find = (...routes: Partial<Route>[]): string[] =>
  findAll(
    routes.map((more, index) => route(index, more)),
    [listener()],
  ).map(
    ({ rule, match, by, hosts }) =>
      `${rule.route.name}[${match}] by ${'rule' in by ? by.rule.route.name : by.listener.key}${hosts.length > 0 ? ` for ${hosts.join()}` : ''}`,
  )

const prefix = (value: string, more: RouteMatch = {}): RouteMatch => ({ path: { type: 'PathPrefix', value }, ...more })
const exact = (value: string, more: RouteMatch = {}): RouteMatch => ({ path: { type: 'Exact', value }, ...more })
const pattern = (value: string, more: RouteMatch = {}): RouteMatch => ({ path: { type: 'RegularExpression', value }, ...more })
const condition = { name: 'x-a', type: 'Exact', value: '1' } as const
const nineHeaders = Array.from({ length: 9 }, (_, index) => ({ ...condition, name: `x-${index}` }))

describe('a match is shadowed', () => {
  test.each<[string, Partial<Route>[], string[]]>([
    ['an expression by the prefix of every path', [{ matches: [pattern('/a/.*')] }, { matches: [prefix('/')] }], ['r0[0] by r1']],
    ['an expression by a rule without matches', [{ matches: [pattern('.*')] }, {}], ['r0[0] by r1']],
    ['an expression by the prefix that it begins with', [{ matches: [pattern('/a/b.*')] }, { matches: [prefix('/a')] }], ['r0[0] by r1']],
    ['an anchored expression by the prefix that it begins with', [{ matches: [pattern('^/a/b\\.c$')] }, { matches: [prefix('/a')] }], ['r0[0] by r1']],
    ['an expression with a group of alternatives', [{ matches: [pattern('/a/(b|[|)c])')] }, { matches: [prefix('/a')] }], ['r0[0] by r1']],
    ['an expression without operators by the exact path', [{ matches: [pattern('/a/b\\.c')] }, { matches: [exact('/a/b.c')] }], ['r0[0] by r1']],
    ['an expression by the most specific of several', [{ matches: [pattern('/a/b.*')] }, {}, { matches: [prefix('/a')] }], ['r0[0] by r2']],
    [
      'an expression with conditions by a prefix with some of them',
      [{ matches: [pattern('/a', { headers: [condition], method: 'GET' })] }, { matches: [prefix('/', { headers: [condition] })] }],
      ['r0[0] by r1'],
    ],
    ['the younger of two equal matches', [{ matches: [prefix('/a')] }, { matches: [prefix('/b'), prefix('/a/')] }], ['r1[1] by r0']],
    ['the younger of two with nine conditions', [0, 1].map(() => ({ matches: [prefix('/', { headers: nineHeaders })] })), ['r1[0] by r0']],
    [
      'the one of an HTTPRoute by the same expression of a younger GRPCRoute',
      [{ matches: [pattern('/a')] }, { matches: [pattern('/a')], route: { kind: 'GRPCRoute', namespace: 'default', name: 'g', ruleIndex: 0 } }],
      ['r0[0] by g'],
    ],
    ['one of several hosts', [{ hostnames: ['a.b'] }, { hostnames: ['a.b', 'c.d'] }], ['r1[0] by r0 for l a.b']],
    [
      'a rule of a TCPRoute by one that is older',
      [0, 1].map((index) => ({ route: { kind: 'TCPRoute' as never, namespace: 'default', name: `t${index}`, ruleIndex: 0 } })),
      ['t1[0] by t0'],
    ],
  ])('%s', (_, routes, expected) => expect(find(...routes)).toEqual(expected))

  test.each<[string, Partial<Route>[]]>([
    ['a prefix by a shorter one', [{ matches: [prefix('/a')] }, { matches: [prefix('/')] }]],
    ['an expression by a prefix with another condition', [{ matches: [pattern('/a')] }, { matches: [prefix('/', { method: 'GET' })] }]],
    ['an expression whose last segment differs from the prefix', [{ matches: [pattern('/ab*')] }, { matches: [prefix('/ab')] }]],
    ['an expression of alternatives', [{ matches: [pattern('/a/b|/c')] }, { matches: [prefix('/a')] }]],
    ['an expression with hidden alternatives', [{ matches: [pattern('/a/[[:alpha:](]b|/c')] }, { matches: [prefix('/a')] }]],
    ['an expression with an escaped alternative', [{ matches: [pattern('/a/\\(b|/c\\)')] }, { matches: [prefix('/a')] }]],
    ['another host', [{ hostnames: ['a.b'] }, { hostnames: ['c.d'] }]],
    ['an expression of more than eight conditions', [{ matches: [pattern('/a', { headers: nineHeaders })] }, { matches: [prefix('/')] }]],
    ['another match of the same rule', [{ matches: [prefix('/a'), prefix('/a')] }]],
    ['an expression by a prefix of its own rule', [{ matches: [pattern('/a/.*'), prefix('/a')] }]],
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
    expect(findAll(routes, [listener('a.example.com')]).map(({ rule, by }) => [rule.key, nameOfWinner(by)])).toEqual([
      ['default/r1.00', 'rule 0 of HTTPRoute default/r0'],
      ['default/r2.00', 'rule 0 of HTTPRoute default/r0'],
    ])
  })

  test('by a listener of the port with a narrower hostname', () => {
    const both = [listener('*.example.com', 'wide'), listener('a.example.com', 'narrow')]
    const findOn = (...names: string[]) =>
      findAll([route(0, { hostnames: ['a.example.com', 'b.example.com'], listeners: names })], both).map(({ by, hosts }) => [nameOfWinner(by), hosts])
    expect(findOn('wide')).toEqual([['listener narrow', ['wide a.example.com']]])
    expect(findOn('wide', 'narrow')).toEqual([])
  })
})

const paths = ['/', '/a', '/a/', '/a/b', '/a/b/c', '/ab', '/b']
const names = ['a.example.com', '*.example.com', 'b.example.com']
/** Patterns, each with a path that it matches and no prefix of `paths` that it does not begin with. */
const patterns = {
  '/a': '/a',
  '/a/b[^/]*': '/a/bz',
  '/ab.+': '/abz',
  '/a/.*': '/a/z',
  '/a/': '/a/',
  '(/a|/z)/y': '/z/y',
  '/[a-z]{1}/b/z': '/z/b/z',
  '.*': '/z',
}
const headers = { 'x-a': { type: 'Exact', send: '1', value: '1' }, 'X-B': { type: 'RegularExpression', send: '3', value: '1|2|3' } } as const
const match = fc.record(
  {
    path: fc.oneof(
      fc.record({ type: fc.constantFrom('Exact' as const, 'PathPrefix' as const), value: fc.constantFrom(...paths) }),
      fc.record({ type: fc.constant('RegularExpression' as const), value: fc.constantFrom(...Object.keys(patterns)) }),
    ),
    method: fc.constantFrom('GET', 'POST'),
    headers: fc.subarray(Object.entries(headers).map(([name, { type, value }]) => ({ name, type, value }))),
    queryParams: fc.subarray([{ name: 'q', type: 'Exact' as const, value: '1' }]),
  },
  { requiredKeys: [] },
)
const written = fc.array(
  fc.record(
    {
      matches: fc.array(match, { maxLength: 3 }),
      hostnames: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 2 }),
      kind: fc.constantFrom('HTTPRoute' as const, 'HTTPRoute' as const, 'GRPCRoute' as const),
      listeners: fc.constantFrom<string[]>(['l'], ['m'], ['l', 'm']),
    },
    { requiredKeys: ['kind', 'listeners'] },
  ),
  { minLength: 2, maxLength: 6 },
)
const rules = written.map((list) =>
  list.map(({ kind, ...more }, index) => {
    // A method of a GRPCRoute is not every path.
    const matches = kind === 'GRPCRoute' ? more.matches?.filter(({ path }) => path?.value !== '.*') : more.matches
    return route(index, { ...more, ...(matches && { matches }), route: { kind, namespace: 'default', name: `r${index}`, ruleIndex: 0 } })
  }),
)
/** Two listeners of one port. */
const listeners = fc
  .constantFrom([undefined, '*.example.com'], ['*.example.com', 'a.example.com'], ['a.example.com', 'b.example.com'], [undefined, 'b.example.com'])
  .map(([one, other]) => [listener(one, 'l'), listener(other, 'm')])

/** The router of the data plane. */
function createRouter(all: readonly Route[], of: readonly Listener[]) {
  const table = createListenerTable(of)
  const tables = new Map(
    of.map(({ key, hostname }) => [
      key,
      compileRoutes(
        all.filter((each) => each.listeners.includes(key)),
        hostname,
      ),
    ]),
  )
  return (authority: string, method: string, target: string, sent: Record<string, string>) => {
    const selected = selectListener(table, authority)
    const matched = tables.get(selected?.key ?? '')?.match(testRequest({ method, target, authority }, sent))
    return matched && { listener: selected?.key, rule: matched.route, match: matched.rule.matches.indexOf(matched.match) }
  }
}

describe('the matcher of the data plane', () => {
  test('never selects a match that is shadowed', () => {
    let shadows = 0
    fc.assert(
      fc.property(rules, listeners, (all, of) => {
        const found = findAll(all, of)
        shadows += found.length
        if (found.length === 0) return
        const select = createRouter(all, of)
        for (const authority of ['a.example.com', 'b.example.com', 'c.example.com', 'other.test']) {
          for (const path of [...paths, ...Object.values(patterns), '/a/bc', '/a/b/', '/abb', '/c']) {
            for (const [method, sent, query] of [
              ['GET', {}, ''],
              ['POST', { 'x-a': '1' }, ''],
              ['GET', { 'x-a': '1', 'x-b': '2' }, '?q=1'],
              ['GET', { 'x-b': '1' }, '?q=1'],
            ] as const) {
              const selected = select(authority, method, path + query, sent)
              if (selected === undefined) continue
              const hostname = of.find(({ key }) => key === selected.listener)?.hostname
              const reached = effectiveHostnames(selected.rule.hostnames, hostname).filter((host) => matchesHostname(host, authority))
              const places = reached.map((host) => `${selected.listener} ${host === '' ? '*' : host}`)
              for (const { rule, match: shadowed, hosts } of found) {
                if (selected.rule !== rule || selected.match !== shadowed) continue
                // A rule for several hostnames may be selected for another one.
                if (hosts.length === 0 || places.length === 1) expect(hosts.length > 0 && !hosts.includes(places[0] ?? '')).toBe(true)
              }
            }
          }
        }
      }),
      { numRuns: 500 },
    )
    expect(shadows).toBeGreaterThan(500)
  })

  test('selects each rule that is not shadowed for the request that its match describes', () => {
    let served = 0
    fc.assert(
      fc.property(rules, listeners, (all, of) => {
        const found = findAll(all, of)
        const select = createRouter(all, of)
        const table = createListenerTable(of)
        for (const rule of all) {
          for (const { key, hostname } of of.filter((each) => rule.listeners.includes(each.key))) {
            for (const host of effectiveHostnames(rule.hostnames, hostname)) {
              for (const [index, { path, method, headers: wanted = [], queryParams = [] }] of (rule.matches?.length
                ? rule.matches
                : [{} as RouteMatch]
              ).entries()) {
                const place = `${key} ${host === '' ? '*' : host}`
                if (found.some((shadow) => shadow.rule === rule && shadow.match === index && (shadow.hosts.length === 0 || shadow.hosts.includes(place))))
                  continue
                const target =
                  path?.type === 'RegularExpression'
                    ? patterns[path.value as '/a']
                    : path?.type === 'Exact'
                      ? path.value
                      : `${path?.value ?? ''}/z`.replace('//', '/')
                const sent = Object.fromEntries(wanted.map(({ name }) => [name.toLowerCase(), headers[name as 'x-a'].send]))
                const authority = host === '' ? 'z.test' : host.replace('*', 'z')
                // The narrower listener gets the request, and the rule is attached to it, too.
                const owner = selectListener(table, authority)?.key ?? ''
                if (owner !== key && rule.listeners.includes(owner)) continue
                const selected = select(authority, method ?? 'PURGE', target + (queryParams.length > 0 ? '?q=1' : ''), sent)
                expect(selected?.rule.key).toBe(rule.key)
                served++
              }
            }
          }
        }
      }),
      { numRuns: 500 },
    )
    expect(served).toBeGreaterThan(2000)
  })
})

test('an index that follows changes equals a new one, and names each rule whose shadows differ', () => {
  fc.assert(
    fc.property(rules, listeners, fc.array(fc.nat({ max: 5 }), { maxLength: 20 }), (all, of, steps) => {
      const index = new ShadowIndex(of)
      const live = new Set<Route>()
      const known = new Map<Route, Shadow[]>()
      for (const step of steps) {
        const rule = all[step % all.length] as Route
        if (live.delete(rule)) index.delete(rule)
        else {
          live.add(rule)
          index.add(rule)
        }
        for (const changed of index.takeChanged()) known.set(changed as Route, index.find(changed))
        for (const each of known.keys()) if (!live.has(each)) known.delete(each)
        const fresh = new ShadowIndex(of)
        for (const each of live) fresh.add(each)
        for (const each of live) expect(known.get(each)).toEqual(fresh.find(each))
      }
    }),
    { numRuns: 300 },
  )
})

test('thousands of rules with one path take little time', () => {
  const many = Array.from({ length: 3000 }, (_, index) =>
    route(index % 10, { key: `default/r${index}.00`, matches: [prefix('/', { headers: [{ name: 'x-a', type: 'Exact', value: String(index) }] })] }),
  )
  const started = performance.now()
  expect(findAll(many, [listener()])).toEqual([])
  expect(performance.now() - started).toBeLessThan(10_000)
})
