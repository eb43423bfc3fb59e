import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { normalizeTarget } from './path.ts'

describe('normalizeTarget', () => {
  test.each([
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/b/', '/a/b/'],
    ['//admin', '/admin'],
    ['///a//b//', '/a/b/'],
    ['/./admin', '/admin'],
    ['/x/../admin', '/admin'],
    ['/x/%2e%2E/admin', '/admin'],
    ['/x/.%2e/admin', '/admin'],
    ['/%61dmin', '/admin'],
    ['/a//../b', '/b'],
    ['/a/.', '/a/'],
    ['/a/..', '/'],
    ['/a/b/..', '/a/'],
    ['/../../etc', '/etc'],
    ['/..', '/'],
    ['/%7Euser', '/~user'],
    ['/.well-known/a', '/.well-known/a'],
    ['/a/..b/...', '/a/..b/...'],
    // Not decoded: they would change the segments, or are data.
    ['/admin%2f', '/admin%2f'],
    ['/a%2F..%2fb', '/a%2F..%2fb'],
    ['/a%5c..', '/a%5c..'],
    ['/%252e%252e/a', '/%252e%252e/a'],
    ['/a%20b%3f', '/a%20b%3f'],
    ['/100%', '/100%'],
    ['/%zz/%4', '/%zz/%4'],
    ['/\\admin', '/\\admin'],
    ['/admin;x', '/admin;x'],
    ['/..;/admin', '/..;/admin'],
    // The query is not part of the path.
    ['/a?b=//../%61', '/a?b=//../%61'],
    ['//a?b=//../%61', '/a?b=//../%61'],
    ['/a/?..', '/a/?..'],
    ['*', '*'],
    ['', ''],
  ])('%s becomes %s', (target, expected) => expect(normalizeTarget(target)).toBe(expected))

  test('a normalized target does not change again, and has no dot or empty segment', () => {
    const parts = fc.array(fc.constantFrom('/', '.', '..', '%2e', '%2F', '%61', 'a', ';', '?', '\\'))
    fc.assert(
      fc.property(parts, (list) => {
        const once = normalizeTarget(`/${list.join('')}`)
        expect(once.split('?')[0]).not.toMatch(/\/\/|\/\.\.?(?:\/|$)|%2e|%61/i)
        expect(normalizeTarget(once)).toBe(once)
      }),
    )
  })
})
