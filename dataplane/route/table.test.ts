import { describe, expect, test } from '@jest/globals'
import type { PathMatch, Route, RouteMatch } from '#gen/config/types.ts'
import { testRequest } from '../testing/exchange.ts'
import { compileRoutes } from './table.ts'
import { testRoute } from './testing.ts'

const exact = (value: string): { path: PathMatch } => ({ path: { type: 'Exact', value } })
const prefix = (value: string): { path: PathMatch } => ({ path: { type: 'PathPrefix', value } })
const regex = (value: string): { path: PathMatch } => ({ path: { type: 'RegularExpression', value } })
const header = (name: string, value: string, type: 'Exact' | 'RegularExpression' = 'Exact') => ({ name, value, type })

function tableOf(routes: Route[], listenerHostname?: string) {
  return compileRoutes(routes, listenerHostname)
}

describe('a route with one match', () => {
  const rows: [string, RouteMatch[] | undefined, string, boolean][] = [
    ['prefix /foo does not match /foobar', [prefix('/foo')], '/foobar', false],
    ['prefix /foo matches /foo', [prefix('/foo')], '/foo', true],
    ['prefix /foo matches /foo/', [prefix('/foo')], '/foo/', true],
    ['prefix /foo matches /foo/x', [prefix('/foo')], '/foo/x', true],
    ['prefix /foo/ matches /foo', [prefix('/foo/')], '/foo', true],
    ['prefix /foo/ matches /foo/x', [prefix('/foo/')], '/foo/x', true],
    ['prefix foo matches as /foo', [prefix('foo')], '/foo/x', true],
    ['an empty prefix matches every path', [prefix('')], '/x', true],
    ['prefix / matches every path', [prefix('/')], '/x/y', true],
    ['prefix / matches the asterisk of OPTIONS', [prefix('/')], '*', true],
    ['a prefix is compared with the undecoded path', [prefix('/a/b')], '/a%2Fb', false],
    ['a prefix does not skip empty segments', [prefix('/a/b')], '/a//b', false],
    ['a prefix ignores the query', [prefix('/a')], '/a?x=/b', true],
    ['exact /a matches /a', [exact('/a')], '/a', true],
    ['exact /a ignores the query', [exact('/a')], '/a?b', true],
    ['exact /a does not match /a/', [exact('/a')], '/a/', false],
    ['exact /a is case-sensitive', [exact('/a')], '/A', false],
    ['exact does not match a percent-encoded form', [exact('/a b')], '/a%20b', false],
    ['exact / matches CONNECT, which has no path', [exact('/')], '', true],
    ['a regular expression matches the full path', [regex('/v[0-9]')], '/v1', true],
    ['a regular expression is anchored', [regex('/v[0-9]')], '/v1/x', false],
    ['a regular expression ignores the query', [regex('/v[0-9]')], '/v1?x', true],
    ['an invalid regular expression never matches', [regex('/(')], '/(', false],
    ['an absent list of matches matches every path', undefined, '/x', true],
    ['an empty match matches every path', [{}], '/x', true],
    ['any of several matches suffices', [exact('/a'), exact('/b')], '/b', true],
    ['a query parameter is form-decoded', [{ queryParams: [header('a b', 'x y')] }], '/?a%20b=x+y', true],
    ['the last of a repeated query parameter counts', [{ queryParams: [header('a', '2')] }], '/?a=1&a=2', true],
    ['the first of a repeated query parameter does not count', [{ queryParams: [header('a', '1')] }], '/?a=1&a=2', false],
    ['a query parameter without value is empty', [{ queryParams: [header('a', '')] }], '/?a', true],
    ['a missing query parameter is not empty', [{ queryParams: [header('a', '.*', 'RegularExpression')] }], '/?b=', false],
    ['a query value may hold an equals sign', [{ queryParams: [header('a', 'b=c')] }], '/?a=b=c', true],
    ['malformed percent-encoding in a query is kept', [{ queryParams: [header('a', '%zz')] }], '/?a=%zz', true],
    ['a query parameter matches by full regular expression', [{ queryParams: [header('a', '[0-9]+', 'RegularExpression')] }], '/?a=12x', false],
    ['all query parameters must match', [{ queryParams: [header('a', '1'), header('b', '2')] }], '/?a=1', false],
  ]
  test.each(rows)('%s', (_, matches, target, expected) => {
    expect(tableOf([testRoute('r', matches)]).match(testRequest({ target })) !== undefined).toBe(expected)
  })

  const headerRows: [string, ReturnType<typeof header>[], Record<string, string>, boolean][] = [
    ['header names are compared without case', [header('X-A', '1')], { 'x-a': '1' }, true],
    ['header values are compared with case', [header('x-a', 'V')], { 'x-a': 'v' }, false],
    ['all headers must match', [header('x-a', '1'), header('x-b', '2')], { 'x-a': '1' }, false],
    ['header values are not split at commas', [header('x-a', '1')], { 'x-a': '1,2' }, false],
    ['of two conditions with one name the first counts', [header('x-a', '1'), header('X-A', '2')], { 'x-a': '1' }, true],
    ['a regular expression matches the full header value', [header('x-a', 'v[0-9]', 'RegularExpression')], { 'x-a': 'v12' }, false],
    ['an invalid regular expression never matches a header', [header('x-a', '(?=v)', 'RegularExpression')], { 'x-a': 'v' }, false],
    ['the header :method is the method', [header(':method', 'GET')], {}, true],
    ['the header :path is the path with its query', [header(':path', '/x?y=1')], {}, true],
    ['the header :scheme is the scheme', [header(':scheme', 'http')], {}, true],
    ['the header :authority is the host with its port', [header(':authority', 'a.com:8080')], {}, true],
    ['the header Host is the authority', [header('Host', 'a.com:8080')], {}, true],
  ]
  test.each(headerRows)('%s', (_, headers, sent, expected) => {
    const request = testRequest({ target: '/x?y=1', authority: 'a.com:8080' }, sent)
    expect(tableOf([testRoute('r', [{ headers }])]).match(request) !== undefined).toBe(expected)
  })

  test('any field line of a repeated header may match', () => {
    const request = testRequest()
    request.headers.append('x-a', '1')
    request.headers.append('x-a', '2')
    expect(tableOf([testRoute('r', [{ headers: [header('x-a', '2')] }])]).match(request)).toBeDefined()
  })

  test('methods are compared exactly', () => {
    const table = tableOf([testRoute('r', [{ method: 'GET' }])])
    expect(table.match(testRequest({ method: 'get' }))).toBeUndefined()
    expect(table.match(testRequest({ method: 'GET' }))).toBeDefined()
  })

  test('patterns that do not compile are reported with their route', () => {
    expect(tableOf([testRoute('r', [regex('/(')])]).errors).toEqual(['default/r.00: regular expression "/(": missing closing ): `/(`'])
  })
})

