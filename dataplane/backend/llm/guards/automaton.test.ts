import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { RE2JS } from 're2js'
import { Automaton, MatchFront } from './automaton.ts'

/** `safe` after each piece of the text. */
function follow(pattern: string, ...pieces: string[]): number[] {
  const front = new MatchFront(new Automaton(pattern))
  return pieces.map((piece) => {
    front.push(piece)
    return front.safe
  })
}

describe('the decided part of a text', () => {
  test.each<[sentence: string, pattern: string, pieces: string[], safe: number[]]>([
    ['is all of it, if no match can start', 'abc', ['xyz'], [3]],
    ['ends where a match may have started', 'abc', ['xxa', 'b', 'x'], [2, 2, 5]],
    ['is all of it, once the match is complete', 'abc', ['xab', 'c'], [1, 4]],
    ['excludes a match that may grow', 'a[0-9]+', ['xa1', '2', ' '], [1, 1, 5]],
    ['excludes a match that depends on the next character', String.raw`\b\d{3}\b`, ['123', '4', ' '], [0, 4, 5]],
    ['ends at the later of two starts, if the earlier one fails', 'aab', ['aaa'], [1]],
    ['excludes a high surrogate at the end', '😀x', ['a\ud83d', '\ude00', 'x'], [1, 1, 4]],
    ['is empty after the start of an unlimited match', '(?s)a.*z', ['xa', 'bcz', 'd'], [1, 1, 1]],
    ['ignores case for case-insensitive patterns', '(?i)abc', ['xAB', 'C'], [1, 4]],
  ])('%s', (_, pattern, pieces, safe) => {
    expect(follow(pattern, ...pieces)).toEqual(safe)
  })

  const patterns = ['a+b', 'ab|abcd', String.raw`\ba\d{2,4}\b`, '(ab)*c', '^b', 'a$', '[ab]{3}', 'b.?a', String.raw`a\B`, '(?m)^a|b$', 'a??b']
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', ' ', '\n'), maxLength: 12 })

  test('contains every match of the complete text that starts in it', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), text, text, (pattern, head, tail) => {
        const front = new MatchFront(new Automaton(pattern))
        front.push(head)
        const { safe } = front
        const beginning = (full: string) => spans(pattern, full).filter(([start]) => start < safe)
        expect(beginning(head + tail)).toEqual(beginning(head))
      }),
      { numRuns: 800 },
    )
  })

  test('with a match sets hasMatch', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), fc.array(text, { maxLength: 4 }), (pattern, pieces) => {
        const front = new MatchFront(new Automaton(pattern))
        for (const piece of pieces) front.push(piece)
        if (spans(pattern, pieces.join('')).length > 0) expect(front.hasMatch).toBe(true)
      }),
      { numRuns: 800 },
    )
  })

  test('does not depend on earlier texts, also after the cache was cleared', () => {
    const pattern = 'a[ab]{1,60}c'
    const used = new Automaton(pattern)
    let noise = 1
    const makeNoise = (): string => Array.from({ length: 400 }, () => ((noise = (noise * 48_271) % 2_147_483_647) % 3 === 0 ? 'b' : 'a')).join('')
    for (let round = 0; round < 30; round++) {
      const long = makeNoise()
      const [old, fresh] = [new MatchFront(used), new MatchFront(new Automaton(pattern))]
      const results = [old, fresh].map((front) => ['c', long, 'c', 'a', 'd'].map((piece) => (front.push(piece), [front.safe, front.hasMatch])))
      expect(results[0]).toEqual(results[1])
    }
  })
})

function spans(pattern: string, long: string): [number, number][] {
  const matcher = RE2JS.compile(pattern).matcher(long)
  const found: [number, number][] = []
  while (matcher.find()) if (matcher.end() > matcher.start()) found.push([matcher.start(), matcher.end()])
  return found
}
