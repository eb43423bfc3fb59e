import { RE2JS } from 're2js'
import { describe, expect, test } from '@jest/globals'
import { fc } from '../property-testing.ts'
import { toLinearPrefixSource } from './linear.ts'
import { compileSearch, isRegexError } from './search.ts'
import type { Search } from './search.ts'

function search(pattern: string): Search {
  const result = compileSearch(pattern)
  if (isRegexError(result)) throw new Error(result.error)
  return result
}

describe('compileSearch', () => {
  test.each([
    ['b', 'abc', true],
    ['^b', 'abc', false],
    ['c$', 'abc', true],
    ['b$', 'abc', false],
    ['^a|c$', 'xbc', true],
    ['^/api/v[0-9]+/', '/api/v12/users', true],
    ['[0-9]{3}', 'a123', true],
    ['a.c', 'a\nc', false],
    ['(?i)BEARER', 'x bearer y', true],
    ['', 'anything', true],
    ['a*', '', true],
  ])('finds %s in %j: %s', (pattern, text, isFound) => {
    expect(search(pattern).test(text)).toBe(isFound)
  })

  test.each([
    ['replaces the first match only', 'a', 'banana', 'o', 'bonana'],
    ['inserts groups', '(\\w)(\\w)', 'abcd', '$2${1}-', 'ba-cd'],
    ['inserts named groups', '(?P<x>b)', 'abc', '<${x}>', 'a<b>c'],
    ['inserts nothing for groups that did not match or do not exist', '(x)|b', 'abc', '[$1$7]', 'a[]c'],
    ['writes a dollar sign for two of them', 'b', 'abc', '$$1', 'a$1c'],
    ['returns a text without match unchanged', 'z', 'abc', 'y', 'abc'],
  ])('replaceFirst %s', (_, pattern, text, replacement, result) => {
    expect(search(pattern).replaceFirst(text, replacement)).toBe(result)
  })

  test.each(['(', '(?=a)', '(a)\\1', 'a'.repeat(5000), 'a{1000}'.repeat(36), `(${'a'.repeat(400)}){900}`])('rejects %.20s', (pattern) => {
    expect(compileSearch(pattern)).toHaveProperty('error')
  })

  test('runs only anchored or short patterns on the native engine', () => {
    expect(toLinearPrefixSource('^/a[0-9]+/b')).toBeDefined()
    expect(toLinearPrefixSource('[0-9]{3}x')).toBeDefined()
    expect(toLinearPrefixSource('[0-9]+x')).toBeUndefined()
    expect(toLinearPrefixSource('^a|[0-9]+x')).toBeUndefined()
    expect(toLinearPrefixSource('^(a+)+$')).toBeUndefined()
    expect(toLinearPrefixSource('[0-9]{300}')).toBeUndefined()
  })

  test('property: finds the same as RE2', () => {
    const piece = fc.constantFrom('a', 'b', '[ab]', '[^a]', '.', 'a+', 'b*', '[ab]{2}', 'a?', '(?:a|b)', '(ab|ba)', '\\.', '\\d')
    const branch = fc
      .tuple(fc.constantFrom('', '^'), fc.array(piece, { maxLength: 4 }), fc.constantFrom('', '$'))
      .map(([start, pieces, end]) => start + pieces.join('') + end)
    const pattern = fc.array(branch, { minLength: 1, maxLength: 3 }).map((branches) => branches.join('|'))
    fc.assert(
      fc.property(pattern, fc.stringMatching(/^[ab.\n1]{0,8}$/), (source, text) => {
        expect(search(source).test(text)).toBe(RE2JS.compile(source).matcher(text).find())
      }),
      { numRuns: 2000 },
    )
  })
})
