import { describe, expect, test } from '@jest/globals'
import { paramHeaders, paramHeaderValues } from './param-headers.ts'

const named = (name: unknown, type: unknown = 'string') => ({ type, 'x-mcp-header': name })
const schemaOf = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

describe('headers of arguments (mcp.md §13.6)', () => {
  test.each<[string, unknown, string[] | undefined]>([
    ['without annotations', schemaOf({ a: { type: 'string' } }), []],
    ['of the root', schemaOf({ a: named('Region'), b: named('n', 'integer'), c: named('c', 'boolean') }), ['mcp-param-region', 'mcp-param-n', 'mcp-param-c']],
    ['of a nested object', schemaOf({ a: schemaOf({ b: named('X') }) }), ['mcp-param-x']],
    ['with a property that has the name of the keyword', schemaOf({ 'x-mcp-header': { type: 'string' } }), []],
    ['with the keyword in a default value', schemaOf({ a: { type: 'object', default: { 'x-mcp-header': 'x' } } }), []],
    ['with an empty name', schemaOf({ a: named('') }), undefined],
    ['with a line break in a name', schemaOf({ a: named('x\r\ny') }), undefined],
    ['with a name that is no token', schemaOf({ a: named('a b') }), undefined],
    ['with a name that is no string', schemaOf({ a: named(5) }), undefined],
    ['with two equal names', schemaOf({ a: named('x'), b: named('X') }), undefined],
    ['of type number', schemaOf({ a: named('x', 'number') }), undefined],
    ['of type object', schemaOf({ a: named('x', 'object') }), undefined],
    ['without type', schemaOf({ a: { 'x-mcp-header': 'x' } }), undefined],
    ['in items', schemaOf({ a: { type: 'array', items: named('x') } }), undefined],
    ['in anyOf', schemaOf({}, { anyOf: [schemaOf({ a: named('x') })] }), undefined],
    ['in $defs', schemaOf({}, { $defs: { a: named('x') } }), undefined],
    ['at the root', schemaOf({}, { 'x-mcp-header': 'x' }), undefined],
    ['that is no object', 'x', undefined],
  ])('a schema %s is read', (_, schema, expected) => {
    expect(paramHeaders(schema)?.map(({ header }) => header)).toEqual(expected)
  })

  test('a schema with more than 100 annotations is rejected', () => {
    const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, named(`p${index}`)]))
    expect([paramHeaders(schemaOf(properties(100)))?.length, paramHeaders(schemaOf(properties(101)))]).toEqual([100, undefined])
  })

  test.each<[unknown, string | undefined]>([
    ['us-west1', 'us-west1'],
    [42, '42'],
    [-7, '-7'],
    [true, 'true'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    [null, undefined],
    [undefined, undefined],
    [{ a: 1 }, undefined],
  ])('the argument %j is encoded', (value, expected) => {
    const headers = paramHeaders(schemaOf({ a: schemaOf({ b: named('X') }) })) ?? []
    expect(paramHeaderValues(headers, { a: { b: value } })).toEqual(expected === undefined ? [] : [['mcp-param-x', expected]])
  })

  test('a property of the prototype is no argument', () => {
    expect(paramHeaderValues(paramHeaders(schemaOf({ constructor: schemaOf({ name: named('x') }) })) ?? [], {})).toEqual([])
  })
})