describe('precedence of matches', () => {
  const two = (a: RouteMatch, b: RouteMatch): Route[] => [testRoute('loser', [a]), testRoute('winner', [b])]
  const grpc = (a: RouteMatch | undefined, b: RouteMatch): Route[] => [
    testRoute('loser', a && [a], { kind: 'GRPCRoute' }),
    testRoute('winner', [b], { kind: 'GRPCRoute' }),
  ]
  const many = { headers: [header('x-a', '1'), header('x-b', '2')] }
  const rows: [string, Route[], string][] = [
    ['exact beats prefix', two(prefix('/a/b'), exact('/a/b')), '/a/b'],
    ['exact beats regular expression', two(regex('/a/.*'), exact('/a/b')), '/a/b'],
    ['prefix beats regular expression, however long', two(regex('/a/b/c/d/e/f|/a/b'), prefix('/')), '/a/b'],
    ['the longer prefix wins', two(prefix('/a'), prefix('/a/b')), '/a/b/c'],
    ['the longer pattern wins', two(regex('/a/.'), regex('/[a]/b')), '/a/b'],
    ['a method beats headers', two({ ...prefix('/'), ...many }, { ...prefix('/'), method: 'GET' }), '/a/b'],
    ['more headers win', two({ ...prefix('/'), headers: [header('x-a', '1')] }, { ...prefix('/'), ...many }), '/a/b'],
    ['headers beat query parameters', two({ queryParams: [header('q', '1'), header('r', '2')] }, { headers: [header('x-a', '1')] }), '/?q=1&r=2'],
    ['more query parameters win', two({ queryParams: [header('q', '1')] }, { queryParams: [header('q', '1'), header('r', '2')] }), '/?q=1&r=2'],
    ['a gRPC method of any service beats a match of every path', grpc(undefined, regex('/[^/]+/Get')), '/a.B/Get'],
    ['a gRPC method of any service beats headers alone', grpc({ headers: many.headers }, regex('/[^/]+/Get')), '/a.B/Get'],
    ['a gRPC method beats a match of every path of an HTTPRoute', [testRoute('loser', [prefix('/')]), ...grpc(undefined, regex('/[^/]+/Get'))], '/a.B/Get'],
    ['a gRPC service beats a method of any service', grpc(regex('/[^/]+/Get'), prefix('/a.B/')), '/a.B/Get'],
    ['a match of every path of a GRPCRoute beats a pattern of an HTTPRoute', [testRoute('loser', [regex('/.*')]), ...grpc(regex('/other'), {})], '/a.B/Get'],
    ['path length beats everything below it', two({ ...prefix('/a'), ...many, method: 'GET' }, prefix('/a/b')), '/a/b'],
  ]
  test.each(rows)('%s', (_, routes, target) => {
    const request = testRequest({ target }, { 'x-a': '1', 'x-b': '2' })
    expect(tableOf(routes).match(request)?.route.route.name).toBe('winner')
    expect(tableOf(routes.toReversed()).match(request)?.route.route.name).toBe('winner')
  })

  const ties: [string, Route, Route][] = [
    [
      'the older route',
      testRoute('b', undefined, { creationTimestamp: '2024-01-01T00:00:00Z' }),
      testRoute('a', undefined, { creationTimestamp: '2024-01-01T01:00:00+00:30' }),
    ],
    ['a route of known age', testRoute('b', undefined, { creationTimestamp: '2024-01-01T00:00:00Z' }), testRoute('a', undefined)],
    ['the lesser name', testRoute('a', undefined, { ruleIndex: 3 }), testRoute('b', undefined)],
    ['names compared by character, not by language', testRoute('a-b', undefined), testRoute('ab', undefined)],
    ['the earlier rule', testRoute('a', undefined, { ruleIndex: 2 }), testRoute('a', undefined, { ruleIndex: 10 })],
  ]
  test.each(ties)('%s wins a tie', (_, winner, loser) => {
    for (const routes of [
      [winner, loser],
      [loser, winner],
    ])
      expect(tableOf(routes).match(testRequest())?.route).toBe(winner)
  })

  test('a request that does not match falls through to the next prefix', () => {
    const table = tableOf([testRoute('deep', [{ ...prefix('/a/b'), method: 'POST' }]), testRoute('shallow', [prefix('/a')])])
    expect(table.match(testRequest({ target: '/a/b' }))?.route.route.name).toBe('shallow')
    expect(table.match(testRequest({ target: '/a/b', method: 'POST' }))?.route.route.name).toBe('deep')
  })

  test('the result has the path condition that matched', () => {
    const table = tableOf([testRoute('r', [exact('/a'), prefix('/b/')])])
    expect(table.match(testRequest({ target: '/b/c' }))?.match).toMatchObject({ path: { type: 'PathPrefix' }, key: '/b' })
    expect(table.match(testRequest({ target: '/a' }))?.match.path).toEqual({ type: 'Exact', value: '/a' })
  })
})

