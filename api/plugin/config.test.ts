import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { checkConfig } from './config.ts'

const problemOf = (schema: object, config: unknown): string => {
  try {
    checkConfig(schema, config)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('checkConfig', () => {
  const properties = { a: { type: 'number' }, b: { type: 'string' } }
  test.each<[string, object, unknown, string]>([
    ['an additional member', { properties, additionalProperties: false }, { a: 1, tenant: 'x' }, 'config.tenant is not in configSchema, is "x"; use a, b'],
    ['an additional member where none is allowed', { additionalProperties: false }, { c: 1 }, 'config.c is not in configSchema, is 1; remove it'],
    [
      'an unevaluated member',
      { allOf: [{ properties }], unevaluatedProperties: false },
      { b: 'x', 'x-y': [2] },
      'config["x-y"] is not in configSchema, is [2]; remove it',
    ],
    [
      'an unevaluated member by 2020-12',
      { $schema: 'https://json-schema.org/draft/2020-12/schema', properties, unevaluatedProperties: false },
      { c: null },
      'config.c is not in configSchema, is null; use a, b',
    ],
    [
      'an additional member by draft-07',
      { $schema: 'http://json-schema.org/draft-07/schema#', properties, additionalProperties: false },
      { c: true },
      'config.c is not in configSchema, is true; use a, b',
    ],
    ['a missing member', { required: ['a'] }, {}, "config must have required property 'a'; add config.a"],
    ['a value of an enum', { properties: { m: { enum: ['x', 1] } } }, { m: 'y' }, 'config.m must be one of "x", 1, is "y"'],
    ['a constant', { properties: { m: { const: 'x' } } }, { m: 'y' }, 'config.m must be "x", is "y"'],
    ['a type', { properties: { list: { items: properties.a } } }, { list: [1, 'two'] }, 'config.list[1] must be number, is "two"'],
    ['a type of a tuple', { properties: { list: { items: [properties.a] } } }, { list: ['one'] }, 'config.list[0] must be number, is "one"'],
    ['a range', { properties: { n: { maximum: 3 } } }, { n: 4 }, 'config.n must be <= 3, is 4'],
    ['a pointer with escapes', { properties: { 'a/b~c': properties.a } }, { 'a/b~c': 'x' }, 'config["a/b~c"] must be number, is "x"'],
    ['several members', { properties, required: ['a'] }, { b: 1 }, "config must have required property 'a'; add config.a; config.b must be string, is 1"],
  ])('names the field, the value and the fix of %s', (_, schema, config, expected) => {
    expect(problemOf({ type: 'object', ...schema }, config)).toBe(expected)
  })

  test('names a member whose name does not match', () => {
    expect(problemOf({ propertyNames: { pattern: '^x-' } }, { y: 1 })).toContain('config.y: the name must match pattern "^x-"')
  })

  test('names every additional member, whatever its name is, at any depth', () => {
    const name = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => text !== '__proto__')
    fc.assert(
      fc.property(fc.array(name, { maxLength: 3 }), name, fc.constantFrom('additionalProperties', 'unevaluatedProperties'), (path, extra, keyword) => {
        const schema = path.reduceRight<object>((inner, key) => ({ properties: { [key]: inner } }), { type: 'object', [keyword]: false })
        const config = path.reduceRight<object>((inner, key) => ({ [key]: inner }), { [extra]: 'value' })
        const message = problemOf(schema, config)
        for (const key of [...path, extra]) expect(message).toContain(JSON.stringify(key).slice(1, -1))
        expect(message).toContain('is "value"; remove it')
      }),
    )
  })

  test('bounds the message', () => {
    const config = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`k${index}`, 'x'.repeat(1000)]))
    const message = problemOf({ additionalProperties: false }, config)
    expect(message).toMatch(/k9 is not in configSchema.*; 30 more$/)
    expect(message.length).toBeLessThan(2000)
  })

  test('adds defaults', () => {
    const config = {}
    checkConfig({ properties: { a: { default: 1 } } }, config)
    expect(config).toEqual({ a: 1 })
  })
})
