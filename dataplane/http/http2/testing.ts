import { connect, type Socket } from 'node:net'
import * as frames from './frames.ts'
import { encodeField, HpackDecoder } from './hpack.ts'

/** A frame as a test sends or receives it. */
export interface TestFrame {
  readonly type: number
  readonly flags: number
  readonly id: number
  readonly payload: Buffer
}

/** Encodes a frame; a text payload is Latin-1. */
export function frame(type: number, flags: number, id: number, payload: Buffer | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload
  return Buffer.concat([Buffer.from(frames.frameHeader(bytes.length, type, flags, id), 'latin1'), bytes])
}

/** Encodes HEADERS of the fields. */
export function headers(id: number, fields: readonly (readonly [string, string])[], flags: number = frames.END_STREAM): Buffer {
  return frame(frames.HEADERS, frames.END_HEADERS | flags, id, fields.map(([name, value]) => encodeField(name, value)).join(''))
}

/** Fields of a request. */
export function requestFields(method: string, path: string, more: readonly (readonly [string, string])[] = []): (readonly [string, string])[] {
  return [[':method', method], [':scheme', 'http'], [':authority', 'test'], [':path', path], ...more]
}

/** Payload of a 32-bit number. */
export const uint32 = (value: number): Buffer => Buffer.from(frames.uint32(value), 'latin1')

/** Collects the frames of a connection. */
export class FrameCollector implements frames.FrameSink {
  readonly frames: TestFrame[] = []
  readonly acceptsFrames: boolean = true
  readonly reader = new frames.Http2FrameReader(this, 1 << 20)

  readFrame(bytes: Buffer, from: number, to: number, type: number, flags: number, id: number): void {
    this.frames.push({ type, flags, id, payload: Buffer.from(bytes.subarray(from, to)) })
  }
}

/** A client that sends frames as they are and records the frames that it receives. */
export interface RawClient {
  readonly socket: Socket
  readonly frames: TestFrame[]
  isClosed(): boolean
  send(...parts: Buffer[]): void
  /** Received frames of a type. */
  of(type: number, id?: number): TestFrame[]
  /** Decoded header sections of a stream, in order. Blocks must be decoded in the order received: call it once per client. */
  heads(): { id: number; fields: Record<string, string> }[]
  /** Bytes of DATA of a stream. */
  data(id: number): number
  /** Error code of the GOAWAY frame that ended the connection; undefined: none. */
  goaway(): number | undefined
  /** Error code of the RST_STREAM of a stream; undefined: none. */
  reset(id: number): number | undefined
}

/** Connects and sends the preface with SETTINGS (a payload). */
export function openRaw(port: number, settings: Buffer | string = '', sendsAck = true): RawClient {
  const socket = connect(port, '127.0.0.1')
  const collector = new FrameCollector()
  let closed = false
  socket.on('error', () => undefined)
  socket.on('close', () => (closed = true))
  socket.on('data', (chunk: Buffer) => collector.reader.read(chunk))
  socket.write(
    Buffer.concat([Buffer.from(frames.PREFACE), frame(frames.SETTINGS, 0, 0, settings), ...(sendsAck ? [frame(frames.SETTINGS, frames.ACK, 0)] : [])]),
  )
  const of = (type: number, id?: number): TestFrame[] => collector.frames.filter((one) => one.type === type && (id === undefined || one.id === id))
  return {
    socket,
    frames: collector.frames,
    isClosed: () => closed,
    send: (...parts) => void socket.write(Buffer.concat(parts)),
    of,
    heads() {
      const decoder = new HpackDecoder()
      return of(frames.HEADERS).map(({ id, payload }) => {
        const fields = decoder.decode(payload, 0, payload.length, 1 << 20)
        return { id, fields: Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, i) => [fields[i * 2] ?? '', fields[i * 2 + 1] ?? ''])) }
      })
    },
    data: (id) => of(frames.DATA, id).reduce((sum, { payload }) => sum + payload.length, 0),
    goaway: () => of(frames.GOAWAY).at(-1)?.payload.readUInt32BE(4),
    reset: (id) => of(frames.RST_STREAM, id).at(-1)?.payload.readUInt32BE(0),
  }
}
