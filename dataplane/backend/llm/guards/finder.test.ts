import { describe, expect, test } from '@jest/globals'
import { RE2JS } from 're2js'
import { fc } from '#api/property-testing.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { Finder } from './finder.ts'

function find(finder: Finder, text: string, from = 0): [number, number][] {
  const found: [number, number][] = []
  runSync(finder.find(text, from, (start, end) => found.push([start, end]) > 0))
  return found
}

function findByRe2(pattern: string, text: string): [number, number][] {
  const matcher = RE2JS.compile(pattern).matcher(text)
  const found: [number, number][] = []
  while (matcher.find()) if (matcher.end() > matcher.start()) found.push([matcher.start(), matcher.end()])
  return found
}

const patterns = (
  'a+b ab|abcd \\ba\\d{2,4}\\b (ab)*c ^b a$ [ab]{3} b.?a a\\B (?m)^a|b$ (?s)a.*c a.*b|a (|a)*b (a|ab)(c|bcd) a??b (?:a*)*c x* ' +
  '(a*?)(b*) (?i)AB? 😀|a (?U)a+b [^a]b \\Bb|\\b1 a{2,3}?b? (?:|ab|b)+c'
).split(' ')

describe('a finder', () => {
  test('finds the matches that RE2 finds', () => {
    const finders = new Map(patterns.map((pattern) => [pattern, new Finder(pattern)]))
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', '😀', '\ud83d'), maxLength: 14 })
    fc.assert(
      fc.property(fc.constantFrom(...patterns), text, (pattern, searched) => {
        const finder = finders.get(pattern)
        expect(finder && find(finder, searched)).toEqual(findByRe2(pattern, searched))
      }),
      { numRuns: 3000 },
    )
  })

  test.each([
    ['a.*b', `xa${'c'.repeat(5000)}b${'c'.repeat(5000)}`],
    ['[ab]{3}', 'abc'.repeat(3000) + 'ab'.repeat(3000)],
    ['😀+', `${'😀'.repeat(1023)}x${'😀'.repeat(3000)}`],
    [String.raw`\b\d{9}\b`, '123456789 1234567890 '.repeat(700)],
  ])('finds matches of %s across blocks of a long text', (pattern, text) => {
    expect(find(new Finder(pattern), text)).toEqual(findByRe2(pattern, text))
  })

  test('starts where it is told to, and sees the character before', () => {
    const finder = new Finder(String.raw`\bab`)
    expect(find(finder, 'ab xab ab', 4)).toEqual([[7, 9]])
  })

  test('searches on from the next character after a discarded match', () => {
    const found: number[] = []
    const onMatch = (start: number): boolean => found.push(start) > 0
    runSync(new Finder('aa').find('aaab', 0, onMatch, (_, start, end) => (start === 0 ? undefined : end)))
    expect(found).toEqual([1])
  })

  test.each([
    ['a.*b|a', 'a'],
    ['(?s)a.*b', 'a'],
    ['(a*)*b', 'a'],
    ['(a|b)*a(a|b){8}c', 'ab'],
    ['[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\\.[A-Za-z0-9.-]+', 'a@b.c '],
  ])('of %s takes steps in proportion to the length of the text', (pattern, unit) => {
    const finder = new Finder(pattern)
    const countSteps = (length: number): number => {
      let steps = 1
      const work = finder.find(unit.repeat(length / unit.length), 0, () => true)
      while (work.next().done !== true) steps++
      return steps
    }
    countSteps(50_000)
    expect(countSteps(400_000) / countSteps(100_000)).toBeLessThan(5)
  })
})
