/** Strings up to this length are faster to copy in JavaScript than with Buffer.write; their lengths take one byte. */
const SHORT_TEXT = 100
/** A larger buffer is not reused for the next message. */
const KEPT_BYTES = 1 << 20

/** Writes protobuf to one buffer that grows and is reused. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(4096)
  #end = 0

  clear(): void {
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(4096)
    this.#end = 0
  }

  /** The bytes written so far; valid until the next write. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end)
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#end++] = value
  }

  /** @param value an integer from 0 to 2^53 */
  varint(value: number): void {
    this.#reserve(8)
    let rest = value
    for (; rest > 0x7f; rest = Math.floor(rest / 128)) this.#bytes[this.#end++] = (rest % 128) | 0x80
    this.#bytes[this.#end++] = rest
  }

  /** Writes negative numbers as their two's complement. */
  varint64(value: bigint): void {
    if (value >= 0n && value <= Number.MAX_SAFE_INTEGER) return this.varint(Number(value))
    this.#reserve(10)
    let rest = BigInt.asUintN(64, value)
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#end++] = Number(rest & 0x7fn) | 0x80
    this.#bytes[this.#end++] = Number(rest)
  }

  fixed32(value: number): void {
    this.#reserve(4)
    this.#end = this.#bytes.writeUInt32LE(value >>> 0, this.#end)
  }

  fixed64(value: bigint): void {
    this.#reserve(8)
    this.#end = this.#bytes.writeBigUInt64LE(BigInt.asUintN(64, value), this.#end)
  }

  double(value: number): void {
    this.#reserve(8)
    this.#end = this.#bytes.writeDoubleLE(value, this.#end)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#end)
    this.#end += bytes.length
  }

  /** Writes the length, then the bytes. */
  block(bytes: Uint8Array): void {
    this.varint(bytes.length)
    this.raw(bytes)
  }

  /** Writes the length, then the UTF-8 text. */
  string(text: string): void {
    if (text.length <= SHORT_TEXT && this.#ascii(text)) return
    const length = Buffer.byteLength(text)
    this.varint(length)
    this.#reserve(length)
    this.#end += this.#bytes.write(text, this.#end)
  }

  /** Begins a part that is preceded by its length. Returns the argument for `close`. */
  open(): number {
    this.#reserve(1)
    return ++this.#end
  }

  close(from: number): void {
    const length = this.#end - from
    const bytes = this.#bytes
    if (length <= 0x7f) {
      bytes[from - 1] = length
      return
    }
    let width = 1
    for (let rest = length; rest > 0x7f; rest = Math.floor(rest / 128)) width++
    this.#reserve(width - 1)
    this.#bytes.copyWithin(from + width - 1, from, this.#end)
    this.#end = from - 1
    this.varint(length)
    this.#end += length
  }

  /** Writes nothing and returns false if the text is not ASCII. */
  #ascii(text: string): boolean {
    const { length } = text
    this.#reserve(length + 1)
    const bytes = this.#bytes
    let end = this.#end
    bytes[end++] = length
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > 0x7f) return false
      bytes[end++] = code
    }
    this.#end = end
    return true
  }

  #reserve(more: number): void {
    if (this.#end + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#end + more))
    larger.set(this.#bytes.subarray(0, this.#end))
    this.#bytes = larger
  }
}
