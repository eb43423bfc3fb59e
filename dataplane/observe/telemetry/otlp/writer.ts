/** Texts up to this length have a one-byte length, and are copied faster in JavaScript than by native code. */
const SHORT_TEXT = 100

/** Writes protobuf into one growing, reusable buffer. Fields are identified by tag: `number << 3 | wire type`. */
export class ProtoWriter {
  #bytes: Buffer
  #end = 0

  constructor(size = 1024) {
    this.#bytes = Buffer.allocUnsafeSlow(size)
  }

  get length(): number {
    return this.#end
  }

  /** The written bytes; valid until the next write. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end)
  }

  clear(): void {
    this.#end = 0
  }

  varint(value: number): void {
    this.#reserve(10)
    this.#end = putVarint(this.#bytes, this.#end, value)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#end)
    this.#end += bytes.length
  }

  /** Writes a field of bytes or of an encoded message. */
  bytesField(tag: number, bytes: Uint8Array): void {
    this.varint(tag)
    this.varint(bytes.length)
    this.raw(bytes)
  }

  /** Writes a field with the message of another writer. */
  messageField(tag: number, message: ProtoWriter): void {
    const { length } = message
    this.varint(tag)
    this.varint(length)
    this.#reserve(length)
    message.#bytes.copy(this.#bytes, this.#end, 0, length)
    this.#end += length
  }

  stringField(tag: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.varint(tag)
    this.varint(length)
    this.#reserve(length)
    this.#end += this.#bytes.write(text, this.#end)
  }

  /** Writes a field of bytes from hexadecimal digits. */
  hexField(tag: number, digits: string): void {
    this.varint(tag)
    this.varint(digits.length / 2)
    this.#reserve(digits.length / 2)
    this.#end += this.#bytes.write(digits, this.#end, 'hex')
  }

  varintField(tag: number, value: number): void {
    this.varint(tag)
    this.varint(value)
  }

  fixed32Field(tag: number, value: number): void {
    this.varint(tag)
    this.#reserve(4)
    this.#end = putFixed32(this.#bytes, this.#end, value)
  }

  doubleField(tag: number, value: number): void {
    this.varint(tag)
    this.#reserve(8)
    this.#end = this.#bytes.writeDoubleLE(value, this.#end)
  }

  /** Writes epoch milliseconds as nanoseconds, rounded to microseconds: a double has no more precision. In two parts, because the product exceeds it. */
  nanosField(tag: number, epochMs: number): void {
    const micros = Math.round(epochMs * 1000)
    const upper = Math.floor(micros / 65_536) * 1000
    const lower = (micros % 65_536) * 1000 + (upper % 65_536) * 65_536
    this.varint(tag)
    this.#reserve(8)
    this.#end = putFixed32(this.#bytes, this.#end, lower % 4_294_967_296)
    this.#end = putFixed32(this.#bytes, this.#end, Math.floor(upper / 65_536) + Math.floor(lower / 4_294_967_296))
  }

  /** Writes a KeyValue with a text; `key` is the encoded field of its key. */
  textAttribute(tag: number, key: Buffer, text: string): void {
    if (text.length <= SHORT_TEXT && this.#shortAttribute(tag, key, text)) return
    const length = Buffer.byteLength(text)
    const valueLength = 1 + varintLength(length) + length
    this.#reserve(key.length + length + 32)
    const bytes = this.#bytes
    let end = this.#startAttribute(tag, key, valueLength)
    bytes[end++] = 0x0a
    end = putVarint(bytes, end, length)
    this.#end = end + bytes.write(text, end)
  }

  numberAttribute(tag: number, key: Buffer, value: number): void {
    this.#reserve(key.length + 40)
    const bytes = this.#bytes
    if (Number.isSafeInteger(value) && value >= 0) {
      const end = this.#startAttribute(tag, key, 1 + varintLength(value))
      bytes[end] = 0x18
      this.#end = putVarint(bytes, end + 1, value)
      return
    }
    const end = this.#startAttribute(tag, key, 9)
    bytes[end] = 0x21
    this.#end = bytes.writeDoubleLE(value, end + 1)
  }

  booleanAttribute(tag: number, key: Buffer, value: boolean): void {
    this.#reserve(key.length + 32)
    const end = this.#startAttribute(tag, key, 2)
    this.#bytes[end] = 0x10
    this.#bytes[end + 1] = value ? 1 : 0
    this.#end = end + 2
  }

  /** Writes a short ASCII text without native code. Returns false, and writes nothing, if it contains other characters. */
  #shortAttribute(tag: number, key: Buffer, text: string): boolean {
    const { length } = text
    this.#reserve(key.length + length + 32)
    const bytes = this.#bytes
    let end = this.#startAttribute(tag, key, 2 + length)
    bytes[end++] = 0x0a
    bytes[end++] = length
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return false
      bytes[end++] = code
    }
    this.#end = end
    return true
  }

  /** Writes a KeyValue up to the member of its AnyValue; the caller has reserved the space. */
  #startAttribute(tag: number, key: Buffer, valueLength: number): number {
    const bytes = this.#bytes
    let end = putVarint(bytes, this.#end, tag)
    end = putVarint(bytes, end, key.length + 1 + varintLength(valueLength) + valueLength)
    for (let i = 0; i < key.length; i++) bytes[end++] = key[i] as number
    bytes[end++] = 0x12
    return putVarint(bytes, end, valueLength)
  }

  #reserve(more: number): void {
    if (this.#end + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#end + more))
    larger.set(this.#bytes.subarray(0, this.#end))
    this.#bytes = larger
  }
}

function putVarint(bytes: Buffer, at: number, value: number): number {
  let rest = value
  let end = at
  // Beyond 2^31 bit operations lose bits, division does not.
  while (rest > 0x7f) {
    bytes[end++] = (rest % 128) | 0x80
    rest = Math.floor(rest / 128)
  }
  bytes[end++] = rest
  return end
}

function putFixed32(bytes: Buffer, at: number, value: number): number {
  bytes[at] = value & 0xff
  bytes[at + 1] = (value >>> 8) & 0xff
  bytes[at + 2] = (value >>> 16) & 0xff
  bytes[at + 3] = value >>> 24
  return at + 4
}

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) length++
  return length
}
