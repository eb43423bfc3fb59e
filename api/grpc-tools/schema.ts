import { ScalarType, type DescEnum, type DescField, type DescMessage } from '@bufbuild/protobuf'
import { FieldDescriptorProto_Label } from '@bufbuild/protobuf/wkt'
import type { JsonObject } from '#api/json/index.ts'
import { commentOf } from './comments.ts'

/** Whether a schema is for arguments of a call or for its result. Results may have enum values that the descriptors do not know. */
export type Side = 'input' | 'output'

const MAX_DESCRIPTION = 500

/** JSON forms of well-known types (ProtoJSON). */
const wellKnown: Readonly<Record<string, JsonObject>> = {
  'google.protobuf.Timestamp': { type: 'string', format: 'date-time' },
  'google.protobuf.Duration': { type: 'string', pattern: '^-?\\d+(\\.\\d+)?s$' },
  'google.protobuf.FieldMask': { type: 'string', description: 'Paths of fields, separated by commas.' },
  'google.protobuf.Empty': { type: 'object' },
  'google.protobuf.Struct': { type: 'object' },
  'google.protobuf.ListValue': { type: 'array' },
  'google.protobuf.Value': {},
  'google.protobuf.Any': { type: 'object', properties: { '@type': { type: 'string' } } },
}
const WRAPPER = /^google\.protobuf\.(?:Bool|Bytes|Double|Float|U?Int(?:32|64)|String)Value$/

const integer = { type: 'integer' }
/** ProtoJSON writes 64 bits as strings and reads both. */
const long = { type: ['string', 'integer'], pattern: '^-?\\d+$' }
const real = { anyOf: [{ type: 'number' }, { enum: ['NaN', 'Infinity', '-Infinity'] }] }

const scalars: Readonly<Record<ScalarType, JsonObject>> = {
  [ScalarType.DOUBLE]: real,
  [ScalarType.FLOAT]: real,
  [ScalarType.INT64]: long,
  [ScalarType.UINT64]: long,
  [ScalarType.FIXED64]: long,
  [ScalarType.SFIXED64]: long,
  [ScalarType.SINT64]: long,
  [ScalarType.INT32]: integer,
  [ScalarType.FIXED32]: integer,
  [ScalarType.UINT32]: integer,
  [ScalarType.SFIXED32]: integer,
  [ScalarType.SINT32]: integer,
  [ScalarType.BOOL]: { type: 'boolean' },
  [ScalarType.STRING]: { type: 'string' },
  [ScalarType.BYTES]: { type: 'string', contentEncoding: 'base64' },
}

/** Whether ProtoJSON of a message is another value than an object, or any value. Arguments of a tool are such a message in the member `value`. */
export function isBareValue({ typeName }: DescMessage): boolean {
  const known = wellKnown[typeName]
  return WRAPPER.test(typeName) || (known !== undefined && known['type'] !== 'object')
}

/**
 * JSON Schema of a message in ProtoJSON, with the messages that it contains in `$defs`. The root has the type `object`. Undefined for a result that is a
 * bare value, because structured content is an object.
 */
export function schemaOf(message: DescMessage, side: Side): JsonObject | undefined {
  const definitions = new Map<string, JsonObject>()
  if (isBareValue(message)) {
    if (side === 'output') return undefined
    return { type: 'object', properties: { value: messageSchema(message, side, definitions) }, required: ['value'], additionalProperties: false }
  }
  const root = wellKnown[message.typeName] !== undefined ? { type: 'object' } : objectSchema(message, side, definitions)
  return definitions.size === 0 ? root : { ...root, $defs: Object.fromEntries(definitions) }
}

function objectSchema(message: DescMessage, side: Side, definitions: Map<string, JsonObject>): JsonObject {
  const required = message.fields.filter(({ proto }) => proto.label === FieldDescriptorProto_Label.REQUIRED).map(({ jsonName }) => jsonName)
  return {
    type: 'object',
    properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, fieldSchema(field, side, definitions)])),
    ...(side === 'input' && required.length > 0 && { required }),
    ...(side === 'input' && { additionalProperties: false }),
  }
}

function fieldSchema(field: DescField, side: Side, definitions: Map<string, JsonObject>): JsonObject {
  const schema = valueSchema(field, side, definitions)
  const siblings = field.oneof?.fields.filter((one) => one !== field).map(({ jsonName }) => jsonName) ?? []
  const notes = [commentOf(field), siblings.length > 0 && side === 'input' ? `Not together with ${siblings.join(', ')}.` : undefined, schema['description']]
  const text = notes.filter((note) => typeof note === 'string').join(' ')
  return text === '' ? schema : { ...schema, description: text.slice(0, MAX_DESCRIPTION).toWellFormed() }
}

function valueSchema(field: DescField, side: Side, definitions: Map<string, JsonObject>): JsonObject {
  switch (field.fieldKind) {
    case 'list':
      return {
        type: 'array',
        items:
          field.listKind === 'message'
            ? messageSchema(field.message, side, definitions)
            : field.listKind === 'enum'
              ? enumSchema(field.enum, side)
              : scalars[field.scalar],
      }
    case 'map':
      return {
        type: 'object',
        additionalProperties:
          field.mapKind === 'message'
            ? messageSchema(field.message, side, definitions)
            : field.mapKind === 'enum'
              ? enumSchema(field.enum, side)
              : scalars[field.scalar],
      }
    case 'message':
      return messageSchema(field.message, side, definitions)
    case 'enum':
      return enumSchema(field.enum, side)
    default:
      return scalars[field.scalar]
  }
}

function enumSchema({ typeName, values }: DescEnum, side: Side): JsonObject {
  if (typeName === 'google.protobuf.NullValue') return { type: 'null' }
  const names = values.map(({ name }) => name)
  return side === 'input' ? { enum: names } : { type: ['string', 'integer'], description: `${names.join(', ')}, or a number without a name` }
}

function messageSchema(message: DescMessage, side: Side, definitions: Map<string, JsonObject>): JsonObject {
  const { typeName } = message
  const known = wellKnown[typeName]
  if (known !== undefined) return known
  const [wrapped] = message.fields
  if (WRAPPER.test(typeName) && wrapped?.fieldKind === 'scalar') return { anyOf: [scalars[wrapped.scalar], { type: 'null' }] }
  if (!definitions.has(typeName)) {
    // Before its fields, because messages may contain themselves.
    definitions.set(typeName, {})
    definitions.set(typeName, objectSchema(message, side, definitions))
  }
  return { $ref: `#/$defs/${typeName}` }
}
