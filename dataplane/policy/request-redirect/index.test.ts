import { expect, test } from '@jest/globals'
import type { PathMatch, RequestRedirect } from '#gen/config/types.ts'
import { testRequest } from '../../testing/exchange.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compileRequestRedirect } from './index.ts'
import { redirectTo } from './redirect.ts'

const below: PathMatch = { type: 'PathPrefix', value: '/a' }

async function send(filter: RequestRedirect, url: string, match: PathMatch = below) {
  const app = mountPolicies([compileRequestRedirect(filter)], { prepare: (exchange) => (exchange.pathMatch = match) })
  return app.request(url, { method: 'POST' })
}

const rows: [string, RequestRedirect, string, string][] = [
  ['another scheme drops the port', { scheme: 'https' }, 'http://host:8080/a?x=1', 'https://host/a?x=1'],
  ['the same scheme, if configured, drops the port too', { scheme: 'http' }, 'http://host:8080/a', 'http://host/a'],
  ['another host keeps the port', { hostname: 'b.com' }, 'http://host:8080/a', 'http://b.com:8080/a'],
  ['another host has no default port to keep', { hostname: 'b.com' }, 'http://host/a', 'http://b.com/a'],
  ['host and scheme drop the port', { hostname: 'b.com', scheme: 'https' }, 'http://host:8080/a', 'https://b.com/a'],
  ['a port without other changes replaces the port', { port: 9000 }, 'http://host:8080/a', 'http://host:9000/a'],
  ['the default port of http is dropped', { port: 80 }, 'http://host:8080/a', 'http://host/a'],
  ['the default port of https is dropped', { port: 443, scheme: 'https' }, 'http://host:8080/a', 'https://host/a'],
  ['port 443 of http stays', { port: 443 }, 'http://host/a', 'http://host:443/a'],
  ['port 80 of https stays', { port: 80 }, 'https://host/a', 'https://host:80/a'],
  ['a full path keeps the query', { path: { type: 'ReplaceFullPath', value: '/b' } }, 'http://host:8080/a/c?x=1', 'http://host:8080/b?x=1'],
  ['a prefix is replaced', { path: { type: 'ReplacePrefixMatch', value: '/b/' } }, 'http://host/a/c?x=1', 'http://host/b/c?x=1'],
  ['an IPv6 host keeps its brackets', { port: 81 }, 'http://[::1]:8080/a', 'http://[::1]:81/a'],
]
test.each(rows)('%s', async (_, filter, url, location) => {
  const { response, isForwarded, exchange } = await send(filter, url)
  expect({
    status: response.status,
    location: response.headers.get('location'),
    body: await response.text(),
    isForwarded,
    isLocal: exchange.isLocalAnswer,
  }).toEqual({
    status: 302,
    location,
    body: '',
    isForwarded: false,
    isLocal: true,
  })
  expect(redirectTo(exchange.request, filter, below).headers.get('location')).toBe(location)
})

test.each([301, 302, 303, 307, 308] as const)('a redirect has the configured status %d', async (statusCode) => {
  expect((await send({ statusCode }, 'http://host/a')).response.status).toBe(statusCode)
})

test('a prefix rewrite of an exact match fails', async () => {
  const { response } = await send({ path: { type: 'ReplacePrefixMatch', value: '/b' } }, 'http://host/a', { type: 'Exact', value: '/a' })
  expect([response.status, await response.text()]).toEqual([500, 'failed to apply filters: ReplacePrefixMatch needs a PathPrefix match'])
})

test('a target that is not a path redirects to the root', () => {
  expect(redirectTo(testRequest({ target: '*', method: 'OPTIONS' }), { scheme: 'https' }, below).headers.get('location')).toBe('https://example.com/')
})
