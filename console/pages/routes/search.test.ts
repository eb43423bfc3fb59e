import { describe, expect, test } from '@jest/globals'
import type { RouteSummary } from '#api/management/routes.ts'
import { searchRoutes } from './search.ts'

const route = (name: string, hostnames: string[], paths: readonly ['Exact' | 'PathPrefix' | 'RegularExpression', string][]): RouteSummary => ({
  key: `HTTPRoute default/${name}`,
  kind: 'HTTPRoute',
  namespace: 'default',
  name,
  listeners: ['default/web.http'],
  hostnames,
  origin: null,
  createdAt: null,
  rules: paths.map(([type, value], index) => ({
    index,
    name: null,
    matches: [{ text: `${type} ${value}`, path: { type, value }, method: null, headers: [], queryParams: [] }],
    backends: [{ key: `default/${name}-${index}:80`, weight: 1 }],
    shadows: [],
  })),
})

const routes = [
  route(
    'shop',
    ['shop.example'],
    [
      ['PathPrefix', '/cart'],
      ['Exact', '/Help'],
    ],
  ),
  route('wild', ['*.tenants.example'], [['PathPrefix', '/']]),
  route('slow', ['slow.example'], [['RegularExpression', '/(a+)+$']]),
]
const find = (query: string): string[] => searchRoutes(routes, query).flatMap(({ route: { name }, rules }) => rules.map(({ index }) => `${name} ${index}`))

describe('the search over routes', () => {
  test.each([
    ['nothing finds all', '', ['shop 0', 'shop 1', 'wild 0', 'slow 0']],
    ['a name', 'SHOP', ['shop 0', 'shop 1']],
    ['a path below a prefix', '/cart/42?x=1', ['shop 0', 'wild 0']],
    ['a path beside a prefix', '/cartoon', ['wild 0']],
    ['an exact path', '/help', ['shop 1', 'wild 0']],
    ['a host of a wildcard', 'a.tenants.example', ['wild 0']],
    ['a URL', 'https://shop.example/cart/1', ['shop 0']],
    ['a backend', 'shop-1:80', ['shop 1']],
    ['two words', 'example exact', ['shop 1']],
    ['a path that a regular expression might match', '/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', ['wild 0']],
    ['no match', 'zzz', []],
  ])('finds by %s', (_, query, expected) => {
    expect(find(query)).toEqual(expected)
  })
})
