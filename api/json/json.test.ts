import { describe, expect, test } from '@jest/globals'
import { fc } from '../property-testing.ts'
import { doubles, isJsonObject, isRawNumber, JsonLimitError, parseJson, parseJsonInSteps, printJsonInSteps, verbatimNumbers } from './index.ts'
import { defaultJsonLimits } from './limits.ts'
import { JsonReader } from './reader.ts'

/** Runs all steps, and counts the pauses. */
function run<T>(work: Generator<undefined, T, undefined>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = work.next()
    if (step.done === true) return { value: step.value, pauses }
  }
}

const readSlowly = (text: string, numbers = doubles): unknown => run(new JsonReader(text, defaultJsonLimits, numbers).read()).value
const nest = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
const list = (elements: number): string => `[${Array(elements).fill('1').join(',')}]`
const object = (members: number): string => `{${Array.from({ length: members }, (_, i) => `"k${i}":${i}`).join(',')}}`

function attempt(parse: () => unknown): unknown {
  try {
    return { value: parse() }
  } catch (error) {
    return error instanceof SyntaxError ? 'a syntax error' : error
  }
}

describe('limits of JSON', () => {
  const parsers: [string, (text: string) => unknown][] = [
    ['at once', (text) => parseJson(text)],
    ['in steps', (text) => run(parseJsonInSteps(text)).value],
    ['by the reader', (text) => readSlowly(text)],
  ]
  test.each(parsers)('512 levels are parsed and 513 are rejected %s', (_, parse) => {
    expect(JSON.stringify(parse(nest(512)))).toBe(nest(512))
    expect(() => parse(nest(513))).toThrow(new JsonLimitError('it nests deeper than 512 levels (frontend.http.maxJsonDepth)'))
    expect(() => parse(`{"a":${nest(512)}}`)).toThrow('it nests deeper than 512 levels (frontend.http.maxJsonDepth)')
  })

  test.each(parsers)('100,000 members are parsed and one more is rejected %s', (_, parse) => {
    expect(parse(list(100_000))).toHaveLength(100_000)
    expect(() => parse(list(100_001))).toThrow('it has more than 100000 members and elements (frontend.http.maxJsonMembers)')
    expect(Object.keys(parse(object(100_000)) as object)).toHaveLength(100_000)
    expect(() => parse(object(100_001))).toThrow(JsonLimitError)
    // 50,000 elements, each with one member.
    expect(parse(`[${Array(50_000).fill('{"a":1}').join(',')}]`)).toHaveLength(50_000)
    expect(() => parse(`[${Array(50_001).fill('{"a":1}').join(',')}]`)).toThrow(JsonLimitError)
    expect(parse(`[${Array(100_000).fill('[ ]').join(',')}]`)).toHaveLength(100_000)
  })

  test.each(parsers)('a number of more than 65,536 characters is rejected %s', (_, parse) => {
    expect(() => parse(`[${'1'.repeat(65_537)}]`)).toThrow('it has a number of more than 65536 characters')
  })

  test('configured limits replace the defaults', () => {
    const limits = { maxDepth: 2, maxMembers: 3 }
    expect(parseJson('[[1,2]]', { limits })).toEqual([[1, 2]])
    expect(() => parseJson('[[[1]]]', { limits })).toThrow('it nests deeper than 2 levels')
    expect(() => parseJson('[1,2,3,4]', { limits })).toThrow('it has more than 3 members and elements')
    expect(() => run(parseJsonInSteps('[1,2,3,4]', { limits }))).toThrow('it has more than 3 members and elements')
    expect(parseJson(nest(600), { limits: { maxDepth: 600, maxMembers: 1000 } })).toHaveLength(1)
  })

  test('brackets, commas and digits in strings do not count', () => {
    const text = JSON.stringify({ a: '['.repeat(600), b: ','.repeat(100_001), c: '\\"'.repeat(1000), d: '1'.repeat(70_000) })
    expect(parseJson(text)).toEqual(JSON.parse(text))
    expect(run(parseJsonInSteps(text)).value).toEqual(JSON.parse(text))
  })
})

