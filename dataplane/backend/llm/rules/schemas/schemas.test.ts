import { describe, expect, test } from '@jest/globals'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fc } from '#api/property-testing.ts'
import type { JsonObject } from '../../common/types.ts'
import { violations } from '../../testing/target-checks.ts'
import { toCurrentDraft } from './draft.ts'
import { toGoogleSchema } from './google.ts'
import { fitSchema } from './index.ts'
import { table } from '../table.ts'

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more })

describe("Google's subset of schemas", () => {
  test.each([
    ['a list of types with null', { type: ['string', 'null'] }, { type: 'string', nullable: true }],
    ['a list of types', { type: ['string', 'integer'] }, { anyOf: [{ type: 'string' }, { type: 'integer' }] }],
    ['a constant', { const: 'a', description: 'd' }, { type: 'string', enum: ['a'], description: 'd' }],
    ['a constant that is no text', { const: 1 }, { type: 'integer', description: 'One of [1].' }],
    ['an enum of numbers', { type: 'integer', enum: [1, 2], description: 'd' }, { type: 'integer', description: 'd One of [1,2].' }],
    ['an enum with null', { enum: ['a', null] }, { type: 'string', nullable: true, enum: ['a'] }],
    ['an enum with an empty text', { enum: ['a', ''] }, { type: 'string', description: 'One of ["a",""].' }],
    ['oneOf', { oneOf: [{ type: 'string' }, { type: 'number' }] }, { anyOf: [{ type: 'string' }, { type: 'number' }] }],
    ['a union beside other members', { description: 'd', anyOf: [{ type: 'string' }, { type: 'null' }] }, { type: 'string', description: 'd', nullable: true }],
    [
      'a union of which each branch has the description',
      { description: 'd', anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] },
      {
        anyOf: [
          { type: 'string', description: 'd', nullable: true },
          { type: 'integer', description: 'd', nullable: true },
        ],
      },
    ],
    [
      'allOf',
      { allOf: [object({ a: { type: 'string' } }, { required: ['a'] }), object({ b: {} })] },
      object({ b: { type: 'object' }, a: { type: 'string' } }, { required: ['a'] }),
    ],
    ['an array without items', { type: 'array' }, { type: 'array', items: { type: 'string' } }],
    [
      'a tuple',
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] },
      { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
    ],
    ['formats', { type: 'string', format: 'uri' }, { type: 'string' }],
    ['known formats', { type: 'string', format: 'date-time' }, { type: 'string', format: 'date-time' }],
    ['closed objects', object({}, { additionalProperties: false, $schema: 's', patternProperties: {} }), object({})],
    [
      'required names that are no properties',
      object({ a: { type: 'string' } }, { required: ['a', 'b'] }),
      object({ a: { type: 'string' } }, { required: ['a'] }),
    ],
    [
      'properties named as keywords',
      object({ type: { type: 'string' }, $ref: { type: 'string' } }),
      object({ type: { type: 'string' }, $ref: { type: 'string' } }),
    ],
    ['nothing', {}, { type: 'object' }],
  ] as const)('has %s', (_, given, written) => expect(toGoogleSchema(given)).toEqual(written))

  test('has the targets of references, and any object for recursive and unknown ones', () => {
    const tree = object({ child: { $ref: '#/$defs/tree' }, leaf: { $ref: '#/definitions/a~1b' } })
    const schema = object(
      { tree: { $ref: '#/$defs/tree', description: 'd' }, lost: { $ref: '#/$defs/lost' }, web: { $ref: 'https://example.com/s' } },
      {
        $defs: { tree },
        definitions: { 'a/b': { type: 'integer' } },
      },
    )
    expect(toGoogleSchema(schema)).toEqual(
      object({
        tree: object({ child: { type: 'object' }, leaf: { type: 'integer' } }, { description: 'd' }),
        lost: { type: 'object' },
        web: { type: 'object' },
      }),
    )
  })

  test.each(['properties', 'allOf', 'anyOf'])('stays small if each reference doubles the schema by %s', (keyword) => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => {
        const next = { $ref: `#/$defs/d${at + 1}` }
        return [`d${at}`, keyword === 'properties' ? object({ a: next, b: next }) : { [keyword]: [next, next] }]
      }),
    )
    const written = JSON.stringify(toGoogleSchema({ $ref: '#/$defs/d0', $defs }))
    expect(written.length).toBeLessThan(200_000)
  })

  const leaf = fc.constantFrom<JsonObject>(
    { type: 'string' },
    {},
    { const: 1 },
    { enum: ['a', 2, null] },
    { type: ['null', 'integer'] },
    { $ref: '#/$defs/a' },
    { type: 'null' },
  )
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.record({ properties: fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'type'), tie('schema')), required: fc.constantFrom<string[]>(['a'], []) }),
      fc.record({ type: fc.constant('array'), items: fc.option(tie('schema'), { nil: undefined }) }, { requiredKeys: ['type'] }),
      fc.record({ anyOf: fc.array(tie('schema'), { maxLength: 3 }), description: fc.constant('d') }),
      fc.record({ allOf: fc.array(tie('schema'), { maxLength: 3 }), oneOf: fc.array(tie('schema'), { maxLength: 2 }) }),
    ),
  }))

  test('is what any schema becomes', () => {
    fc.assert(
      fc.property(schema, schema, (root, a) => {
        const parameters = fitSchema({ ...root, $defs: { a } }, table.gemini.schema)
        const body = { messages: [{ role: 'user', content: 'hi' }], model: 'gemini-3-pro', tools: [{ type: 'function', function: { name: 'f', parameters } }] }
        expect(violations('gemini', 'gemini-3-pro', JSON.parse(JSON.stringify(body)) as JsonObject)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})

describe('a union at the root of a schema', () => {
  const id = object({ id: { type: 'string' }, both: { type: 'string' } }, { required: ['id', 'both'] })
  const path = object({ path: { type: 'string' }, both: { type: 'integer' } }, { required: ['path', 'both'] })

  test.each(['oneOf', 'anyOf'])('%s becomes the properties of all branches, of which those are required that each one requires', (union) => {
    const { $defs, ...rest } =
      fitSchema({ [union]: [id, { $ref: '#/$defs/path' }], additionalProperties: false, $defs: { path } }, table.anthropic.schema) ?? {}
    expect($defs).toEqual({ path })
    expect(rest).toEqual(
      object({ id: { type: 'string' }, both: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, path: { type: 'string' } }, { required: ['both'] }),
    )
  })

  test('of allOf requires what each part requires', () => {
    const fitted = fitSchema({ type: 'object', properties: { own: {} }, allOf: [id, path] }, table.converse.schema)
    expect(fitted?.['required']).toEqual(['id', 'both', 'path'])
    expect(Object.keys(fitted?.['properties'] as object)).toEqual(['own', 'id', 'both', 'path'])
  })

  test.each(['anthropic', 'vertexClaude', 'converse', 'openai', 'azure', 'responses', 'gemini', 'vertex'] as const)('is not sent to %s', (target) => {
    const { schema } = table[target]
    for (const union of ['oneOf', 'anyOf', 'allOf']) {
      const fitted = fitSchema({ [union]: [id, { [union]: [path] }] }, schema) ?? {}
      expect(fitted['type']).toBe('object')
      expect(Object.keys(fitted['properties'] as object).toSorted()).toEqual(['both', 'id', 'path'])
      expect(fitted[union]).toBeUndefined()
    }
  })

  test('that refers to itself ends', () => {
    expect(fitSchema({ anyOf: [{ $ref: '#' }, id] }, table.anthropic.schema)?.['type']).toBe('object')
  })

  test('stays as it is for servers that accept it', () => {
    const schema = { anyOf: [id, path] }
    expect(fitSchema(schema, table.compatible.schema)).toBe(schema)
  })
})

describe('a schema of an earlier draft', () => {
  const ajv = new Ajv2020({ strict: false })

  test.each([
    ['a tuple', { type: 'array', items: [{ type: 'string' }] }, { type: 'array', prefixItems: [{ type: 'string' }] }],
    [
      'a tuple with further items',
      { items: [{ type: 'string' }], additionalItems: { type: 'number' } },
      { prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    ],
    ['a closed tuple', { items: [{}], additionalItems: false }, { prefixItems: [{}], items: false }],
    ['an exclusive bound', { minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false }, { exclusiveMinimum: 0, maximum: 9 }],
    ['a required property', { properties: { a: { type: 'string', required: true } } }, { properties: { a: { type: 'string' } } }],
    ['an unknown type', { properties: { a: { type: 'any' }, b: { type: ['string', 'date'] } } }, { properties: { a: {}, b: { type: ['string'] } } }],
    ['null for no value', { description: null, enum: null, default: null, items: null }, { default: null }],
    [
      'properties that are no schemas',
      { properties: { type: 'object', a: { type: 'string' }, properties: { type: 'object' } } },
      { properties: { a: { type: 'string' }, properties: { type: 'object' } } },
    ],
  ] as const)('is rewritten: %s', (_, given, written) => expect(toCurrentDraft(given, false)).toEqual(written))

  test('keeps its object if nothing has to change', () => {
    const schema = object({
      a: {
        anyOf: [
          { type: 'string', enum: ['a'] },
          { type: 'array', items: { type: ['null', 'integer'] }, minItems: 1 },
        ],
      },
    })
    expect(toCurrentDraft(schema, true)).toBe(schema)
  })

  test('gets items for each array where they are demanded', () => {
    const lists = object({ a: { type: 'array' }, b: { type: ['null', 'array'] }, c: { type: 'array', prefixItems: [{ type: 'array' }] } })
    expect(fitSchema(lists, table.openai.schema)).toEqual(
      object({ a: { type: 'array', items: {} }, b: { type: ['null', 'array'], items: {} }, c: { type: 'array', prefixItems: [{ type: 'array', items: {} }] } }),
    )
    expect(fitSchema(lists, table.anthropic.schema)).toBe(lists)
    expect(fitSchema(lists, table.compatible.schema)).toBe(lists)
  })

  const keyword = fc.constantFrom(
    ...'type,properties,required,items,additionalItems,prefixItems,anyOf,oneOf,enum,minimum,exclusiveMinimum,maximum,exclusiveMaximum,multipleOf,'.split(','),
    ...'minLength,uniqueItems,description,pattern,$defs,additionalProperties,not,default,__proto__'.split(','),
  )
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 'string', 'any', [], ['string', 'string', 'x'], {}),
      fc.dictionary(keyword, tie('schema'), { maxKeys: 4 }),
      fc.array(tie('schema'), { maxLength: 3 }),
    ),
  }))

  test.each(['openai', 'azure', 'responses', 'anthropic', 'vertexClaude', 'converse'] as const)('is valid for %s, whatever its members are', (target) => {
    fc.assert(
      fc.property(fc.dictionary(keyword, schema), (given) => {
        const fitted = fitSchema(given, table[target].schema)
        expect(ajv.validateSchema(fitted as object) === true ? [] : ajv.errors).toEqual([])
      }),
      { numRuns: 300 },
    )
  })
})
