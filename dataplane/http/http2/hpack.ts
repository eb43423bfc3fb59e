import { isFieldValue } from '../syntax.ts'
import { COMPRESSION_ERROR, ConnectionError } from './frames.ts'
import { decodeHuffman } from './huffman.ts'
import { staticTable } from './static-table.ts'

/** Size of the dynamic table that both sides assume without SETTINGS_HEADER_TABLE_SIZE (RFC 9113 §6.5.2). */
export const DEFAULT_TABLE_SIZE = 4096
/** Size that each field has beyond its name and value (RFC 7541 §4.1). */
const FIELD_OVERHEAD = 32
const STATIC_LENGTH = staticTable.length
const staticNames: readonly string[] = staticTable.map(([name]) => name)
const staticValues: readonly string[] = staticTable.map(([, value]) => value)

/**
 * The dynamic table of a decoder (RFC 7541 §2.3.2): a ring that is addressed by the number of insertions, so that insertions move nothing. The ring
 * holds as many fields as fit into the default size.
 */
class DynamicTable {
  readonly #names: string[] = []
  readonly #values: string[] = []
  readonly #malformed: boolean[] = []
  #inserts = 0
  #count = 0
  #size = 0
  #maxSize = DEFAULT_TABLE_SIZE
  static readonly #mask = DEFAULT_TABLE_SIZE / FIELD_OVERHEAD - 1

