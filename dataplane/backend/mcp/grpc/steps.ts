import {
  create,
  mergeFromBinary,
  mergeFromJson,
  toJson,
  type DescField,
  type DescMessage,
  type FileRegistry,
  type JsonValue,
  type Message,
} from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { isSmallJson, sizeOfJson, SMALL_SIZE } from '#api/json/index.ts'
import { isObject } from '../message/json.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'

/** Bytes of a message that are read at once. */
const PIECE_BYTES = 8 * 1024
/** Messages of a list that are written at once. */
const PIECE_ITEMS = 512
/** Messages within messages that are converted in steps. Deeper ones are converted at once. */
const MAX_DEPTH = 32
/** Levels of a message, as by default in the library. */
const MAX_LEVELS = 100

/** How a message is converted: with the registry for google.protobuf.Any. */
export interface ConvertOptions {
  readonly registry?: FileRegistry
}

type Fields = Record<string, unknown>

/** Reads a message in steps. Messages within it that are large are added to `large`, and itself. Throws an Error. */
export function* decodeInSteps(desc: DescMessage, bytes: Uint8Array, large: Set<unknown>): Cooperative<Message> {
  const message = create(desc)
  yield* decodeInto(desc, message, bytes, large, 0)
  return message
}

function* decodeInto(desc: DescMessage, message: Message, bytes: Uint8Array, large: Set<unknown>, depth: number): Cooperative<void> {
  const merge = (from: number, to: number): void => void mergeFromBinary(desc, message, bytes.subarray(from, to), { recursionLimit: MAX_LEVELS - depth })
  if (bytes.length <= PIECE_BYTES || depth > MAX_DEPTH) {
    merge(0, bytes.length)
    yield
    return
  }
  large.add(message)
  const fields = new Map(desc.fields.filter(isPlainMessage).map((field) => [field.number, field]))
  const reader = new BinaryReader(bytes)
  let start = 0
  while (reader.pos < reader.len) {
    const at = reader.pos
    const [number, type] = reader.tag()
    const content = reader.pos
    // `skip` makes an array of what it skips.
    if (type !== WireType.LengthDelimited) reader.skip(type, number, MAX_LEVELS - depth)
    else {
      const length = reader.uint32()
      reader.pos += length
    }
    const field = type === WireType.LengthDelimited && reader.pos - at > PIECE_BYTES ? fields.get(number) : undefined
    if (field === undefined && reader.pos - start <= PIECE_BYTES) continue
    merge(start, field === undefined ? reader.pos : at)
    start = reader.pos
    yield
    if (field === undefined) continue
    const child = childOf(message, field)
    yield* decodeInto(field.message, child, new BinaryReader(bytes.subarray(content, reader.pos)).bytes(), large, depth + 1)
  }
  merge(start, bytes.length)
}

/** A message as ProtoJSON with defaults, in steps. `large`: messages that are converted in steps. Throws an Error. */
export function* toJsonInSteps(desc: DescMessage, message: Message, large: ReadonlySet<unknown>, options: ConvertOptions): Cooperative<JsonValue> {
  const write = { ...options, alwaysEmitImplicit: true }
  if (!large.has(message) || hasOwnJson(desc)) return toJson(desc, message, write)
  const values = message as unknown as Fields
  const shell = Object.assign(Object.create(Object.getPrototypeOf(message) as object) as Message, message)
  const emptied = desc.fields.filter(isPlainMessage).filter(({ fieldKind, localName }) => fieldKind === 'list' || large.has(values[localName]))
  for (const field of emptied) (shell as unknown as Fields)[field.localName] = field.fieldKind === 'list' ? [] : create(field.message)
  const json = toJson(desc, shell, write) as Record<string, JsonValue>
  for (const field of emptied) {
    const value = values[field.localName]
    if (field.fieldKind !== 'list') json[field.jsonName] = yield* toJsonInSteps(field.message, value as Message, large, options)
    else {
      const items: JsonValue[] = []
      for (const piece of piecesOf(value as Message[], PIECE_ITEMS, (item) => (large.has(item) ? PIECE_ITEMS : 1))) {
        const [only] = piece
        if (only !== undefined && large.has(only)) items.push(yield* toJsonInSteps(field.message, only, large, options))
        else {
          const part = create(desc)
          ;(part as unknown as Fields)[field.localName] = piece
          for (const item of (toJson(desc, part, write) as Record<string, JsonValue[]>)[field.jsonName] ?? []) items.push(item)
        }
        yield
      }
      json[field.jsonName] = items
    }
  }
  return json
}

