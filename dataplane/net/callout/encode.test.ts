import { create, ScalarType, toBinary, type DescField, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { CheckRequestSchema, CheckResponseSchema } from '#gen/proto/envoy/service/auth/v3/external_auth_pb.js'
import { ProcessingRequestSchema, ProcessingResponseSchema } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { RateLimitRequestSchema, RateLimitResponseSchema } from '#gen/proto/envoy/service/ratelimit/v3/rls_pb.js'
import { encodeMessage } from './encode.ts'

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ minLength: 90, maxLength: 300 }))

/** Any message of a type, as what `create` takes. */
function anyMessage({ typeName, fields, oneofs }: DescMessage, depth: number): fc.Arbitrary<object> {
  const members: Record<string, fc.Arbitrary<unknown>> = {}
  for (const field of fields) if (field.oneof === undefined) members[field.localName] = fc.option(anyField(field, depth), { nil: undefined })
  for (const { localName, fields: cases } of oneofs) {
    const chosen = cases
      .filter((field) => depth > 0 || field.message === undefined)
      .map((field) => fc.record({ case: fc.constant(field.localName), value: anyField(field, depth) }))
    members[localName] = fc.oneof(fc.constant({ case: undefined }), ...chosen)
  }
  return typeName === 'google.protobuf.Any' ? fc.constant({}) : fc.record(members, { requiredKeys: [], noNullPrototype: true })
}

function anyField(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.fieldKind === 'list') return depth === 0 ? fc.constant([]) : fc.array(anyValue(field, depth), { maxLength: 3 })
  if (field.fieldKind === 'map') return depth === 0 ? fc.constant({}) : fc.dictionary(text, anyValue(field, depth), { maxKeys: 3, noNullPrototype: true })
  return anyValue(field, depth)
}

function anyValue(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message?.typeName === 'google.protobuf.Struct')
    return fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<never>, { maxKeys: 3, noNullPrototype: true })
  if (field.fieldKind === 'message' && field.oneof === undefined && /^google.protobuf.\w+Value$/.test(field.message.typeName))
    return anyScalar((field.message.fields[0] as { scalar: ScalarType }).scalar)
  if (field.message !== undefined) return depth === 0 ? fc.constant(undefined) : anyMessage(field.message, depth - 1)
  return field.enum === undefined ? anyScalar(field.scalar) : fc.constantFrom(0, 1, 2, -1)
}

function anyScalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return text
    case ScalarType.BYTES:
      return fc.uint8Array()
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.DOUBLE:
      return fc.double()
    case ScalarType.INT32:
      return fc.integer()
    case ScalarType.UINT32:
      return fc.nat()
    case ScalarType.INT64:
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    case ScalarType.UINT64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
    default:
      throw new Error(`no values for ${ScalarType[type]}`)
  }
}

test.each<[string, DescMessage]>(
  [CheckRequestSchema, CheckResponseSchema, RateLimitRequestSchema, RateLimitResponseSchema, ProcessingRequestSchema, ProcessingResponseSchema].map(
    (schema) => [schema.typeName, schema],
  ),
)('%s is encoded to the bytes of protobuf-es, from plain objects and from messages', (_, schema) => {
  fc.assert(
    fc.property(anyMessage(schema, 5), (init) => {
      const message = create(schema, init as MessageInitShape<DescMessage>)
      const expected = Buffer.from(toBinary(schema, message)).toString('hex')
      expect(Buffer.from(encodeMessage(schema, init as MessageInitShape<DescMessage>)).toString('hex')).toBe(expected)
      expect(Buffer.from(encodeMessage(schema, message)).toString('hex')).toBe(expected)
    }),
    { numRuns: 60 },
  )
})

test('encodes a short message after a long one', () => {
  const long = { case: 'stringValue', value: 'ä'.repeat(2_000_000) } as const
  expect(encodeMessage(ValueSchema, { kind: long })).toHaveLength(4_000_005)
  expect(Buffer.from(encodeMessage(ValueSchema, { kind: { case: 'boolValue', value: true } })).toString('hex')).toBe('2001')
})