  add(name: string, value: string, isMalformed: boolean): void {
    const size = name.length + value.length + FIELD_OVERHEAD
    while (this.#count > 0 && this.#size + size > this.#maxSize) this.#evict()
    // A field that is larger than the table empties it (RFC 7541 §4.4).
    if (size > this.#maxSize) return
    const at = this.#inserts & DynamicTable.#mask
    this.#names[at] = name
    this.#values[at] = value
    this.#malformed[at] = isMalformed
    this.#inserts++
    this.#count++
    this.#size += size
  }

  resize(maxSize: number): void {
    this.#maxSize = maxSize
    while (this.#size > maxSize) this.#evict()
  }

  /** Position of the field with an index after the static table, from 1. Throws ConnectionError. */
  find(index: number): number {
    if (index > this.#count) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK index beyond the table')
    return (this.#inserts - index) & DynamicTable.#mask
  }

  nameAt(position: number): string {
    return this.#names[position] ?? ''
  }

  valueAt(position: number): string {
    return this.#values[position] ?? ''
  }

  isMalformedAt(position: number): boolean {
    return this.#malformed[position] ?? false
  }

  #evict(): void {
    const at = (this.#inserts - this.#count) & DynamicTable.#mask
    this.#size -= this.nameAt(at).length + this.valueAt(at).length + FIELD_OVERHEAD
    // Release the texts.
    this.#names[at] = ''
    this.#values[at] = ''
    this.#count--
  }
}

/** Names that are valid; bounded, because peers choose them. */
const validNames = new Set<string>(staticNames)
const MAX_VALID_NAMES = 2000
// Lower-case tokens (RFC 9113 §8.2.1), and pseudo-header fields.
const validName = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/

function isValidName(name: string): boolean {
  if (validNames.has(name)) return true
  if (!validName.test(name)) return false
  if (validNames.size < MAX_VALID_NAMES) validNames.add(name)
  return true
}

/** Whether a value has no control characters and no white space at its ends (RFC 9113 §8.2.1). */
function isValidValue(value: string): boolean {
  if (value === '') return true
  const first = value.charCodeAt(0)
  const last = value.charCodeAt(value.length - 1)
  return first > 32 && last > 32 && isFieldValue(value)
}

/** What is wrong with the fields of a block: a name or value that HTTP/2 forbids (RFC 9113 §8.2.1), or more than the limit. */
export type HeaderProblem = 'malformed' | 'too large'

/**
 * Decodes header blocks (RFC 7541 §3). Every block of a connection must be decoded in order, also those of rejected streams, because they
 * change the table. Fields beyond the limit of a block are decoded but not returned, so a block of references to large fields uses no memory.
 */
export class HpackDecoder {
  /** What is wrong with the fields of the last block. */
  problem: HeaderProblem | undefined = undefined
  readonly #table = new DynamicTable()
  #at = 0

  /** Decodes a block to a flat list of names and values. `maxSize` limits the sum of names, values and 32 per field. Throws ConnectionError. */
  decode(bytes: Buffer, from: number, to: number, maxSize: number): string[] {
    const fields: string[] = []
    const table = this.#table
    let size = 0
    let updates = 0
    this.problem = undefined
    this.#at = from
    while (this.#at < to) {
      const first = bytes[this.#at] ?? 0
      let name: string
      let value: string
      if (first >= 0x80) {
        const index = this.#readInteger(bytes, to, 0x7f)
        if (index === 0) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK index 0')
        if (index <= STATIC_LENGTH) {
          name = staticNames[index - 1] ?? ''
          value = staticValues[index - 1] ?? ''
        } else {
          const position = table.find(index - STATIC_LENGTH)
          name = table.nameAt(position)
          value = table.valueAt(position)
          if (table.isMalformedAt(position)) this.problem = 'malformed'
        }
      } else if (first >= 0x20 && first < 0x40) {
        const maxTableSize = this.#readInteger(bytes, to, 0x1f)
        // At most two updates, at the beginning of a block (RFC 7541 §4.2).
        if (fields.length > 0 || size > 0 || ++updates > 2) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK table size update after a field')
        if (maxTableSize > DEFAULT_TABLE_SIZE) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK table size beyond the limit')
        table.resize(maxTableSize)
        continue
      } else {
        const isIndexed = first >= 0x40
        const index = this.#readInteger(bytes, to, isIndexed ? 0x3f : 0x0f)
        if (index === 0) name = this.#readString(bytes, to)
        else if (index <= STATIC_LENGTH) name = staticNames[index - 1] ?? ''
        else name = table.nameAt(table.find(index - STATIC_LENGTH))
        value = this.#readString(bytes, to)
        const isMalformed = !isValidName(name) || !isValidValue(value)
        if (isMalformed) this.problem = 'malformed'
        if (isIndexed) table.add(name, value, isMalformed)
      }
      size += name.length + value.length + FIELD_OVERHEAD
      if (size > maxSize) this.problem ??= 'too large'
      else fields.push(name, value)
    }
    return fields
  }

  /** Reads an integer whose first byte holds the bits of `mask` (RFC 7541 §5.1). */
  #readInteger(bytes: Buffer, to: number, mask: number): number {
    let value = (bytes[this.#at++] ?? 0) & mask
    if (value < mask) return value
    for (let shift = 0; ; shift += 7) {
      // 2^28 is more than any table, string or block.
      if (this.#at >= to || shift > 21) throw new ConnectionError(COMPRESSION_ERROR, 'invalid HPACK integer')
      const byte = bytes[this.#at++] ?? 0
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  /** Reads a string literal (RFC 7541 §5.2). */
  #readString(bytes: Buffer, to: number): string {
    if (this.#at >= to) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK block ends within a field')
    const isHuffman = (bytes[this.#at] ?? 0) >= 0x80
    const length = this.#readInteger(bytes, to, 0x7f)
    const start = this.#at
    const end = start + length
    if (end > to) throw new ConnectionError(COMPRESSION_ERROR, 'HPACK block ends within a string')
    this.#at = end
    const text = isHuffman ? decodeHuffman(bytes, start, end) : bytes.toString('latin1', start, end)
    if (text === undefined) throw new ConnectionError(COMPRESSION_ERROR, 'invalid Huffman code')
    return text
  }
}

/** Dynamic table size update to 0 (RFC 7541 §6.3). */
export const EMPTY_TABLE_UPDATE = '\x20'

function integer(first: number, mask: number, value: number): string {
  if (value < mask) return String.fromCharCode(first | value)
  let text = String.fromCharCode(first | mask)
  let rest = value - mask
  for (; rest >= 128; rest >>= 7) text += String.fromCharCode((rest & 127) | 128)
  return text + String.fromCharCode(rest)
}

const staticFields = new Map<string, string>()
const staticNameIndex = new Map<string, number>()
for (const [at, [name, value]] of staticTable.entries()) {
  if (value !== '') staticFields.set(`${name}\n${value}`, integer(0x80, 0x7f, at + 1))
  if (!staticNameIndex.has(name)) staticNameIndex.set(name, at + 1)
}

/** Encodes the name of a literal field without indexing, up to its value (RFC 7541 §6.2.2). Names of the static table are references. */
export function encodeName(name: string): string {
  const index = staticNameIndex.get(name)
  return index === undefined ? `\0${integer(0, 0x7f, name.length)}${name}` : integer(0, 0x0f, index)
}

/**
 * Encodes a value as a string literal without Huffman code. The encoders of this module do not use the dynamic table: blocks are independent of
 * each other and of the order of streams, and one that is never sent changes nothing.
 */
export function encodeValue(value: string): string {
  return (value.length < 0x7f ? String.fromCharCode(value.length) : integer(0, 0x7f, value.length)) + value
}

/** Encodes a field of which the static table may hold the value too, such as a pseudo-header field. */
export function encodeField(name: string, value: string): string {
  return staticFields.get(`${name}\n${value}`) ?? encodeName(name) + encodeValue(value)
}