describe('hostnames of routes', () => {
  const routes = [
    testRoute('exact', [prefix('/only')], { hostnames: ['a.x.com'] }),
    testRoute('long', [prefix('/long')], { hostnames: ['*.b.x.com'] }),
    testRoute('wild', [prefix('/')], { hostnames: ['*.x.com'] }),
    testRoute('any', [prefix('/any')]),
  ]
  test.each([
    ['a.x.com', '/only', 'exact'],
    ['A.X.com:8080', '/only', 'exact'],
    ['a.x.com', '/other', 'wild'],
    ['c.b.x.com', '/long', 'long'],
    ['c.b.x.com', '/any', 'wild'],
    ['x.com', '/any', 'any'],
    ['x.com', '/other', undefined],
    ['', '/any', 'any'],
    ['[::1]:80', '/any', 'any'],
  ])('%s%s goes to %s', (authority, target, expected) => {
    expect(tableOf(routes).match(testRequest({ authority, target }))?.route.route.name).toBe(expected)
  })

  test('a route without hostnames is reachable at the hostnames of the listener only', () => {
    const table = tableOf([testRoute('r', undefined)], '*.x.com')
    expect(table.match(testRequest({ authority: 'a.x.com' }))).toBeDefined()
    expect(table.match(testRequest({ authority: 'x.com' }))).toBeUndefined()
  })

  test('a route whose hostnames are disjoint from the listener is unreachable', () => {
    expect(tableOf([testRoute('r', undefined, { hostnames: ['b.com'] })], 'a.com').match(testRequest({ authority: 'b.com' }))).toBeUndefined()
  })
})
