import { expect, test } from '@jest/globals'
import type { PathMatch, UrlRewrite } from '#gen/config/types.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { rewritePath } from '../path.ts'
import { compileUrlRewrite } from './index.ts'

const prefixed = (value: string): PathMatch => ({ type: 'PathPrefix', value })

test.each([
  // [target, matched prefix, replacement, result], starting with the table of Gateway API's HTTPPathModifier.
  ['/foo/bar', '/foo', '/xyz', '/xyz/bar'],
  ['/foo/bar', '/foo', '/xyz/', '/xyz/bar'],
  ['/foo/bar', '/foo/', '/xyz', '/xyz/bar'],
  ['/foo/bar', '/foo/', '/xyz/', '/xyz/bar'],
  ['/foo', '/foo', '/xyz', '/xyz'],
  ['/foo/', '/foo', '/xyz', '/xyz/'],
  ['/foo/bar', '/foo', '', '/bar'],
  ['/foo/', '/foo', '', '/'],
  ['/foo', '/foo', '', '/'],
  ['/foo/', '/foo', '/', '/'],
  ['/foo', '/foo', '/', '/'],
  ['/a/b?x=1', '/a', '/', '/b?x=1'],
  ['/a?x=1', '/a', '/', '/?x=1'],
  ['/a//b', '/a', '/c', '/c/b'],
  ['/a//b', '/a', '/', '/b'],
  ['/a/b//c', '/a', '/d', '/d/b//c'],
  ['/b', '/', '/a', '/a/b'],
  ['/', '/', '/a', '/a/'],
  ['/b', '', '/a', '/a/b'],
  ['/b', '/', 'a', '/a/b'],
  ['/a/%2Fb%20c', '/a', '/d', '/d/%2Fb%20c'],
  ['/a/b', '/a', '/x y?z#é', '/x%20y%3Fz%23%C3%A9/b'],
  ['*', '/', '/a', '*'],
  ['', '/', '/a', ''],
])('path %s with prefix %s replaced by %j becomes %s', (target, prefix, value, expected) => {
  expect(rewritePath(target, { type: 'ReplacePrefixMatch', value }, prefixed(prefix))).toBe(expected)
})

test.each([
  ['/a/b?x=1', '/c', '/c?x=1'],
  ['/a', 'c/', '/c/'],
  ['/a?x', '', '/?x'],
  ['/a', '/c d\r\nx: y', '/c%20d%0D%0Ax:%20y'],
])('path %s replaced by %j becomes %s', (target, value, expected) => {
  expect(rewritePath(target, { type: 'ReplaceFullPath', value }, undefined)).toBe(expected)
})

const send = (rewrite: UrlRewrite, match: PathMatch) =>
  mountPolicies([compileUrlRewrite(rewrite)], { prepare: (exchange) => (exchange.pathMatch = match) }).request('http://host:8080/a/b?x=1')

test('a hostname replaces and fixes the authority without changing the path', async () => {
  const { exchange } = await send({ hostname: 'b.com' }, prefixed('/a'))
  expect([exchange.request.authority, exchange.isAuthorityFixed, exchange.request.target, exchange.receivedAuthority]).toEqual([
    'b.com',
    true,
    '/a/b?x=1',
    'host:8080',
  ])
})

test('a path rewrite does not fix the authority', async () => {
  const { exchange } = await send({ path: { type: 'ReplacePrefixMatch', value: '/' } }, prefixed('/a'))
  expect([exchange.request.authority, exchange.isAuthorityFixed, exchange.request.target, exchange.receivedTarget]).toEqual([
    'host:8080',
    false,
    '/b?x=1',
    '/a/b?x=1',
  ])
})

test.each<PathMatch['type']>(['Exact', 'RegularExpression'])('a prefix rewrite of a match of type %s fails', async (type) => {
  const { response, isForwarded } = await send({ path: { type: 'ReplacePrefixMatch', value: '/' } }, { type, value: '/a/b' })
  expect([response.status, await response.text(), isForwarded]).toEqual([500, 'failed to apply filters: ReplacePrefixMatch needs a PathPrefix match', false])
})
