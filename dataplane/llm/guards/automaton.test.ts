import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { RE2JS } from 're2js'
import { Automaton, MatchFront } from './automaton.ts'

/** What `safe` is after each piece. */
function follow(pattern: string, ...pieces: string[]): number[] {
  const front = new MatchFront(new Automaton(pattern))
  return pieces.map((piece) => {
    front.push(piece)
    return front.safe
  })
}

describe('how much of a text is decided', () => {
  test.each<[sentence: string, pattern: string, pieces: string[], safe: number[]]>([
    ['all of it, where nothing can begin', 'abc', ['xyz'], [3]],
    ['up to where a match may have begun', 'abc', ['xxa', 'b', 'x'], [2, 2, 5]],
    ['all of it, once the match is complete', 'abc', ['xab', 'c'], [1, 4]],
    ['not the match that may grow', 'a[0-9]+', ['xa1', '2', ' '], [1, 1, 5]],
    ['not a match that its end has to confirm', String.raw`\b\d{3}\b`, ['123', '4', ' '], [0, 4, 5]],
    ['the later of two beginnings, when the earlier came to nothing', 'aab', ['aaa'], [1]],
    ['not what may be the first half of a character', '😀x', ['a\ud83d', '\ude00', 'x'], [1, 1, 4]],
    ['nothing, where a match may go on for ever', '(?s)a.*z', ['xa', 'bcz', 'd'], [1, 1, 1]],
    ['without regard to case, where the pattern has none', '(?i)abc', ['xAB', 'C'], [1, 4]],
  ])('%s', (_, pattern, pieces, safe) => {
    expect(follow(pattern, ...pieces)).toEqual(safe)
  })

  const patterns = ['a+b', 'ab|abcd', String.raw`\ba\d{2,4}\b`, '(ab)*c', '^b', 'a$', '[ab]{3}', 'b.?a', String.raw`a\B`, '(?m)^a|b$', 'a??b']
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '1', ' ', '\n'), maxLength: 12 })

  test('no match of a whole text begins before `safe` that is not one of the part before', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), text, text, (pattern, head, tail) => {
        const front = new MatchFront(new Automaton(pattern))
        front.push(head)
        const { safe } = front
        const beginning = (whole: string) => spans(pattern, whole).filter(([start]) => start < safe)
        expect(beginning(head + tail)).toEqual(beginning(head))
      }),
      { numRuns: 800 },
    )
  })

  test('a match is never overlooked', () => {
    fc.assert(
      fc.property(fc.constantFrom(...patterns), fc.array(text, { maxLength: 4 }), (pattern, pieces) => {
        const front = new MatchFront(new Automaton(pattern))
        for (const piece of pieces) front.push(piece)
        if (spans(pattern, pieces.join('')).length > 0) expect(front.hasMatch).toBe(true)
      }),
      { numRuns: 800 },
    )
  })

  test('what other texts have gone through it changes nothing, also when there was more than is kept', () => {
    const pattern = 'a[ab]{1,60}c'
    const used = new Automaton(pattern)
    let noise = 1
    const makeNoise = (): string => Array.from({ length: 400 }, () => ((noise = (noise * 48_271) % 2_147_483_647) % 3 === 0 ? 'b' : 'a')).join('')
    for (let round = 0; round < 30; round++) {
      const long = makeNoise()
      const [old, fresh] = [new MatchFront(used), new MatchFront(new Automaton(pattern))]
      const said = [old, fresh].map((front) => ['c', long, 'c', 'a', 'd'].map((piece) => (front.push(piece), [front.safe, front.hasMatch])))
      expect(said[0]).toEqual(said[1])
    }
  })
})

function spans(pattern: string, long: string): [number, number][] {
  const matcher = RE2JS.compile(pattern).matcher(long)
  const found: [number, number][] = []
  while (matcher.find()) if (matcher.end() > matcher.start()) found.push([matcher.start(), matcher.end()])
  return found
}
