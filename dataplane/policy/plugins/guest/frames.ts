/** Longest message between the gateway and the process of a plugin. */
export const MAX_FRAME_BYTES = 32 * 1024 * 1024
/** Longest JSON of a message from a process: parsing takes at most some milliseconds, whatever it is. */
export const MAX_JSON_BYTES = 128 * 1024

/** Members that stand for bytes and for a long text in the JSON of a message: place and length in the bytes that follow it. */
const BYTES = '\u0000bytes'
const TEXT = '\u0000text'
const LONG_TEXT = 512

/** A frame: length of the rest, length of the JSON (both 4 bytes), JSON, and the bytes of its members of type Uint8Array and of its long texts. */
export function encodeFrame(message: object): Buffer {
  const parts: Uint8Array[] = []
  let size = 0
  const json = Buffer.from(
    JSON.stringify(message, function (this: Record<string, unknown>, key, value: unknown) {
      // Before toJSON of a Buffer.
      const raw = this[key]
      const isText = typeof raw === 'string' && raw.length > LONG_TEXT
      if (!isText && !(raw instanceof Uint8Array)) return value
      const part = isText ? Buffer.from(raw) : (raw as Uint8Array)
      parts.push(part)
      size += part.length
      return { [isText ? TEXT : BYTES]: [size - part.length, part.length] }
    }),
  )
  const head = Buffer.alloc(8)
  head.writeUInt32BE(4 + json.length + size, 0)
  head.writeUInt32BE(json.length, 4)
  return Buffer.concat([head, json, ...parts])
}

/** Reads frames from chunks. */
export class MessageReader {
  readonly #onMessage: (message: unknown) => void
  readonly #maxJsonBytes: number
  #chunks: Buffer[] = []
  #size = 0

  constructor(onMessage: (message: unknown) => void, maxJsonBytes = MAX_FRAME_BYTES) {
    this.#onMessage = onMessage
    this.#maxJsonBytes = maxJsonBytes
  }

  /** Throws an Error if a frame is too long or malformed. */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    for (;;) {
      if (this.#size < 4) return
      if ((this.#chunks[0]?.length ?? 0) < 4) this.#join()
      const length = this.#chunks[0]?.readUInt32BE(0) ?? 0
      if (length > MAX_FRAME_BYTES) throw new Error(`a message of ${length} bytes; the limit is ${MAX_FRAME_BYTES}`)
      if (this.#size < 4 + length) return
      this.#join()
      const all = this.#chunks[0] ?? Buffer.alloc(0)
      const frame = all.subarray(4, 4 + length)
      this.#chunks = all.length > 4 + length ? [all.subarray(4 + length)] : []
      this.#size = all.length - 4 - length
      this.#onMessage(decode(frame, this.#maxJsonBytes))
    }
  }

  #join(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
  }
}

function decode(frame: Buffer, maxJsonBytes: number): unknown {
  const length = frame.length < 4 ? 0 : frame.readUInt32BE(0)
  if (length === 0 || length > frame.length - 4) throw new Error('a malformed message')
  if (length > maxJsonBytes) throw new Error(`a message with ${length} bytes besides bodies and long texts; the limit is ${maxJsonBytes}`)
  const bytes = frame.subarray(4 + length)
  // References may overlap: what they make together is bounded, too.
  let left = bytes.length
  return JSON.parse(frame.subarray(4, 4 + length).toString(), (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value
    const member = Object.hasOwn(value, BYTES) ? BYTES : Object.hasOwn(value, TEXT) ? TEXT : undefined
    if (member === undefined) return value
    const [at, size] = (value as Record<string, unknown[]>)[member] ?? []
    if (typeof at !== 'number' || typeof size !== 'number' || at < 0 || size < 0 || at + size > bytes.length) throw new Error('a malformed message')
    left -= size
    if (left < 0) throw new Error('a malformed message')
    return member === TEXT ? bytes.toString('utf8', at, at + size) : Uint8Array.prototype.slice.call(bytes, at, at + size)
  })
}
