import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { ClientEvent, TextDelta } from '../common/types.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { MaskingStream } from './masking.ts'
import { compilePatterns, type Patterns } from './patterns.ts'
import { StreamRejection } from './types.ts'

function compile(...args: Parameters<typeof compilePatterns>): Patterns {
  const patterns = compilePatterns(...args)
  if (typeof patterns === 'string') throw new Error(patterns)
  return patterns
}

interface TestEvent extends ClientEvent {
  readonly name: string
}

/** An event with one piece of text, or without text. */
function event(
  name: string,
  text?: string,
  { segment = '0', kind = 'text', isWhole = false, closes = [] as string[] }: Partial<TextDelta> & { closes?: string[] } = {},
): TestEvent {
  const delta = { segment, kind, isWhole, text: text ?? '', replace: (changed: string) => void (delta.text = changed) }
  return { name, deltas: text === undefined ? [] : [delta], others: [], closes, toBytes: () => Buffer.from(delta.text) }
}

const textOf = (events: readonly ClientEvent[]): string => events.flatMap(({ deltas }) => deltas.map(({ text }) => text)).join('')
/** Starts a stream whose work runs at once. */
function start(patterns: Patterns) {
  const stream = new MaskingStream(patterns, () => {})
  return { push: (events: readonly ClientEvent[]) => runSync(stream.push(events)), end: () => runSync(stream.end()) }
}