describe('the JSON reader', () => {
  test('has the results of JSON.parse for any JSON', () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('', ' ', '\n\t\r '), (text, space) => {
        const spaced = space === '' ? text : JSON.stringify(JSON.parse(text), undefined, 2)
        expect(readSlowly(spaced)).toEqual(JSON.parse(spaced))
        expect(JSON.stringify(readSlowly(spaced))).toBe(JSON.stringify(JSON.parse(spaced)))
      }),
    )
  })

  test('accepts exactly what JSON.parse accepts', () => {
    const token = fc.constantFrom(
      ...'{}[],:"\\ -+.eE0123456789'.split(''),
      'true',
      'false',
      'null',
      'tru',
      '"a"',
      '"\\u00e9"',
      '\\u',
      '\u0000',
      '\n',
      '\u00a0',
      '"',
      '0',
      '-0',
      '1e5',
      '\ufeff',
    )
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
        const text = tokens.join('')
        expect(attempt(() => readSlowly(text))).toEqual(attempt(() => JSON.parse(text)))
      }),
      { numRuns: 5000 },
    )
  })

  test.each([
    '',
    ' ',
    '{',
    '[',
    '[1',
    '[1,',
    '[1,]',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '"',
    '"a',
    '"\\',
    '"\\u00',
    '"\\u00"',
    '01',
    '1.',
    '-',
    '+1',
    '1e',
    '.5',
    'nul',
    'truee',
    '1 2',
    '[1 2]',
    '{1:2}',
    '"\n"',
    '"\\x"',
    "'a'",
    'NaN',
    '{"a" 1}',
  ])('%j is rejected', (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect(() => readSlowly(text)).toThrow(SyntaxError)
  })

  test('a member __proto__ is an own member', () => {
    const value = readSlowly('{"__proto__":{"a":1},"b":2}') as object
    expect(Object.keys(value)).toEqual(['__proto__', 'b'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  test('the last of several members of one name counts', () => expect(readSlowly('{"a":1,"b":2,"a":3}')).toEqual({ a: 3, b: 2 }))

  test.each(['x', '\\n', '\\u00e9', '\\"', '\\\\', 'é', '\ud83d\ude00', '\\ud83d\\ude00', 'a\\nb'])('a long string of %s is read in pieces', (unit) => {
    const text = `["${unit.repeat(200_000)}","b"]`
    const { value, pauses } = run(new JsonReader(text, defaultJsonLimits, doubles).read())
    expect((value as string[]).map((item) => item === (JSON.parse(text) as string[])[0] || item)).toEqual([true, 'b'])
    expect(pauses).toBeGreaterThanOrEqual(Math.floor(text.length / 40_000))
  })

  test('text with many members is read in many steps', () => {
    expect(run(parseJsonInSteps(object(100_000))).pauses).toBeGreaterThan(20)
    expect(run(parseJsonInSteps(`[${' '.repeat(3_000_000)}]`)).value).toEqual([])
  })
})

describe('numbers in JSON', () => {
  test.each([
    ['9007199254740993', 'exact'],
    ['-9223372036854775808', 'exact'],
    ['18446744073709551615', 'exact'],
    ['0.12345678901234567890123', 'exact'],
    ['1e400', 'exact'],
    ['1.0', 'spelling'],
    ['-0', 'spelling'],
    ['1E5', 'spelling'],
    ['0.1', 'none'],
    ['1234567890.5', 'none'],
    ['9007199254740992', 'none'],
  ])('%s is kept (%s)', (source, kept) => {
    for (const text of [source, `[${source}]`, `{"a":${source}}`, `{"a":[1,${source} ]}`]) {
      const exact = parseJson(text)
      if (kept === 'exact') expect(JSON.stringify(exact)).toBe(text.replace(' ', ''))
      else expect(exact).toEqual(JSON.parse(text))
      expect(JSON.stringify(parseJson(text, { numbers: verbatimNumbers }))).toBe(text.replace(' ', ''))
      expect(parseJson(text, { numbers: doubles })).toEqual(JSON.parse(text))
      expect(JSON.stringify(run(parseJsonInSteps(text)).value)).toBe(JSON.stringify(exact))
    }
  })

  test.each(['["2026-07-28",-0]', '[1,-0]', '{"a-0":-0}', '{"2-0":-0.0}', ' -0', '["2.0",-00]'])('%s is kept or rejected with dates and versions', (text) => {
    const verbatim = attempt(() => JSON.stringify(parseJson(text, { numbers: verbatimNumbers })))
    expect(verbatim).toEqual(text.includes('-00') ? 'a syntax error' : { value: text.trim() })
  })

  test('a raw number is no object', () => {
    const value = parseJson('9007199254740993')
    expect(isRawNumber(value)).toBe(true)
    expect(isJsonObject(value)).toBe(false)
    expect(isRawNumber({ rawJSON: '1' })).toBe(false)
    expect(isJsonObject({ rawJSON: '1' })).toBe(true)
  })

  test('numbers of long text keep their digits', () => {
    const text = `{"a":"${'x'.repeat(1_100_000)}","b":9007199254740993}`
    expect(JSON.stringify(run(parseJsonInSteps(text)).value)).toBe(text)
  })
})

describe('printJsonInSteps', () => {
  const print = (value: unknown): string => run(printJsonInSteps(value)).value.join('')
  const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index))
  const members = (count: number, make: (index: number) => unknown): object => Object.fromEntries(many(count, (index) => [`k${index}`, make(index)]))

  test('prints what JSON.stringify prints', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, key) => {
        const large = ['x'.repeat(300_000), value, many(2100, () => value), members(2100, () => value), { ...members(2100, () => 1), [key]: value }]
        const { value: pieces, pauses } = run(printJsonInSteps(large))
        expect(pieces.join('') === JSON.stringify(large)).toBe(true)
        expect(pauses).toBeGreaterThan(3)
        expect(run(printJsonInSteps(value)).value).toEqual([JSON.stringify(value)])
      }),
      { numRuns: 30 },
    )
  })

  test.each<[what: string, value: unknown]>([
    [
      'members and items without a value',
      { a: undefined, b: many(3000, () => undefined), c: members(3000, () => undefined), d: members(3000, (i) => (i % 2 === 0 ? i : undefined)) },
    ],
    ['raw numbers', [parseJson('9007199254740993'), many(3000, (i) => parseJson(`9007199254740993${i}`)), parseJson(`1${'0'.repeat(65_000)}1`)]],
    ['a large raw number', many(10, () => parseJson(`1${'0'.repeat(65_000)}1`))],
    ['members __proto__', JSON.parse(`{"a":${object(3000)},"__proto__":{"__proto__":${list(3000)}},${object(3000).slice(1)}`)],
    ['integer keys', Object.fromEntries(many(5000, (i) => [String(9000 - i), { [5000 - i]: 1, a: i }]))],
    [
      'a long key',
      { a: 1, [`"${'\n\ud83d\ude00'.repeat(100_000)}`]: 2, ['x'.repeat(300_000)]: members(3000, () => []), ['y'.repeat(300_000)]: undefined, b: 3 },
    ],
    ['empty and large values', many(10, (i) => [{}, [], '', null, members(3000, () => ({})), '\ud83d\ude00'.repeat(70_000 * (i % 3)), many(3000, () => [])])],
    ['surrogates at the ends of pieces', { c: '\ud83d\ude00'.repeat(150_000), d: `x${'\ud83d\ude00'.repeat(150_000)}`, e: '\ud83d' }],
    ['large values within large values', { a: many(4, () => ({ b: many(4, () => ({ c: many(3000, (i) => ({ i })) })), d: 1 })), e: true }],
  ])('prints %s as JSON.stringify does', (_, value) => expect(print(value) === JSON.stringify(value)).toBe(true))

  test.each<[what: string, value: unknown, values: number]>([
    ['numbers', many(20_000, (i) => i), 20_000],
    ['short strings', many(10_000, (i) => `s${i}`), 10_000],
    ['objects', many(4000, (i) => ({ a: i, b: 'x', c: true, name: 'ab' })), 16_000],
    ['members', members(60_000, (i) => i), 60_000],
    ['lists within an object', members(10_000, (i) => [i, [i]]), 20_000],
  ])('prints many small values in small pieces: %s', (_, value, values) => {
    const { value: pieces, pauses } = run(printJsonInSteps(value))
    expect(Math.max(...pieces.map((piece) => piece.split(',').length))).toBeLessThan(1000)
    expect(pauses).toBeGreaterThan(values / 1000)
    expect(pauses).toBeLessThan(values / 100)
  })

  test('prints strings, keys and escapes in pieces of at most 65,536 characters', () => {
    const text = '\u0001'.repeat(1_000_000)
    for (const value of [text, { [text]: 1 }, [[text]]]) {
      const { value: pieces } = run(printJsonInSteps(value))
      expect(pieces.join('') === JSON.stringify(value)).toBe(true)
      expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(65_600 * 6)
    }
  })

  test('prints values of any depth, in few pieces', () => {
    const deep = JSON.parse(nest(5000)) as unknown
    const named = JSON.parse(`${'{"a":[1,'.repeat(2500)}2${']}'.repeat(2500)}`) as unknown
    expect(print(deep)).toBe(nest(5000))
    expect(print(named)).toBe(`${'{"a":[1,'.repeat(2500)}2${']}'.repeat(2500)}`)
    expect(run(printJsonInSteps(deep)).pauses).toBeLessThan(200)
  })

  test('reads the keys of a large object once, and those of small ones a few times at any depth', () => {
    const reads = new Map<object, number>()
    const watch = (one: object): object =>
      new Proxy(one, {
        ownKeys: (target) => {
          reads.set(one, (reads.get(one) ?? 0) + 1)
          return Reflect.ownKeys(target)
        },
      })
    const wide = members(3000, (i) => i)
    const small = many(400, (i) => ({ i }))
    const value = small.reduce<unknown>((inner, one) => ({ a: watch(one), inner, b: [] }), watch(wide))
    const printed = print(value)
    expect(reads.get(wide)).toBe(1)
    // Two counts, and JSON.stringify.
    expect(Math.max(...small.map((one) => reads.get(one) ?? 0))).toBeLessThanOrEqual(3)
    expect(printed === JSON.stringify(value)).toBe(true)
  })
})
