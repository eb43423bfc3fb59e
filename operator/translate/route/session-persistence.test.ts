import { expect, test } from '@jest/globals'
import type { SessionPersistence } from '../../source/gateway-api.ts'
import { readSessionPersistence } from './session-persistence.ts'

test.each<[SessionPersistence, object]>([
  [{ sessionName: 's' }, { type: 'Cookie', name: 's' }],
  [
    { sessionName: 's', type: 'Header' },
    { type: 'Header', name: 's' },
  ],
  [{ cookie: { name: 'c', path: '/a' } }, { type: 'Cookie', name: 'c', path: '/a' }],
  [
    { type: 'Header', header: { name: 'x-session' }, absoluteTimeout: '1h' },
    { type: 'Header', name: 'x-session', absoluteTimeoutMs: 3_600_000 },
  ],
  [
    { sessionName: 's', absoluteTimeout: '1m', cookieConfig: { lifetimeType: 'Permanent' } },
    { type: 'Cookie', name: 's', isPermanent: true, absoluteTimeoutMs: 60_000 },
  ],
  [
    { sessionName: 's', absoluteTimeout: '0s', cookieConfig: { lifetimeType: 'Session' } },
    { type: 'Cookie', name: 's' },
  ],
])('%j is honoured', (field, expected) => expect(readSessionPersistence(field, 'ns/r/0')).toEqual(expected))

test('without a name, rules have names of their own that do not change', () => {
  const nameOf = (rule: string): unknown => Object(readSessionPersistence({}, rule)).name
  expect(nameOf('ns/r/0')).toMatch(/^proxy-session-[\da-f]{8}$/)
  expect(nameOf('ns/r/0')).toBe(nameOf('ns/r/0'))
  expect(nameOf('ns/r/1')).not.toBe(nameOf('ns/r/0'))
})

test.each<[SessionPersistence, RegExp]>([
  [{ sessionName: 'a b' }, /the name "a b"/],
  [{ sessionName: 'a;Domain=x' }, /the name/],
  [{ sessionName: 'a\r\nset-cookie: b' }, /the name/],
  [{ type: 'Header', sessionName: 'Content-Length' }, /has another use/],
  [{ type: 'Header', sessionName: 'Set-Cookie' }, /has another use/],
  [{ type: 'Query' }, /type is "Query"/],
  [{ cookie: { path: '/; Domain=example.com' } }, /cookie.path/],
  [{ cookie: { path: 'a' } }, /cookie.path/],
  [{ absoluteTimeout: 'soon' }, /absoluteTimeout: soon/],
  [{ cookieConfig: { lifetimeType: 'Permanent' } }, /needs absoluteTimeout/],
])('%j has no effect, and the problem is named', (field, problem) => expect(readSessionPersistence(field, 'ns/r/0')).toMatch(problem))
