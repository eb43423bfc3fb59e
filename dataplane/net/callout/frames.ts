/** Encodes a gRPC frame: a flag, four bytes of length, the message (gRPC over HTTP/2, Length-Prefixed-Message). Never compressed. */
export function encodeFrame(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(message.length + HEAD_BYTES)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, HEAD_BYTES)
  return frame
}

const HEAD_BYTES = 5

/** The bytes are not a valid stream of gRPC frames. */
class FrameError extends Error {}

/** Splits a byte stream into the messages of gRPC frames. */
export class FrameReader {
  readonly #limitBytes: number
  #chunks: Buffer[] = []
  #size = 0
  /** Length of the next message, once its frame head was read. */
  #length: number | undefined

  /** @param limitBytes maximum length of a message */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Whether the bytes so far end at the end of a message. */
  get isAtBoundary(): boolean {
    return this.#size === 0 && this.#length === undefined
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#chunks.push(chunk)
    this.#size += chunk.length
  }

  /** The next complete message; undefined if more bytes are needed. Throws a FrameError. */
  next(): Buffer | undefined {
    if (this.#length === undefined) {
      if (this.#size < HEAD_BYTES) return undefined
      const head = this.#take(HEAD_BYTES)
      if (head[0] !== 0) throw new FrameError('a message is compressed, which was not offered')
      const length = head.readUInt32BE(1)
      if (length > this.#limitBytes) throw new FrameError(`a message of ${length} bytes exceeds ${this.#limitBytes}`)
      this.#length = length
    }
    if (this.#size < this.#length) return undefined
    const message = this.#take(this.#length)
    this.#length = undefined
    return message
  }

  #take(count: number): Buffer {
    this.#size -= count
    const first = this.#chunks[0] ?? Buffer.alloc(0)
    if (first.length > count) {
      this.#chunks[0] = first.subarray(count)
      return first.subarray(0, count)
    }
    const parts: Buffer[] = []
    for (let left = count; left > 0;) {
      const chunk = this.#chunks[0] ?? Buffer.alloc(0)
      parts.push(chunk.subarray(0, left))
      if (chunk.length > left) this.#chunks[0] = chunk.subarray(left)
      else this.#chunks.shift()
      left -= Math.min(left, chunk.length)
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
  }
}
