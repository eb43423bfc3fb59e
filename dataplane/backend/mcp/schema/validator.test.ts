import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { runSync } from '../../../runtime/cooperative.ts'
import { parseJson } from '../message/json.ts'
import { SchemaValidator } from './validator.ts'

const check = (schema: object, value: unknown): string | undefined => runSync(new SchemaValidator(schema as Record<string, unknown>).check(value, 'arguments'))
const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })

describe('SchemaValidator', () => {
  test.each([
    [object({ a: { type: 'string' } }), { a: 1 }, 'arguments.a must be a string, and is a number'],
    [object({ a: { type: ['integer', 'null'] } }), { a: 1.5 }, 'arguments.a must be an integer or null, and is a number'],
    [object({ a: {} }, { required: ['b'] }), { a: 1 }, 'arguments.b is required'],
    [object({ a: {}, c: {} }, { additionalProperties: false }), { b: 1 }, 'arguments.b is unknown: the members are a, c'],
    [object({ a: { additionalProperties: { type: 'boolean' } } }), { a: { x: 1 } }, 'arguments.a.x must be a boolean, and is a number'],
    [object({ a: { enum: ['x', 'y'] } }), { a: 'z' }, 'arguments.a must be one of "x", "y"'],
    [object({ a: { enum: [`${'x'.repeat(95)}\u{1f600}yyy`] } }), { a: 'z' }, `arguments.a must be one of "${'x'.repeat(95)}\ufffd...`],
    [object({ a: { const: { b: [1] } } }), { a: { b: [2] } }, 'arguments.a must be {"b":[1]}'],
    [object({ a: { minLength: 2 } }), { a: '😀' }, 'arguments.a must have at least 2 characters'],
    [object({ a: { maxLength: 1 } }), { a: 'ab' }, 'arguments.a must have at most 1 characters'],
    [object({ a: { pattern: '^[a-z]+$' } }), { a: 'A' }, 'arguments.a must match "^[a-z]+$"'],
    [object({ a: { minimum: 1 } }), { a: 0 }, 'arguments.a must be at least 1'],
    [object({ a: { exclusiveMaximum: 1 } }), { a: 1 }, 'arguments.a must be less than 1'],
    [object({ a: { multipleOf: 0.1 } }), { a: 0.35 }, 'arguments.a must be a multiple of 0.1'],
    [object({ a: { items: { type: 'string' } } }), { a: ['x', 1] }, 'arguments.a[1] must be a string, and is a number'],
    [object({ a: { prefixItems: [{ type: 'string' }], items: false } }), { a: ['x', 1] }, 'arguments.a[1] is not allowed'],
    [object({ a: { minItems: 1 } }), { a: [] }, 'arguments.a must have at least 1 items'],
    [object({ a: { uniqueItems: true } }), { a: [{ b: 1 }, { b: 1 }] }, 'arguments.a must have no item twice'],
    [object({ a: { minProperties: 1 } }), { a: {} }, 'arguments.a must have at least 1 members'],
    [object({ a: { allOf: [{}, { type: 'string' }] } }), { a: 1 }, 'arguments.a must be a string, and is a number'],
    [
      object({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }),
      { a: 1 },
      'arguments.a matches none of its alternatives; of the first one: arguments.a must be a string, and is a number',
    ],
    [object({ a: { oneOf: [{ type: 'number' }, { type: 'integer' }] } }), { a: 1 }, 'arguments.a matches several alternatives, and must match one'],
    [object({ a: { not: { type: 'string' } } }), { a: 'x' }, 'arguments.a is not allowed'],
    [
      { $ref: '#/$defs/T', $defs: { T: object({ t: { $ref: '#/$defs/T' } }, { additionalProperties: false }) } },
      { t: { t: { x: 1 } } },
      'arguments.t.t.x is unknown: the members are t',
    ],
    [{ type: 'object' }, [], 'arguments must be an object, and is an array'],
  ])('%j rejects %j', (schema, value, problem) => {
    expect(check(schema, value)).toBe(problem)
    expect(new Ajv2020({ strict: false }).compile(schema)(value)).toBe(false)
  })

  test.each([
    [object({ a: { type: 'integer' } }), { a: 2 }],
    [object({ a: { pattern: 'b' } }), { a: 'abc' }],
    [object({ a: { multipleOf: 0.01 } }), { a: 19.99 }],
    [object({ a: { oneOf: [{ type: 'string' }, { type: 'integer' }] } }), { a: 1 }],
    [object({ a: { enum: [{ x: 1, y: 2 }] } }), { a: { y: 2, x: 1 } }],
    [object({ a: { minLength: 1 } }), { a: '😀' }],
    [object({}), { other: 1 }],
    [object({ a: { format: 'date' } }), { a: 'x' }],
  ])('%j accepts %j', (schema, value) => expect(check(schema, value)).toBeUndefined())

  test('treats numbers that a double cannot hold as numbers', () => {
    const value = parseJson('{"a":12345678901234567890.0}')
    expect(check(object({ a: { type: 'number', minimum: 1 } }), value)).toBeUndefined()
    expect(check(object({ a: { type: 'integer' } }), value)).toBeUndefined()
    expect(check(object({ a: { type: 'string' } }), value)).toContain('is a number')
  })

  test('leaves patterns that take more than linear time to the API', () => {
    expect(check(object({ a: { pattern: '^(?=x)(a+)+$' } }), { a: `${'a'.repeat(4000)}!` })).toBeUndefined()
    expect(check(object({ a: { pattern: '^(a+)+$' } }), { a: `${'a'.repeat(4000)}!` })).toContain('must match')
  })

  test('bounds the work of alternatives that multiply, and does it in steps', () => {
    const schema = { $ref: '#/$defs/T', $defs: { T: { anyOf: Array.from({ length: 6 }, () => object({ t: { $ref: '#/$defs/T' } }, { required: ['t'] })) } } }
    let value: object = {}
    for (let level = 0; level < 20; level++) value = { t: value }
    let steps = 0
    const work = new SchemaValidator(schema).check(value, 'arguments')
    for (;;) {
      const step = work.next()
      if (step.done === true) {
        expect(step.value).toBe('arguments are too complex to be checked')
        break
      }
      steps++
    }
    expect(steps).toBeGreaterThan(100)
  })

  test.each([
    [{ $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/A' } } }, {}],
    [{ $ref: '#/$defs/__proto__' }, {}],
  ])('ends for %j', (schema, value) => expect(() => check(schema, value)).not.toThrow())

  test('does not read inherited members of values', () => {
    expect(check(object({}, { required: ['constructor'] }), {})).toBe('arguments.constructor is required')
    expect(check(object({}, { additionalProperties: false }), JSON.parse('{"__proto__":1}'))).toContain('__proto__ is unknown')
  })
})
