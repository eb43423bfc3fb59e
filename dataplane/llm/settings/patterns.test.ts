import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { createNameTable } from './patterns.ts'

test.each<[string, Record<string, string>, string, string | undefined]>([
  ['the exact name first', { 'a*': 'pattern', ab: 'exact' }, 'ab', 'exact'],
  ['then the longest pattern', { 'a*': 'short', 'ab*': 'long', '*': 'any' }, 'abc', 'long'],
  ['a star may be empty', { 'gpt*-4': 'x' }, 'gpt-4', 'x'],
  ['pieces do not overlap', { 'ab*ba': 'x' }, 'aba', undefined],
  ['several stars', { '*-4*-mini': 'x' }, 'gpt-4o-mini', 'x'],
  ['pieces in their order', { '*b*a*': 'x' }, 'ab', undefined],
  ['nothing fits', { a: 'x' }, 'b', undefined],
  ['names of objects are no names', {}, '__proto__', undefined],
])('%s', (_, table, name, expected) => expect(createNameTable(table)(name)).toBe(expected))

test('a pattern fits what the regular expression of it fits', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 })
  fc.assert(
    fc.property(text, name, (pattern, model) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(model)
      expect(createNameTable({ [pattern]: true })(model) === true).toBe(expected)
    }),
  )
})
