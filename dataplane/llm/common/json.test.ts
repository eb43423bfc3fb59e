import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { hasDuplicateKeys, isObject, listMembers, parseJson, printJson, renderBody, renderBytes } from './json.ts'
import type { JsonObject } from './types.ts'

const parseObject = (text: string): JsonObject => {
  const value = parseJson(text)
  if (!isObject(value)) throw new Error(`no object: ${text}`)
  return value
}

describe('numbers', () => {
  test.each(['12345678901234567890', '9007199254740993', '-0.1234567890123456789', '1e400', '123456789012345.123456'])('%s survives', (number) => {
    expect(printJson(parseJson(`{"a":[${number}]}`))).toBe(`{"a":[${number}]}`)
  })

  test.each([
    ['1.0', '1'],
    ['0.7', '0.7'],
    ['1e3', '1000'],
    ['1000000000000000000000', '1e+21'],
    ['9007199254740992', '9007199254740992'],
  ])('%s is a plain number', (source, printed) => {
    expect(printJson(parseJson(`[${source}, 1111111111111111]`))).toBe(`[${printed},1111111111111111]`)
  })

  test('the same in a short text as in a long one, of words or of numbers', () => {
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

  test('what is not JSON, or too deep to print, is a client error', () => {
    expect(() => parseJson('{')).toThrow('failed to parse request')
    const deep = `${'['.repeat(200_000)}1234567890123456789${']'.repeat(200_000)}`
    expect(() => printJson(parseJson(deep))).toThrow('nested too deeply')
  })
})

describe('edits', () => {
  test.each([
    ['an edited member, the rest as written', '{ "a" : 1.0,\n "model":"x", "z":[1, 2.50] }', { model: 'y' }, '{"a" : 1.0,"model":"y","z":[1, 2.50] }'],
    ['a new member goes last', '{"a":1}', { b: [true] }, '{"a":1,"b":[true]}'],
    ['into an empty object', '{ }', { b: 1 }, '{"b":1}'],
    ['every duplicate of an edited key goes', '{"model":"a","x":1,"model":"b"}', { model: 'c' }, '{"model":"c","x":1}'],
    [
      'keys and strings with quotes, backslashes and braces',
      '{"a\\"}":"\\\\","b":"}\\"{,","c":{"d":["]"]}}',
      { b: 2 },
      '{"a\\"}":"\\\\","b":2,"c":{"d":["]"]}}',
    ],
    ['an escaped key is the same key', '{"mod\\u0065l":"a"}', { model: 'c' }, '{"model":"c"}'],
    ['removal', '{"a":1,"b":2,"c":3}', { b: undefined }, '{"a":1,"c":3}'],
  ])('%s', (_name, text, edit, expected) => {
    const before = parseObject(text)
    expect(renderBody(text, before, { ...before, ...edit })).toBe(expected)
  })

  test('unchanged is untouched', () => {
    const text = ' {"b" : 1 } '
    const before = parseObject(text)
    expect(renderBody(text, before, before)).toBe(text)
  })

  test('any edit of any object means what it says', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), fc.jsonValue(), fc.nat(3), (object, key, value, indent) => {
        const text = JSON.stringify(object, null, indent)
        const before = parseObject(text)
        const after: Record<string, unknown> = { ...before }
        Object.defineProperty(after, key, { value, enumerable: true, configurable: true, writable: true })
        const rendered = renderBody(text, before, after)
        expect(JSON.parse(rendered)).toEqual(JSON.parse(JSON.stringify(after)))
        expect(Buffer.concat(renderBytes(Buffer.from(text), text, listMembers(text) ?? [], before, after)).toString()).toBe(rendered)
      }),
      { numRuns: 500 },
    )
  })

  test('bytes that are no UTF-8 become what was read', () => {
    const bytes = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('","b":1}')])
    const text = bytes.toString()
    const before = parseObject(text)
    expect(renderBytes(bytes, text, listMembers(text) ?? [], before, { ...before, b: 2 })).toEqual([Buffer.from('{"a":"\ufffd","b":2}')])
  })

  test('duplicate keys are seen', () => {
    const hasDuplicates = (text: string): boolean => hasDuplicateKeys(listMembers(text) ?? [], parseObject(text))
    expect(hasDuplicates('{"a":1,"b":{"a":1}}')).toBe(false)
    expect(hasDuplicates('{"a":1,"\\u0061":2}')).toBe(true)
    expect(hasDuplicates('{"__proto__":1,"b":"{\\"b\\":1}"}')).toBe(false)
    expect(hasDuplicates('{"__proto__":1,"b":2,"__proto__":{}}')).toBe(true)
  })
})
