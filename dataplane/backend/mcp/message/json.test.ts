import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { isObject, parseJson } from './json.ts'

describe('parseJson', () => {
  test.each([
    '18446744073709551615',
    '-0',
    '1e400',
    '1.0',
    '1E5',
    '0.1',
    '12345678901234567890.5',
    '{"a":[1.50,-0.0,{"b":1e-7}]}',
    '"1234567890123456"',
    '{"jsonrpc":"2.0","id":1.0,"result":2.0}',
    '{"jsonrpc":"2.0","id":1,"result":12345678901234567}',
    '["2.0",2.0e3]',
    '[]',
    'null',
  ])('keeps %s as it was written', (text) => expect(JSON.stringify(parseJson(text))).toBe(text))

  test('keeps the value of any JSON', () => {
    fc.assert(fc.property(fc.json(), (text) => expect(JSON.parse(JSON.stringify(parseJson(text)))).toEqual(JSON.parse(text))))
  })

  test.each(['', '{', '01', 'NaN', "{'a':1}"])('rejects %j as invalid JSON', (text) => expect(() => parseJson(text)).toThrow(SyntaxError))

  test('returns numbers with kept digits that are no objects', () =>
    expect([isObject(parseJson('1e400')), isObject(parseJson('{}')), isObject([])]).toEqual([false, true, false]))
})
