import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { hasDuplicateKeys, isObject, listMembers, parseJson, printJson, renderBody, renderBytesInSteps } from './json.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { FormatError, type JsonObject } from './types.ts'

const parseObject = (text: string): JsonObject => {
  const value = parseJson(text)
  if (!isObject(value)) throw new Error(`no object: ${text}`)
  return value
}

const renderBytes = (bytes: Buffer, text: string, before: JsonObject, after: JsonObject): readonly Buffer[] =>
  runSync(renderBytesInSteps(bytes, text, listMembers(text) ?? [], before, after))

describe('numbers', () => {
  test.each(['12345678901234567890', '9007199254740993', '-0.1234567890123456789', '1e400', '123456789012345.123456'])(
    '%s is printed as it was parsed',
    (number) => {
      expect(printJson(parseJson(`{"a":[${number}]}`))).toBe(`{"a":[${number}]}`)
    },
  )

  test.each([
    ['1.0', '1'],
    ['0.7', '0.7'],
    ['1e3', '1000'],
    ['1000000000000000000000', '1e+21'],
    ['9007199254740992', '9007199254740992'],
  ])('%s is parsed as a plain number', (source, printed) => {
    expect(printJson(parseJson(`[${source}, 1111111111111111]`))).toBe(`[${printed},1111111111111111]`)
  })

  test('are detected in short and long texts, of words or of numbers', () => {
    const digits = fc.stringMatching(/^[1-9]\d{0,19}$/)
    const number = fc.tuple(digits, fc.option(digits), fc.option(fc.integer({ min: -400, max: 400 }))).map(([whole, part, power]) => {
      return `${whole}${part === null ? '' : `.${part}`}${power === null ? '' : `e${power}`}`
    })
    fc.assert(
      fc.property(fc.array(number), (numbers) => {
        const text = `[${numbers.join(', ')}]`
        const printed = printJson(parseJson(text))
        expect(printJson(parseJson(text + ' '.repeat(2048)))).toBe(printed)
        expect(printJson(parseJson(`[${'1234567,'.repeat(500)}${text}]`))).toBe(`[${'1234567,'.repeat(500)}${printed}]`)
      }),
      { numRuns: 300 },
    )
  })

  test('invalid JSON, and JSON beyond a limit, throw a FormatError that states the limit', () => {
    expect(() => parseJson('{')).toThrow('failed to parse request')
    const deep = `${'['.repeat(200_000)}1234567890123456789${']'.repeat(200_000)}`
    expect(() => parseJson(deep)).toThrow(new FormatError('invalid', 'failed to parse request: it nests deeper than 512 levels (frontend.http.maxJsonDepth)'))
  })
})

describe('edits', () => {
  test.each([
    ['replace a member and keep the bytes of others', '{ "a" : 1.0,\n "model":"x", "z":[1, 2.50] }', { model: 'y' }, '{"a" : 1.0,"model":"y","z":[1, 2.50] }'],
    ['add a new member at the end', '{"a":1}', { b: [true] }, '{"a":1,"b":[true]}'],
    ['add a member to an empty object', '{ }', { b: 1 }, '{"b":1}'],
    ['remove every duplicate of an edited key', '{"model":"a","x":1,"model":"b"}', { model: 'c' }, '{"model":"c","x":1}'],
    [
      'keep keys and strings with quotes, backslashes and braces',
      '{"a\\"}":"\\\\","b":"}\\"{,","c":{"d":["]"]}}',
      { b: 2 },
      '{"a\\"}":"\\\\","b":2,"c":{"d":["]"]}}',
    ],
    ['recognize an escaped key', '{"mod\\u0065l":"a"}', { model: 'c' }, '{"model":"c"}'],
    ['remove a member', '{"a":1,"b":2,"c":3}', { b: undefined }, '{"a":1,"c":3}'],
  ])('of a body %s', (_name, text, edit, expected) => {
    const before = parseObject(text)
    expect(renderBody(text, before, { ...before, ...edit })).toBe(expected)
  })

  test('without changes return the same text', () => {
    const text = ' {"b" : 1 } '
    const before = parseObject(text)
    expect(renderBody(text, before, before)).toBe(text)
  })

  test('of random objects parse to the edited object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.jsonValue(), fc.nat(3), (object, key, value, indent) => {
        const text = JSON.stringify(object, null, indent)
        const before = parseObject(text)
        const after: Record<string, unknown> = { ...before }
        Object.defineProperty(after, key, { value, enumerable: true, configurable: true, writable: true })
        const rendered = renderBody(text, before, after)
        expect(JSON.parse(rendered)).toEqual(JSON.parse(JSON.stringify(after)))
        expect(Buffer.concat(renderBytes(Buffer.from(text), text, before, after)).toString()).toBe(rendered)
      }),
      { numRuns: 500 },
    )
  })

  test('of bytes that are not UTF-8 print the decoded text', () => {
    const bytes = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('","b":1}')])
    const text = bytes.toString()
    const before = parseObject(text)
    expect(renderBytes(bytes, text, before, { ...before, b: 2 })).toEqual([Buffer.from('{"a":"\ufffd","b":2}')])
  })

  test('hasDuplicateKeys finds duplicate top-level keys', () => {
    const hasDuplicates = (text: string): boolean => hasDuplicateKeys(listMembers(text) ?? [], parseObject(text))
    expect(hasDuplicates('{"a":1,"b":{"a":1}}')).toBe(false)
    expect(hasDuplicates('{"a":1,"\\u0061":2}')).toBe(true)
    expect(hasDuplicates('{"__proto__":1,"b":"{\\"b\\":1}"}')).toBe(false)
    expect(hasDuplicates('{"__proto__":1,"b":2,"__proto__":{}}')).toBe(true)
  })
})
