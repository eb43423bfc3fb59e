import { create, ScalarType, toBinary, type DescField, type DescMessage, type JsonObject, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf'
import { Edition, FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'
import { ByteWriter } from './writer.ts'

type Local = Readonly<Record<string, unknown>>
type Encode = (out: ByteWriter, value: unknown) => void

const out = new ByteWriter()
const encoders = new WeakMap<DescMessage, Encode>()

/**
 * Encodes a message; the bytes are valid until the next call. Accepts what `create` of protobuf-es accepts: plain objects as well as
 * messages, with defaults for absent members. Takes half the time of `toBinary(create())`, because it allocates less.
 */
export function encodeMessage<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Uint8Array {
  out.clear()
  encoderOf(schema)(out, message)
  return out.bytes
}

function encoderOf(schema: DescMessage): Encode {
  const known = encoders.get(schema)
  if (known !== undefined) return known
  const fields: Encode[] = []
  const encode: Encode = (to, message) => {
    for (const field of fields) field(to, message)
  }
  // Registered before its fields are compiled, because messages may contain themselves.
  encoders.set(schema, encode)
  // For proto2 fields protobuf-es distinguishes absent and default members by the prototype.
  if (schema.file.edition !== Edition.EDITION_PROTO3)
    fields.push((to, message) => to.raw(toBinary(schema, create(schema, message as MessageInitShape<DescMessage>))))
  else for (const field of schema.fields.toSorted((a, b) => a.number - b.number)) fields.push(encodeField(field))
  return encode
}

function encodeField(field: DescField): Encode {
  const { localName, number } = field
  if (field.fieldKind === 'map') return encodeMap(field)
  if (field.fieldKind === 'list') return encodeList(field)
  const encode = encodeTagged(number, valueOf(field))
  if (field.oneof !== undefined) {
    const group = field.oneof.localName
    return (to, message) => {
      const chosen = (message as Local)[group] as { readonly case?: string; readonly value?: unknown } | undefined
      if (chosen?.case === localName) encode(to, chosen.value)
    }
  }
  const isImplicit = field.presence === FeatureSet_FieldPresence.IMPLICIT
  return (to, message) => {
    const value = (message as Local)[localName]
    if (value !== undefined && value !== null && !(isImplicit && isZero(value))) encode(to, value)
  }
}

/** Whether a member without presence is omitted; -0 is not zero. */
function isZero(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0
  return value === '' || value === false || value === 0n || Object.is(value, 0)
}

/** Wire encoding of a value after its tag. */
interface Value {
  readonly wireType: 0 | 1 | 2 | 5
  readonly encode: Encode
}

function encodeTagged(number: number, { wireType, encode }: Value): Encode {
  const tag = (number << 3) | wireType
  return (to, value) => {
    to.varint(tag)
    encode(to, value)
  }
}

function encodeList(field: DescField & { fieldKind: 'list' }): Encode {
  const { localName, number } = field
  const value = valueOf(field)
  const encodeOne = encodeTagged(number, value)
  if (field.packed) {
    const encodeAll = encodeTagged(
      number,
      delimited((to, items) => (items as unknown[]).forEach((item) => value.encode(to, item))),
    )
    return (to, message) => {
      const items = (message as Local)[localName] as readonly unknown[] | undefined
      if (items !== undefined && items.length > 0) encodeAll(to, items)
    }
  }
  return (to, message) => {
    const items = (message as Local)[localName] as readonly unknown[] | undefined
    if (items !== undefined) for (const item of items) encodeOne(to, item)
  }
}

function encodeMap(field: DescField & { fieldKind: 'map' }): Encode {
  if (field.mapKey !== ScalarType.STRING) throw new Error(`${String(field)}: maps have texts as keys`)
  const { localName } = field
  const encodeKey = encodeTagged(1, scalarValue(ScalarType.STRING))
  const encodeValue = encodeTagged(2, valueOf(field))
  const tag = (field.number << 3) | 2
  return (to, message) => {
    const record = (message as Local)[localName] as Local | undefined
    if (record === undefined) return
    for (const key of Object.keys(record)) {
      to.varint(tag)
      const from = to.open()
      encodeKey(to, key)
      encodeValue(to, record[key])
      to.close(from)
    }
  }
}

function valueOf(field: DescField): Value {
  if (field.message !== undefined) return messageValue(field, field.message)
  return scalarValue(field.enum === undefined ? field.scalar : ScalarType.INT32)
}

function messageValue(field: DescField, message: DescMessage): Value {
  if ('delimitedEncoding' in field && field.delimitedEncoding) throw new Error(`${String(field)}: groups are not written`)
  // As in protobuf-es: a Struct is JSON except inside a Value, a wrapper is its value except in a oneof and in lists.
  if (message.typeName === 'google.protobuf.Struct' && field.parent.typeName !== 'google.protobuf.Value') return delimited(encodeStruct as Encode)
  if (isUnwrapped(field, message)) {
    const [inner] = message.fields
    if (inner === undefined) throw new Error(`${String(field)}: nothing is wrapped`)
    const encode = encodeTagged(1, valueOf(inner))
    return delimited((to, value) => {
      if (!isZero(value)) encode(to, value)
    })
  }
  return delimited(encoderOf(message))
}

function isUnwrapped({ fieldKind, oneof }: DescField, { typeName }: DescMessage): boolean {
  return fieldKind === 'message' && oneof === undefined && /^google\.protobuf\.\w+Value$/.test(typeName) && typeName !== 'google.protobuf.ListValue'
}

function delimited(encode: Encode): Value {
  return {
    wireType: 2,
    encode: (to, value) => {
      const from = to.open()
      encode(to, value)
      to.close(from)
    },
  }
}

function encodeStruct(to: ByteWriter, json: JsonObject): void {
  for (const key of Object.keys(json)) {
    to.varint(0x0a)
    const from = to.open()
    to.varint(0x0a)
    to.string(key)
    to.varint(0x12)
    encodeJson(to, json[key] ?? null)
    to.close(from)
  }
}

/** A google.protobuf.Value with its length. */
function encodeJson(to: ByteWriter, json: JsonValue): void {
  const from = to.open()
  if (json === null) {
    to.varint(0x08)
    to.varint(0)
  } else if (typeof json === 'number') {
    to.varint(0x11)
    to.double(json)
  } else if (typeof json === 'string') {
    to.varint(0x1a)
    to.string(json)
  } else if (typeof json === 'boolean') {
    to.varint(0x20)
    to.varint(json ? 1 : 0)
  } else {
    to.varint(Array.isArray(json) ? 0x32 : 0x2a)
    const inner = to.open()
    if (!Array.isArray(json)) encodeStruct(to, json)
    else
      for (const item of json) {
        to.varint(0x0a)
        encodeJson(to, item)
      }
    to.close(inner)
  }
  to.close(from)
}

function scalarValue(type: ScalarType): Value {
  switch (type) {
    case ScalarType.STRING:
      return { wireType: 2, encode: (to, value) => to.string(String(value)) }
    case ScalarType.BYTES:
      return { wireType: 2, encode: (to, value) => to.block(value as Uint8Array) }
    case ScalarType.BOOL:
      return { wireType: 0, encode: (to, value) => to.byte(value === true ? 1 : 0) }
    case ScalarType.DOUBLE:
      return { wireType: 1, encode: (to, value) => to.double(value as number) }
    case ScalarType.UINT32:
    case ScalarType.INT32:
      return { wireType: 0, encode: (to, value) => (Number(value) < 0 ? to.varint64(BigInt(value as number)) : to.varint(value as number)) }
    case ScalarType.UINT64:
    case ScalarType.INT64:
      return { wireType: 0, encode: (to, value) => to.varint64(value as bigint) }
    case ScalarType.FIXED32:
      return { wireType: 5, encode: (to, value) => to.fixed32(value as number) }
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return { wireType: 1, encode: (to, value) => to.fixed64(value as bigint) }
    default:
      throw new Error(`no message of ours has ${ScalarType[type]}`)
  }
}