/** Reads ProtoJSON in steps. `prepare` is applied to each part. Throws an Error. */
export function* fromJsonInSteps(desc: DescMessage, json: unknown, prepare: (part: unknown) => unknown, options: ConvertOptions): Cooperative<Message> {
  const message = create(desc)
  yield* readInto(desc, message, json, (of, into, part) => void mergeFromJson(of, into, prepare(part) as JsonValue, options), 0)
  return message
}

type MergeJson = (desc: DescMessage, message: Message, part: unknown) => void

function* readInto(desc: DescMessage, message: Message, json: unknown, merge: MergeJson, depth: number): Cooperative<void> {
  const fields = new Map(isSmallJson(json) ? [] : desc.fields.flatMap((field) => [field.jsonName, field.name].map((name) => [name, field] as const)))
  const given = isObject(json) ? Object.keys(json).map((name) => fields.get(name) ?? name) : []
  // The library rejects a field with two names.
  if (fields.size === 0 || !isObject(json) || hasOwnJson(desc) || depth > MAX_DEPTH || new Set(given).size !== given.length) {
    merge(desc, message, json)
    yield
    return
  }
  const rest: [name: string, value: unknown][] = []
  for (const [name, value] of Object.entries(json)) {
    const field = fields.get(name)
    if (field === undefined || isSmallJson(value)) rest.push([name, value])
    else if (field.fieldKind === 'list' && Array.isArray(value)) {
      for (const piece of piecesOf(value, SMALL_SIZE, sizeOfJson)) {
        const [only] = piece
        if (piece.length === 1 && isPlainMessage(field) && isObject(only) && !isSmallJson(only))
          yield* readInto(field.message, childOf(message, field), only, merge, depth + 1)
        else merge(desc, message, { [name]: piece })
        yield
      }
    } else if (field.fieldKind === 'map' && isObject(value)) {
      for (const piece of piecesOf(Object.entries(value), SMALL_SIZE, sizeOfJson)) {
        merge(desc, message, { [name]: Object.fromEntries(piece) })
        yield
      }
    } else if (field.fieldKind === 'message' && isPlainMessage(field) && isObject(value))
      yield* readInto(field.message, childOf(message, field), value, merge, depth + 1)
    else rest.push([name, value])
  }
  merge(desc, message, Object.fromEntries(rest))
  yield
}

/** Parts of a list: items that have the size `limit` together, or one item. `sizeOf` may stop at the limit. */
function* piecesOf<Item>(items: readonly Item[], limit: number, sizeOf: (item: Item) => number): Generator<Item[], void, undefined> {
  let start = 0
  let size = 0
  for (const [index, item] of items.entries()) {
    const own = sizeOf(item)
    if (size + own > limit && index > start) {
      yield items.slice(start, index)
      start = index
      size = 0
    }
    size += own
  }
  if (start < items.length) yield items.slice(start)
}

type PlainField = DescField & { readonly fieldKind: 'message' | 'list'; readonly message: DescMessage }

/** Whether the values of a field are messages that the library keeps as such, and that are not one of several alternatives. */
const isPlainMessage = (field: DescField): field is PlainField =>
  (field.fieldKind === 'message' || (field.fieldKind === 'list' && field.listKind === 'message')) &&
  field.oneof === undefined &&
  !field.delimitedEncoding &&
  field.jsonName !== '__proto__' &&
  !hasOwnJson(field.message)

/** Whether a message has a form of its own in JSON. */
const hasOwnJson = ({ typeName }: DescMessage): boolean => typeName.startsWith('google.protobuf.')

/** The message in a field, which is created if there is none; in a list, the next one. */
function childOf(message: Message, { fieldKind, localName, message: desc }: PlainField): Message {
  const values = message as unknown as Fields
  const child = (fieldKind === 'message' ? (values[localName] as Message | undefined) : undefined) ?? create(desc)
  if (fieldKind === 'list') (values[localName] as Message[]).push(child)
  else values[localName] = child
  return child
}
