import { crc32 } from 'node:zlib'

/** A message of the AWS event stream encoding (`application/vnd.amazon.eventstream`). */
export interface Frame {
  /** String headers only: `:message-type`, `:event-type`, `:exception-type`. */
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Buffer
}

/** Bytes of the prelude: total length, header length, CRC of both. */
const PRELUDE = 12
const CRC = 4

/** Bytes of header values by type; -1 if two bytes of length precede the value. */
const valueSizes = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const STRING = 7

/** The bytes are not a valid frame. */
class FrameError extends Error {}

/** Splits bytes into frames, wherever chunks end. Returns no more frames after a wrong checksum or a frame larger than `maxBytes`. */
export class FrameScanner {
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #size = 0
  /** Bytes needed before the next frame can be parsed. */
  #wanted = PRELUDE
  #error: string | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of the incomplete frame. */
  get pending(): number {
    return this.#size
  }

  /** Why no more frames are returned; undefined if there was no error. */
  get error(): string | undefined {
    return this.#error
  }

  push(chunk: Buffer): Frame[] {
    if (this.#error !== undefined) return []
    this.#parts.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#wanted) return []
    const frames: Frame[] = []
    let rest: Buffer = Buffer.concat(this.#parts)
    try {
      rest = this.#cut(rest, frames)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.#error = error.message
      rest = Buffer.alloc(0)
    }
    this.#parts = rest.length > 0 ? [rest] : []
    this.#size = rest.length
    return frames
  }

  #cut(bytes: Buffer, frames: Frame[]): Buffer {
    let rest = bytes
    for (this.#wanted = PRELUDE; rest.length >= PRELUDE; this.#wanted = PRELUDE) {
      const total = this.#checkPrelude(rest)
      this.#wanted = total
      if (rest.length < total) break
      frames.push(parseFrame(rest.subarray(0, total)))
      rest = rest.subarray(total)
    }
    return rest
  }

  #checkPrelude(bytes: Buffer): number {
    const total = bytes.readUInt32BE(0)
    if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw new FrameError('event stream prelude has a wrong checksum')
    if (total > this.#maxBytes) throw new FrameError(`event stream frame of ${total} bytes exceeds ${this.#maxBytes}`)
    if (total < PRELUDE + CRC + bytes.readUInt32BE(4)) throw new FrameError('event stream frame is shorter than its headers')
    return total
  }
}

function parseFrame(bytes: Buffer): Frame {
  const end = bytes.length - CRC
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new FrameError('event stream frame has a wrong checksum')
  const headersEnd = PRELUDE + bytes.readUInt32BE(4)
  return { headers: parseHeaders(bytes.subarray(PRELUDE, headersEnd)), payload: bytes.subarray(headersEnd, end) }
}

function parseHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  for (let at = 0; at < bytes.length;) {
    const nameEnd = at + 1 + (bytes[at] ?? 0)
    const type = bytes[nameEnd] ?? -1
    const fixed = valueSizes[type]
    if (fixed === undefined || nameEnd + 3 > bytes.length + (fixed === -1 ? 0 : 2)) throw new FrameError('event stream header is malformed')
    const start = nameEnd + (fixed === -1 ? 3 : 1)
    const end = start + (fixed === -1 ? bytes.readUInt16BE(nameEnd + 1) : fixed)
    if (end > bytes.length) throw new FrameError('event stream header is cut')
    if (type === STRING) headers.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', start, end))
    at = end
  }
  return headers
}