describe('a masked stream', () => {
  const patterns = compile({ builtins: ['Ssn', 'Email', 'CreditCard', 'PhoneNumber', 'CaSin'], matches: ['secret(?: plan)?', String.raw`(?m)^top\b`] })
  const texts = [
    'my ssn is 123-45-6789, and 123-45-67890 is none',
    'write to a.b@example.com. Then secret plan, secret planet, secret',
    'card 4111 1111 1111 1111 top\ntop secret 046 454 286 (650) 253-0000',
    '123-45-6789123-45-6789 x@y x@y.z@a.b 12345-6789',
    '😀secret😀 4111-1111-1111-1112',
  ]

  test.each(texts)('that is split at any two positions yields the masked text: %s', (text) => {
    const expected = runSync(patterns.mask(text))
    for (let first = 0; first <= text.length; first++)
      for (let second = first; second <= Math.min(text.length, first + 16); second++) {
        const stream = start(patterns)
        const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)].filter((piece) => piece !== '')
        const out = pieces.flatMap((piece) => [...stream.push([event('d', piece)])])
        expect(textOf([...out, ...stream.end()])).toBe(expected)
      }
  })

  test.each(texts)('of single characters always yields a prefix of the masked text: %s', (text) => {
    const expected = runSync(patterns.mask(text))
    const stream = start(patterns)
    let received = ''
    for (const character of text) {
      received += textOf(stream.push([event('d', character)]))
      expect(expected.startsWith(received)).toBe(true)
    }
    expect(received + textOf(stream.end())).toBe(expected)
  })

  test('of a random text and pattern, split at random, yields the masked text', () => {
    const sources = ['a+b', 'ab|abcd', String.raw`\ba\d{2,4}\b`, '(ab)*c', '^b', 'a$', '[ab]{3}', 'b.?a', String.raw`a\B`, '(?m)^a|b$', '(?s)a.*c']
    const unit = fc.constantFrom('a', 'b', 'c', '1', ' ', '\n')
    fc.assert(
      fc.property(fc.subarray(sources, { minLength: 1 }), fc.array(fc.string({ unit, minLength: 1, maxLength: 6 }), { maxLength: 8 }), (matches, pieces) => {
        const random = compile({ matches })
        const stream = start(random)
        const out = pieces.flatMap((piece) => [...stream.push([event('d', piece)])])
        expect(textOf([...out, ...stream.end()])).toBe(runSync(random.mask(pieces.join(''))))
      }),
      { numRuns: 800 },
    )
  })

  test('releases decided text immediately', () => {
    const stream = start(compile({ matches: ['secret'] }))
    expect(textOf(stream.push([event('1', 'nothing here ')]))).toBe('nothing here ')
    expect(textOf(stream.push([event('2', 'but a sec')]))).toBe('')
    expect(textOf(stream.push([event('3', 'ond ')]))).toBe('but a second ')
  })

  test('keeps the order of events behind a held back one', () => {
    const stream = start(compile({ matches: ['secret'] }))
    const names = (events: readonly ClientEvent[]): string[] => events.map((each) => (each as TestEvent).name)
    expect(names(stream.push([event('start'), event('a', 'sec'), event('ping')]))).toEqual(['start'])
    expect(names(stream.push([event('b', 'x'), event('stop', undefined, { closes: ['0'] })]))).toEqual(['a', 'ping', 'b', 'stop'])
  })

  test('releases the text of a closed segment', () => {
    const stream = start(compile({ matches: ['secret'] }))
    expect(textOf(stream.push([event('a', 'sec'), event('stop', undefined, { closes: ['0'] })]))).toBe('sec')
  })

  test('releases all segments with the prefix of a closing', () => {
    const stream = start(compile({ matches: ['secret'] }))
    const events = [event('a', 'sec', { segment: '0:content' }), event('b', 'sec', { segment: '1:content' }), event('stop', undefined, { closes: ['0:*'] })]
    expect(textOf(stream.push(events))).toBe('sec')
    expect(textOf(stream.push([event('stop', undefined, { closes: ['*'] })]))).toBe('sec')
  })

  test('masks segments independently of each other', () => {
    const stream = start(compile({ matches: ['secret'] }))
    const out = [...stream.push([event('a', 'sec', { segment: '0' }), event('b', 'ret', { segment: '1' })]), ...stream.end()]
    expect(textOf(out)).toBe('secret')
  })

  test('holds tool input back until it is complete, and keeps it JSON', () => {
    const stream = start(compile({ builtins: ['Ssn'] }))
    const tool = { segment: '0:tool:0', kind: 'toolInput' } as const
    expect(textOf(stream.push([event('a', '{"id":1234', tool), event('b', '56789}', tool)]))).toBe('')
    expect(textOf(stream.push([event('stop', undefined, { closes: ['0:*'] })]))).toBe('{"id":"<SSN>"}')
  })

  test('masks an event that repeats the whole text', () => {
    const stream = start(compile({ matches: ['secret'] }))
    const out = stream.push([event('a', 'the sec'), event('b', 'ret'), event('done', 'the secret', { isWhole: true, closes: ['0'] })])
    expect(out.map((each) => each.toBytes().toString())).toEqual(['the <masked>', '', 'the <masked>'])
  })

  test('masks reasoning', () => {
    const events = [event('a', 'sec', { kind: 'reasoning' }), event('b', 'ret.', { kind: 'reasoning', closes: ['0'] })]
    expect(textOf(start(compile({ matches: ['secret'] })).push(events))).toBe('<masked>.')
  })

  test.each([
    ['empties a signature behind a text that is masked', 'ret', ''],
    ['keeps a signature behind another text', 'ond', 'signature'],
  ])('%s', (_, rest, expected) => {
    const stream = start(compile({ matches: ['secret'] }))
    const copy = event('signed', 'signature', { kind: 'copy' })
    stream.push([event('a', 'sec', { kind: 'reasoning' }), event('b', rest, { kind: 'reasoning' }), copy])
    stream.end()
    expect(copy.toBytes().toString()).toBe(expected)
  })

  test('ends with a rejection if too much text would be held back', () => {
    const stream = start(compile({ matches: ['(?s)a.*z'] }))
    expect(() => {
      for (let i = 0; i < 20; i++) stream.push([event('a', 'a'.repeat(100_000))])
    }).toThrow(StreamRejection)
  })

  test('passes a long response completely', () => {
    const stream = start(patterns)
    let received = 0
    for (let i = 0; i < 50_000; i++) received += textOf(stream.push([event('a', 'plain words of text. ')])).length
    received += textOf(stream.end()).length
    expect(received).toBe(1_050_000)
  })
})
