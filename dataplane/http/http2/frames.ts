/** Frame types (RFC 9113 §6). */
export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

/** Frame flags (RFC 9113 §6). */
export const END_STREAM = 1
export const ACK = 1
export const END_HEADERS = 4
export const PADDED = 8
export const HAS_PRIORITY = 32

/** Error codes (RFC 9113 §7). */
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11
export const HTTP_1_1_REQUIRED = 13

/** Parameters of SETTINGS (RFC 9113 §6.5.2, RFC 8441 §3). */
export const SETTINGS_HEADER_TABLE_SIZE = 1
export const SETTINGS_ENABLE_PUSH = 2
export const SETTINGS_MAX_CONCURRENT_STREAMS = 3
export const SETTINGS_INITIAL_WINDOW_SIZE = 4
export const SETTINGS_MAX_FRAME_SIZE = 5
export const SETTINGS_MAX_HEADER_LIST_SIZE = 6
export const SETTINGS_ENABLE_CONNECT_PROTOCOL = 8

/** The client's connection preface (RFC 9113 §3.4). */
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export const FRAME_HEADER_BYTES = 9
export const MAX_WINDOW = 0x7fff_ffff
export const MAX_STREAM_ID = 0x7fff_ffff

/** Violation of the protocol by the peer that ends the connection with GOAWAY (RFC 9113 §5.4.1). */
export class ConnectionError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.name = 'ConnectionError'
    this.code = code
  }
}

/** Violation of the protocol by the peer that ends one stream with RST_STREAM (RFC 9113 §5.4.2). */
export class StreamError extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.name = 'StreamError'
    this.code = code
  }
}

/** Receives the frames of a Http2FrameReader. */
export interface FrameSink {
  /** One frame; its payload is `bytes` from `from` to `to`. The bytes are not changed later, so views of them may be kept. */
  readFrame(bytes: Buffer, from: number, to: number, type: number, flags: number, id: number): void
  /** Whether to read the next frame now. The rest is kept for `resume` otherwise. */
  readonly acceptsFrames: boolean
}

/**
 * Splits the bytes of a connection into frames (RFC 9113 §4.1). Frames that lie within one chunk are not copied; a frame that spans chunks is
 * collected into a buffer of its size.
 */
export class Http2FrameReader {
  readonly #sink: FrameSink
  readonly #maxPayload: number
  /** The header, then the whole of a frame that began in an earlier chunk. */
  #partial: Buffer = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES)
  readonly #header = this.#partial
  #filled = 0
  /** Bytes that were received while the sink did not accept frames. */
  #waiting: Buffer[] | undefined

  constructor(sink: FrameSink, maxPayload: number) {
    this.#sink = sink
    this.#maxPayload = maxPayload
  }

  /** Reads a chunk. Throws ConnectionError, also on behalf of the sink. */
  read(chunk: Buffer): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(chunk)
      return
    }
    const at = this.#readSome(chunk)
    if (at < chunk.length) this.#waiting = [chunk.subarray(at)]
  }

  /** Reads what was kept while the sink did not accept frames. */
  resume(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) for (const chunk of waiting) this.read(chunk)
  }

  /** Returns the offset of the first byte that was not read. */
  #readSome(chunk: Buffer): number {
    const end = chunk.length
    let at = this.#filled === 0 ? 0 : this.#complete(chunk)
    while (end - at >= FRAME_HEADER_BYTES) {
      if (!this.#sink.acceptsFrames) return at
      const next = at + FRAME_HEADER_BYTES + this.#lengthAt(chunk, at)
      if (next > end) break
      this.#deliver(chunk, at, next)
      at = next
    }
    if (at === end) return end
    if (!this.#sink.acceptsFrames) return at
    this.#keep(chunk, at)
    return end
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
    if (length > this.#maxPayload) throw new ConnectionError(FRAME_SIZE_ERROR, `frame of ${length} bytes exceeds ${this.#maxPayload}`)
    return length
  }

  #deliver(bytes: Buffer, at: number, next: number): void {
    const id = (((bytes[at + 5] ?? 0) & 0x7f) << 24) | ((bytes[at + 6] ?? 0) << 16) | ((bytes[at + 7] ?? 0) << 8) | (bytes[at + 8] ?? 0)
    this.#sink.readFrame(bytes, at + FRAME_HEADER_BYTES, next, bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, id)
  }

  /** Keeps the beginning of a frame. */
  #keep(chunk: Buffer, at: number): void {
    if (chunk.length - at >= FRAME_HEADER_BYTES) this.#partial = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + this.#lengthAt(chunk, at))
    this.#filled = chunk.copy(this.#partial, 0, at)
  }

  /** Continues the kept frame. Returns the offset after it. */
  #complete(chunk: Buffer): number {
    let at = 0
    if (this.#filled < FRAME_HEADER_BYTES) {
      at = chunk.copy(this.#partial, this.#filled, 0, FRAME_HEADER_BYTES - this.#filled)
      this.#filled += at
      if (this.#filled < FRAME_HEADER_BYTES) return at
      const whole = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + this.#lengthAt(this.#partial, 0))
      this.#partial.copy(whole, 0)
      this.#partial = whole
    }
    const copied = chunk.copy(this.#partial, this.#filled, at)
    this.#filled += copied
    at += copied
    const frame = this.#partial
    if (this.#filled < frame.length) return at
    this.#partial = this.#header
    this.#filled = 0
    this.#deliver(frame, 0, frame.length)
    return at
  }
}

/** Encodes the header of a frame as a Latin-1 string. */
export function frameHeader(length: number, type: number, flags: number, id: number): string {
  return String.fromCharCode(length >> 16, (length >> 8) & 255, length & 255, type, flags, id >>> 24, (id >> 16) & 255, (id >> 8) & 255, id & 255)
}

/** Encodes a number of 32 bits as a Latin-1 string. */
export function uint32(value: number): string {
  return String.fromCharCode(value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255)
}

/** Encodes one parameter of SETTINGS. */
export function settingBytes(parameter: number, value: number): string {
  return `\0${String.fromCharCode(parameter)}${uint32(value)}`
}

/** Throws ConnectionError if a frame of a stream has no stream identifier. */
export function requireStream(id: number): void {
  if (id === 0) throw new ConnectionError(PROTOCOL_ERROR, 'frame without a stream')
}

/** Throws ConnectionError if a frame of the connection has a stream identifier. */
export function requireConnection(id: number): void {
  if (id !== 0) throw new ConnectionError(PROTOCOL_ERROR, 'frame of the connection on a stream')
}
