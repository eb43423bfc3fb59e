import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { PathMatch, Route, RouteMatch } from '#gen/config/types.ts'
import type { RequestHead } from '../http/message.ts'
import { testRequest } from '../testing/exchange.ts'
import { compileRoutes } from './table.ts'
import { testRoute } from './testing.ts'

// A second, naive implementation of traffic.md §7: tries every match of every route and sorts the candidates.

function findNaively(routes: readonly Route[], listener: string, request: RequestHead): string | undefined {
  const host = request.authority
  const path = request.target.split('?')[0] ?? ''
  const query = new URLSearchParams(request.target.split('?')[1] ?? '')
  const covers = (hostname: string, name: string) => hostname === '' || hostname === name || (hostname.startsWith('*.') && name.endsWith(hostname.slice(1)))
  const narrow = (hostname: string) => (covers(hostname, listener.replace('*.', 'x.')) && listener !== '' ? listener : hostname)
  const levelOf = (route: Route) =>
    (route.hostnames ?? [''])
      .filter((hostname) => covers(hostname, host) && covers(listener, host))
      .map(narrow)
      .map((hostname) => (hostname === '' ? -1 : hostname.startsWith('*.') ? hostname.length : 1000))
      .reduce((a, b) => Math.max(a, b), -2)
  const holds = (match: RouteMatch) =>
    pathHolds(match.path, path) &&
    (match.method === undefined || match.method === request.method) &&
    (match.headers ?? []).every(({ name, value }) => request.headers.getAll(name).includes(value)) &&
    (match.queryParams ?? []).every(({ name, value }) => query.getAll(name).at(-1) === value)
  const typeOf = ({ type, value }: PathMatch, isGrpc: boolean) => {
    if (type === 'RegularExpression') return isGrpc ? 2 : 0
    return type === 'Exact' ? 4 : trim(value) === '' ? 1 : 3
  }
  const rankOf = ({ path: wanted = { type: 'PathPrefix', value: '/' }, method, headers, queryParams }: RouteMatch, isGrpc: boolean) => [
    typeOf(wanted, isGrpc),
    wanted.type === 'PathPrefix' ? trim(wanted.value).length : wanted.value.length,
    method === undefined ? 0 : 1,
    headers?.length ?? 0,
    queryParams?.length ?? 0,
  ]
  const best = routes
    .flatMap((route) => (route.matches ?? [{}]).map((match) => ({ route, match, level: levelOf(route) })))
    .filter(({ match, level }) => level > -2 && holds(match))
    .sort((a, b) => {
      if (a.level !== b.level) return b.level - a.level
      const [ranksA, ranksB] = [rankOf(a.match, a.route.route.kind === 'GRPCRoute'), rankOf(b.match, b.route.route.kind === 'GRPCRoute')]
      const differing = ranksA.findIndex((rank, i) => rank !== ranksB[i])
      if (differing !== -1) return (ranksB[differing] ?? 0) - (ranksA[differing] ?? 0)
      const age = Date.parse(a.route.creationTimestamp ?? '') - Date.parse(b.route.creationTimestamp ?? '')
      return age || (a.route.route.name < b.route.route.name ? -1 : a.route.route.name > b.route.route.name ? 1 : 0)
    })[0]
  return best?.route.key
}

const trim = (prefix: string) => prefix.replace(/\/$/, '')

function pathHolds(wanted: PathMatch | undefined, path: string): boolean {
  if (wanted === undefined) return true
  if (wanted.type === 'Exact') return wanted.value === path
  if (wanted.type === 'RegularExpression') return new RegExp(`^(?:${wanted.value})$`).test(path)
  return `${trim(path)}/`.startsWith(`${trim(wanted.value)}/`)
}

const segment = fc.constantFrom('a', 'b', 'ab')
const path = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.boolean())
  .map(([segments, slash]) => `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}`)
const pathMatch: fc.Arbitrary<PathMatch> = fc.oneof(
  path.map((value) => ({ type: 'Exact' as const, value })),
  path.map((value) => ({ type: 'PathPrefix' as const, value })),
  fc.constantFrom('/a.*', '/[ab]+', '/.*/b', '.*').map((value) => ({ type: 'RegularExpression' as const, value })),
)
const values = (names: string[]) =>
  fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), value: fc.constantFrom('1', '2'), type: fc.constant('Exact' as const) }), {
    selector: ({ name }) => name,
    maxLength: 2,
  })
const match: fc.Arbitrary<RouteMatch> = fc.record(
  { path: pathMatch, method: fc.constantFrom('GET', 'POST'), headers: values(['x-a', 'x-b']), queryParams: values(['p', 'q']) },
  { requiredKeys: [] },
)
const hostname = fc.constantFrom('a.x.com', 'b.a.x.com', '*.x.com', '*.a.x.com', '*.com', 'y.com')
const route = fc.record({
  matches: fc.option(fc.array(match, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  hostnames: fc.option(fc.uniqueArray(hostname, { minLength: 1, maxLength: 2 }), { nil: undefined }),
  year: fc.constantFrom(2020, 2021),
  kind: fc.constantFrom('HTTPRoute' as const, 'GRPCRoute' as const),
})
const routes = fc
  .array(route, { minLength: 1, maxLength: 8 })
  .map((list) =>
    list.map(({ matches, hostnames, year, kind }, i) =>
      testRoute(`r${i}`, matches, { kind, creationTimestamp: `${year}-01-01T00:00:00Z`, ...(hostnames === undefined ? {} : { hostnames }) }),
    ),
  )
const request = fc
  .record({
    path,
    query: fc.constantFrom('', '?p=1', '?p=1&p=2', '?q=2&p=1'),
    method: fc.constantFrom('GET', 'POST'),
    authority: fc.constantFrom('a.x.com', 'b.a.x.com', 'c.x.com', 'y.com', 'z.org'),
    headers: fc.subarray(['1', '2'] as const),
  })
  .map(({ path: target, query, method, authority, headers }) => {
    const made = testRequest({ target: target + query, method, authority })
    for (const value of headers) made.headers.append('x-a', value)
    return made
  })

test('the index finds the same rule as a sorted scan of all matches', () => {
  const seen = { found: 0, missed: 0 }
  fc.assert(
    fc.property(routes, fc.constantFrom('', 'a.x.com', '*.x.com'), fc.array(request, { minLength: 1, maxLength: 8 }), (list, listener, requests) => {
      const table = compileRoutes(list, listener)
      for (const each of requests) {
        const expected = findNaively(list, listener, each)
        seen[expected === undefined ? 'missed' : 'found']++
        expect(table.match(each)?.route.key).toBe(expected)
      }
    }),
    { numRuns: 1000 },
  )
  expect(Math.min(seen.found, seen.missed)).toBeGreaterThan(500)
})
