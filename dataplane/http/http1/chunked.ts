import { parseTrailers } from './fields.ts'
import type { HeaderList } from '../headers.ts'
import { hasBareLineFeed, MessageError, type HeadLimits } from '../syntax.ts'

/** Longest line of a chunk header, extensions included. */
const MAX_SIZE_LINE = 256
/** Limit of extension bytes in one body. Extensions are parsed and ignored. */
const MAX_EXTENSION_BYTES = 16_384
const MAX_SIZE_DIGITS = 13

const CR = 13
const LF = 10
const SEMICOLON = 0x3b

/** `;name`, `;name=token`, `;name="text"`, without the optional white space of RFC 9112 §7.1.1, which no client sends. */
const extensions = /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)+$/

type State = 'size' | 'data' | 'data-end' | 'trailers' | 'done'

/** Decodes the chunked coding (RFC 9112 §7.1), strictly: CRLF only, plain hexadecimal sizes, bounded extensions and trailers. */
export class ChunkedDecoder {
  readonly #limits: HeadLimits
  #state: State = 'size'
  #remaining = 0
  #extensionBytes = 0
  /** Start of a line, of a chunk's CRLF or of the trailers, whose rest was not in the last input. */
  #partial: Buffer | undefined = undefined
  trailers: HeaderList | undefined = undefined

  constructor(limits: HeadLimits) {
    this.#limits = limits
  }

  /**
   * Decodes `input` and passes data to `onData`. Returns the index after the end of the body in `input`, or -1 if the body continues.
   * Throws MessageError.
   */
  decode(input: Buffer, onData: (chunk: Buffer) => void): number {
    const held = this.#partial?.length ?? 0
    const bytes = this.#partial === undefined ? input : Buffer.concat([this.#partial, input])
    this.#partial = undefined
    let at = 0
    while (this.#state !== 'done') {
      const next = this.#state === 'data' ? this.#takeData(bytes, at, onData) : this.#takeLine(bytes, at)
      if (next === -1) {
        // A copy: the input may be reused.
        if (at < bytes.length) this.#partial = Buffer.from(bytes.subarray(at))
        return -1
      }
      at = next
    }
    // The held bytes never contain the end of the body, so it is in this input.
    return at - held
  }

  #takeData(bytes: Buffer, at: number, onData: (chunk: Buffer) => void): number {
    if (at === bytes.length) return -1
    const end = Math.min(bytes.length, at + this.#remaining)
    this.#remaining -= end - at
    if (this.#remaining === 0) this.#state = 'data-end'
    onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    return end
  }

  #takeLine(bytes: Buffer, at: number): number {
    if (this.#state === 'data-end') return this.#takeDataEnd(bytes, at)
    return this.#state === 'size' ? this.#takeSize(bytes, at) : this.#takeTrailers(bytes, at)
  }

  #takeDataEnd(bytes: Buffer, at: number): number {
    if ((at < bytes.length && bytes[at] !== CR) || (at + 1 < bytes.length && bytes[at + 1] !== LF)) throw new MessageError(400, 'chunk does not end with CRLF')
    if (at + 2 > bytes.length) return -1
    this.#state = 'size'
    return at + 2
  }

  #takeSize(bytes: Buffer, at: number): number {
    let size = 0
    let end = at
    for (; end < bytes.length; end++) {
      const digit = hexDigit(bytes[end] ?? 0)
      if (digit === -1) break
      size = size * 16 + digit
    }
    if (end - at > MAX_SIZE_DIGITS) throw new MessageError(400, 'chunk size has too many digits')
    if (end === bytes.length) return -1
    if (end === at) throw new MessageError(400, 'chunk size is not hexadecimal')
    const lineEnd = this.#findSizeLineEnd(bytes, at, end)
    if (lineEnd === -1) return -1
    this.#remaining = size
    this.#state = size === 0 ? 'trailers' : 'data'
    return lineEnd
  }

  /** Index after the CRLF. Only extensions may precede it. */
  #findSizeLineEnd(bytes: Buffer, start: number, digitsEnd: number): number {
    const first = bytes[digitsEnd]
    if (first !== CR && first !== SEMICOLON) throw new MessageError(400, 'chunk size is not hexadecimal')
    const end = first === CR ? digitsEnd : bytes.indexOf(CR, digitsEnd)
    if ((end === -1 ? bytes.length : end) - start > MAX_SIZE_LINE) throw new MessageError(400, 'chunk header is too long')
    if (end === -1 || end + 1 === bytes.length) return -1
    if (bytes[end + 1] !== LF) throw new MessageError(400, 'bare CR in a chunk header')
    if (end > digitsEnd) {
      this.#extensionBytes += end - digitsEnd
      if (this.#extensionBytes > MAX_EXTENSION_BYTES) throw new MessageError(400, 'too many chunk extensions')
      if (!extensions.test(bytes.toString('latin1', digitsEnd, end))) throw new MessageError(400, 'invalid chunk extension')
    }
    return end + 2
  }

  #takeTrailers(bytes: Buffer, at: number): number {
    if (bytes[at] === CR && bytes[at + 1] === LF) {
      this.#state = 'done'
      return at + 2
    }
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1')
    const length = (end === -1 ? bytes.length : end) - at
    if (length > this.#limits.maxHeadBytes) throw new MessageError(431, `trailers exceed ${this.#limits.maxHeadBytes} bytes`)
    if (end === -1) {
      if (hasBareLineFeed(bytes, at) || (bytes[at] === CR && at + 1 < bytes.length)) throw new MessageError(400, 'trailers do not end with CRLF')
      return -1
    }
    this.trailers = parseTrailers(bytes.toString('latin1', at, end + 2), this.#limits)
    this.#state = 'done'
    return end + 4
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
