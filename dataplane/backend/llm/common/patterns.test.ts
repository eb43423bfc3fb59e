import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { createNameTable } from './patterns.ts'

test.each<[string, Record<string, string>, string, string | undefined]>([
  ['prefers the exact name', { 'a*': 'pattern', ab: 'exact' }, 'ab', 'exact'],
  ['prefers the longest pattern', { 'a*': 'short', 'ab*': 'long', '*': 'any' }, 'abc', 'long'],
  ['matches an empty text with a star', { 'gpt*-4': 'x' }, 'gpt-4', 'x'],
  ['requires pieces that do not overlap', { 'ab*ba': 'x' }, 'aba', undefined],
  ['supports several stars', { '*-4*-mini': 'x' }, 'gpt-4o-mini', 'x'],
  ['requires pieces in their order', { '*b*a*': 'x' }, 'ab', undefined],
  ['returns undefined without a match', { a: 'x' }, 'b', undefined],
  ['ignores members of Object.prototype', {}, '__proto__', undefined],
])('a name table %s', (_, table, name, expected) => expect(createNameTable(table)(name)).toBe(expected))

test('a pattern matches the same names as its regular expression', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 })
  fc.assert(
    fc.property(text, name, (pattern, model) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(model)
      expect(createNameTable({ [pattern]: true })(model) === true).toBe(expected)
    }),
  )
})
