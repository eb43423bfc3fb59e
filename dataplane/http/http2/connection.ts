import type { Duplex } from 'node:stream'
import { readMemory } from '../read-memory.ts'
import { MessageError, type Underscores } from '../syntax.ts'
import { DEFAULT_WINDOW, FloodGuard, ReceiveWindow, SMALL_INCREMENT, type ConnectionLimits } from './flow.ts'
import * as frames from './frames.ts'
import { ConnectionError, Http2FrameReader, requireConnection, requireStream, StreamError, uint32, type FrameSink } from './frames.ts'
import { HeaderBlock } from './header-block.ts'
import { EMPTY_TABLE_UPDATE, HpackDecoder, type HeaderProblem } from './hpack.ts'
import { Output } from './output.ts'
import { PeerSettings } from './peer-settings.ts'
import { ReadyQueue } from './ready-queue.ts'
import { StreamTable } from './stream-table.ts'
import type { Http2Stream, StreamOwner } from './stream.ts'

/** Bytes of DATA that one turn of the event loop writes to a connection. */
const MAX_TURN_BYTES = 262_144
/** Requests that one turn of the event loop accepts from a connection: the others wait, so that other connections are served. */
const MAX_TURN_REQUESTS = 64
/** Streams reset by this side for which frames may still arrive. */
const MAX_RESET_IDS = 1000
/** How long a closed connection is still read, so that the peer receives the last frames instead of a TCP reset. */
const LINGER_MS = 1000

/**
 * One HTTP/2 connection (RFC 9113), of either role: reads and checks frames, keeps windows and settings, and sends what the streams have to say, in
 * turns. A role adds what begins a stream and what the ends of streams and connections mean.
 */
export abstract class Http2Connection<S extends Http2Stream> implements FrameSink, StreamOwner {
  readonly output: Output
  readonly limits: ConnectionLimits
  readonly streams = new StreamTable<S>()
  sendWindow: number = DEFAULT_WINDOW
  readonly peer = new PeerSettings()
  localInitialWindow: number = DEFAULT_WINDOW
  /** The connection accepts no more frames. */
  isClosed = false
  protected readonly socket: Duplex
  protected readonly guard: FloodGuard
  /** Highest identifier of a stream that the peer opened. */
  protected lastPeerId = 0
  /** Requests that were accepted in this turn. */
  protected turnRequests = 0
  readonly #reader: Http2FrameReader
  readonly #decoder = new HpackDecoder()
  readonly #window: ReceiveWindow
  /** Bytes of the preface of the client that were not received yet. */
  #prefaceLeft: number
  #hasSettings = false
  #sentSettings = 0
  /** The header section that is being received. */
  #block: HeaderBlock | undefined
  readonly #resetIds = new Set<number>()
  readonly #ready = new ReadyQueue()
  readonly #hasSpace = (): boolean => this.output.turnBytes < MAX_TURN_BYTES
  #isYielding = false
  #isLost = false

  /** `nowMs`: a coarse clock. The caller must call `open`. */
  constructor(socket: Duplex, limits: ConnectionLimits, isServer: boolean, nowMs: () => number) {
    this.socket = socket
    this.limits = limits
    this.guard = new FloodGuard(nowMs)
    this.output = new Output(socket, () => this.#writeStreams())
    this.#reader = new Http2FrameReader(this, limits.maxFrame)
    this.#window = new ReceiveWindow(DEFAULT_WINDOW, Math.max(DEFAULT_WINDOW, limits.connectionWindow))
    this.#prefaceLeft = isServer ? frames.PREFACE.length : 0
  }

  get streamWindow(): number {
    return this.limits.streamWindow
  }

  get underscores(): Underscores | undefined {
    return this.limits.underscores
  }

  /** Sends SETTINGS and reads the socket. `initial`: what was already read from it. */
  protected open(settings: string, initial: Buffer | undefined): void {
    const { socket, output } = this
    this.#sentSettings++
    output.frame(frames.SETTINGS, 0, 0, settings)
    const increment = this.limits.connectionWindow - DEFAULT_WINDOW
    if (increment > 0) {
      this.#window.change(increment)
      output.frame(frames.WINDOW_UPDATE, 0, 0, uint32(increment))
    }
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('drain', () => output.onDrain())
    socket.on('error', () => undefined)
    // The peer does not read any more either, or will not receive what it asked for: as in HTTP/1.1.
    socket.on('end', () => socket.destroy())
    socket.once('close', () => this.#lost())
    if (initial !== undefined) this.#read(initial)
    if (socket.destroyed) process.nextTick(() => this.#lost())
  }

  // What a role adds.

  /** A header section of a stream that is not open. Throws ConnectionError. */
  protected abstract acceptHeaders(id: number, fields: readonly string[], endStream: boolean, problem: HeaderProblem | undefined): void
  /** Whether no HEADERS frame has opened this stream yet. */
  protected abstract isIdleId(id: number): boolean
  /** The peer reset a stream. Throws ConnectionError. */
  protected abstract onPeerReset(): void
  protected abstract onGoaway(lastId: number, code: number): void
  /** SETTINGS of the peer were applied. */
  protected abstract onSettings(): void
  /** An acknowledgement of PING, with its 8 bytes as Latin-1 text. */
  protected abstract onPingAck(payload: string): void
  /** A stream was closed. */
  protected abstract onStreamClosed(stream: S): void
  /** The connection is closed; its streams were. */
  protected abstract onClosed(): void

  /** The connection will be closed: nothing can be sent on it any more. */
  protected onShutdown(): void {
    // By default only the end matters.
  }

  // Sending.

  /** Sends PING with 8 bytes of Latin-1 text. */
  ping(payload: string): void {
    this.output.frame(frames.PING, 0, 0, payload)
  }

  protected goaway(lastId: number, code: number): void {
    this.output.frame(frames.GOAWAY, 0, 0, uint32(lastId) + uint32(code))
  }

  schedule(stream: Http2Stream): void {
    this.#ready.add(stream)
    this.output.schedule()
  }

  writeHeaders(id: number, block: string, endStream: boolean): void {
    let rest = block
    const { output, peer } = this
    if (peer.needsTableUpdate) {
      peer.needsTableUpdate = false
      rest = EMPTY_TABLE_UPDATE + block
    }
    const ends = endStream ? frames.END_STREAM : 0
    const { maxFrame } = peer
    if (rest.length <= maxFrame) return output.frame(frames.HEADERS, ends | frames.END_HEADERS, id, rest)
    output.frame(frames.HEADERS, ends, id, rest.slice(0, maxFrame))
    for (let at = maxFrame; at < rest.length; at += maxFrame)
      output.frame(frames.CONTINUATION, at + maxFrame >= rest.length ? frames.END_HEADERS : 0, id, rest.slice(at, at + maxFrame))
  }

  consume(bytes: number): void {
    if (this.limits.creditsOnReceipt !== true) this.#creditConnection(bytes)
  }

  #creditConnection(bytes: number): void {
    const increment = this.#window.consume(bytes)
    if (increment > 0 && !this.isClosed) this.output.frame(frames.WINDOW_UPDATE, 0, 0, uint32(increment))
  }

  credit(id: number, increment: number): void {
    if (!this.isClosed) this.output.frame(frames.WINDOW_UPDATE, 0, id, uint32(increment))
  }

  reset(stream: Http2Stream, code: number): void {
    if (stream.isClosed) return
    if (stream.isOpened) {
      this.output.frame(frames.RST_STREAM, 0, stream.id, uint32(code))
      if (!stream.isRemoteEnded) this.#expectLateFrames(stream.id)
    }
    this.remove(stream)
  }

  remove(stream: Http2Stream): void {
    if (stream.isClosed) return
    this.streams.delete(stream.id)
    stream.close()
    this.onStreamClosed(stream as S)
  }

  /** Resets a stream that was never added: its frames may still arrive. */
  protected refuse(id: number, code: number, endStream: boolean): void {
    this.output.frame(frames.RST_STREAM, 0, id, uint32(code))
    if (!endStream) this.#expectLateFrames(id)
  }

  /** Whether frames of this stream may still arrive, because this side has reset it. */
  protected wasReset(id: number): boolean {
    return this.#resetIds.has(id)
  }

  /** Ends the connection: sends GOAWAY with `code`, if any, and everything that was added before; the streams are lost. */
  protected shutdown(code: number | undefined, reason: string): void {
    if (this.isClosed) return
    if (code !== undefined) this.goaway(this.lastPeerId, code)
    this.isClosed = true
    // A peer that floods the connection and does not read would not be read either.
    if (code === frames.ENHANCE_YOUR_CALM && this.output.isBlocked) this.socket.destroy()
    this.#loseStreams(code === undefined ? new Error(reason) : new ConnectionError(code, reason), code)
    this.onShutdown()
    const { socket } = this
    const linger = (): void => void setTimeout(() => socket.destroy(), LINGER_MS).unref()
    // A client that reads slowly still receives the rest of its responses after a graceful end.
    if (code === undefined) socket.once('finish', linger)
    else linger()
    this.output.end()
  }

  #expectLateFrames(id: number): void {
    if (this.#resetIds.size >= MAX_RESET_IDS) for (const oldest of this.#resetIds) if (this.#resetIds.delete(oldest)) break
    this.#resetIds.add(id)
  }

  #writeStreams(): void {
    this.turnRequests = 0
    if (!this.isClosed && this.#ready.write(this.#hasSpace)) this.output.schedule()
  }

  #loseStreams(error: Error, code: number | undefined): void {
    for (const stream of this.streams.values()) {
      this.streams.delete(stream.id)
      stream.close()
      this.onStreamClosed(stream)
      stream.onLost(error, code)
    }
  }

  #lost(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.isClosed = true
    this.#loseStreams(new Error('connection closed'), undefined)
    this.onClosed()
  }

  // Receiving.

  /** Frames wait while a turn has accepted many requests. */
  get acceptsFrames(): boolean {
    return !this.isClosed && this.turnRequests < MAX_TURN_REQUESTS
  }

  #read(chunk: Buffer): void {
    readMemory.add(chunk.length)
    if (this.isClosed) return
    try {
      if (this.#prefaceLeft === 0) this.#reader.read(chunk)
      else {
        const rest = this.#readPreface(chunk)
        if (rest < chunk.length) this.#reader.read(chunk.subarray(rest))
      }
    } catch (error) {
      this.#fail(error)
    }
    if (this.turnRequests >= MAX_TURN_REQUESTS && !this.isClosed) this.#yield()
  }

  /** Continues to read after other connections were served. */
  #yield(): void {
    if (this.#isYielding) return
    this.#isYielding = true
    this.socket.pause()
    setImmediate(() => {
      this.#isYielding = false
      this.turnRequests = 0
      if (this.isClosed) return
      try {
        this.#reader.resume()
      } catch (error) {
        this.#fail(error)
      }
      if (this.turnRequests >= MAX_TURN_REQUESTS) this.#yield()
      else this.socket.resume()
    })
  }

  #fail(error: unknown): void {
    if (!(error instanceof ConnectionError)) throw error
    this.shutdown(error.code, error.message)
    // What the peer sends until it notices is discarded.
    this.socket.resume()
  }

  #readPreface(chunk: Buffer): number {
    const { PREFACE } = frames
    const start = PREFACE.length - this.#prefaceLeft
    const count = Math.min(this.#prefaceLeft, chunk.length)
    if (chunk.toString('latin1', 0, count) !== PREFACE.slice(start, start + count))
      throw new ConnectionError(frames.PROTOCOL_ERROR, 'invalid connection preface')
    this.#prefaceLeft -= count
    return count
  }

  readFrame(bytes: Buffer, from: number, to: number, type: number, flags: number, id: number): void {
    if (this.#block !== undefined && (type !== frames.CONTINUATION || id !== this.#block.id))
      throw new ConnectionError(frames.PROTOCOL_ERROR, 'header section is interrupted by another frame')
    if (!this.#hasSettings && (type !== frames.SETTINGS || (flags & frames.ACK) !== 0))
      throw new ConnectionError(frames.PROTOCOL_ERROR, 'first frame is not SETTINGS')
    switch (type) {
      case frames.DATA:
        return this.#readData(bytes, from, to, flags, id)
      case frames.HEADERS:
        return this.#readHeaders(bytes, from, to, flags, id)
      case frames.CONTINUATION:
        return this.#readContinuation(bytes, from, to, flags, id)
      case frames.WINDOW_UPDATE:
        return this.#readWindowUpdate(bytes, from, to, id)
      case frames.RST_STREAM:
        return this.#readReset(bytes, from, to, id)
      case frames.SETTINGS:
        return this.#readSettings(bytes, from, to, flags, id)
      case frames.PING:
        return this.#readPing(bytes, from, to, flags, id)
      case frames.GOAWAY:
        requireConnection(id)
        if (to - from < 8) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'GOAWAY frame is too short')
        return this.onGoaway(bytes.readUInt32BE(from) & frames.MAX_STREAM_ID, bytes.readUInt32BE(from + 4))
      case frames.PRIORITY:
        return this.#readPriority(bytes, from, to, id)
      case frames.PUSH_PROMISE:
        // Clients must not send it, and servers were told not to.
        throw new ConnectionError(frames.PROTOCOL_ERROR, 'unexpected PUSH_PROMISE frame')
      default:
        this.guard.countIdleFrame()
    }
  }

  #readData(bytes: Buffer, from: number, to: number, flags: number, id: number): void {
    requireStream(id)
    const size = to - from
    const padding = (flags & frames.PADDED) === 0 ? 0 : 1 + (bytes[from] ?? 0)
    if (padding > size) throw new ConnectionError(frames.PROTOCOL_ERROR, 'padding exceeds the frame')
    if (!this.#window.receive(size)) throw new ConnectionError(frames.FLOW_CONTROL_ERROR, 'DATA exceeds the window of the connection')
    const endStream = (flags & frames.END_STREAM) !== 0
    if (size === padding && !endStream) this.guard.countIdleFrame()
    if (this.limits.creditsOnReceipt === true) this.#creditConnection(size)
    const stream = this.streams.get(id)
    if (stream === undefined || stream.isRemoteEnded) {
      this.consume(size)
      if (stream !== undefined) return this.#violate(stream, new StreamError(frames.STREAM_CLOSED, 'DATA after END_STREAM'))
      if (this.isIdleId(id)) throw new ConnectionError(frames.PROTOCOL_ERROR, 'DATA on an idle stream')
      if (!this.wasReset(id)) throw new ConnectionError(frames.STREAM_CLOSED, 'DATA on a closed stream')
      if (endStream) this.#resetIds.delete(id)
      return
    }
    if (!stream.admits(size)) {
      this.consume(size)
      return this.#violate(stream, new StreamError(frames.FLOW_CONTROL_ERROR, 'DATA exceeds the window of the stream'))
    }
    try {
      stream.receiveData(bytes, from + (padding > 0 ? 1 : 0), to - Math.max(0, padding - 1), size, endStream)
    } catch (error) {
      this.#violate(stream, error)
    }
  }

  #readHeaders(bytes: Buffer, from: number, to: number, flags: number, id: number): void {
    requireStream(id)
    let start = from
    let end = to
    if ((flags & frames.PADDED) !== 0) {
      end -= bytes[start] ?? 0
      start++
    }
    if ((flags & frames.HAS_PRIORITY) !== 0) {
      if (end - start >= 5 && (bytes.readUInt32BE(start) & frames.MAX_STREAM_ID) === id)
        throw new ConnectionError(frames.PROTOCOL_ERROR, 'stream depends on itself')
      start += 5
    }
    if (start > end) throw new ConnectionError(frames.PROTOCOL_ERROR, 'padding exceeds the frame')
    const endStream = (flags & frames.END_STREAM) !== 0
    if ((flags & frames.END_HEADERS) !== 0) return this.#readFields(bytes, start, end, id, endStream)
    this.#block = new HeaderBlock(id, endStream, this.limits.maxHeaderList)
    this.#block.add(bytes.subarray(start, end))
  }

  #readContinuation(bytes: Buffer, from: number, to: number, flags: number, id: number): void {
    const block = this.#block
    if (block === undefined) throw new ConnectionError(frames.PROTOCOL_ERROR, 'CONTINUATION without HEADERS')
    if (from === to) this.guard.countIdleFrame()
    block.add(bytes.subarray(from, to))
    if ((flags & frames.END_HEADERS) === 0) return
    this.#block = undefined
    const whole = block.join()
    this.#readFields(whole, 0, whole.length, id, block.endStream)
  }

  #readFields(bytes: Buffer, from: number, to: number, id: number, endStream: boolean): void {
    const decoder = this.#decoder
    const fields = decoder.decode(bytes, from, to, this.limits.maxHeaderList)
    const { problem } = decoder
    const stream = this.streams.get(id)
    if (stream === undefined) return this.acceptHeaders(id, fields, endStream, problem)
    if (stream.isRemoteEnded) return this.#violate(stream, new StreamError(frames.STREAM_CLOSED, 'HEADERS after END_STREAM'))
    if (problem !== undefined) return this.#violate(stream, new StreamError(frames.PROTOCOL_ERROR, `header section is ${problem}`))
    try {
      stream.receiveHeaders(fields, endStream)
    } catch (error) {
      this.#violate(stream, error)
    }
  }

  #readWindowUpdate(bytes: Buffer, from: number, to: number, id: number): void {
    if (to - from !== 4) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'WINDOW_UPDATE frame without 4 bytes')
    const increment = bytes.readUInt32BE(from) & frames.MAX_WINDOW
    if (increment < SMALL_INCREMENT) this.guard.countIdleFrame()
    if (id === 0) {
      if (increment === 0) throw new ConnectionError(frames.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0')
      this.sendWindow += increment
      if (this.sendWindow > frames.MAX_WINDOW) throw new ConnectionError(frames.FLOW_CONTROL_ERROR, 'window of the connection exceeds 2^31-1')
      this.#ready.unblock()
      return this.output.schedule()
    }
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.isIdleId(id)) throw new ConnectionError(frames.PROTOCOL_ERROR, 'WINDOW_UPDATE on an idle stream')
      return
    }
    if (increment === 0) return this.#violate(stream, new StreamError(frames.PROTOCOL_ERROR, 'WINDOW_UPDATE of 0'))
    const wasBlocked = stream.sendWindow <= 0
    stream.sendWindow += increment
    if (stream.sendWindow > frames.MAX_WINDOW) this.#violate(stream, new StreamError(frames.FLOW_CONTROL_ERROR, 'window of the stream exceeds 2^31-1'))
    else if (wasBlocked) this.schedule(stream)
  }

  #readReset(bytes: Buffer, from: number, to: number, id: number): void {
    requireStream(id)
    if (to - from !== 4) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'RST_STREAM frame without 4 bytes')
    const stream = this.streams.get(id)
    if (stream === undefined) {
      if (this.isIdleId(id)) throw new ConnectionError(frames.PROTOCOL_ERROR, 'RST_STREAM on an idle stream')
      this.#resetIds.delete(id)
      this.guard.countIdleFrame()
      return
    }
    const code = bytes.readUInt32BE(from)
    this.remove(stream)
    stream.onLost(new Error(`stream was reset with code ${code}`), code)
    this.onPeerReset()
  }

  #readSettings(bytes: Buffer, from: number, to: number, flags: number, id: number): void {
    requireConnection(id)
    if ((flags & frames.ACK) !== 0) {
      if (from !== to) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'acknowledgement of SETTINGS with a payload')
      if (this.#sentSettings === 0) return this.guard.countIdleFrame()
      this.#sentSettings--
      this.#changeLocalWindow(this.limits.streamWindow)
      return
    }
    this.guard.countIdleFrame()
    const { peer } = this
    const before = peer.initialWindow
    peer.apply(bytes, from, to)
    if (peer.initialWindow !== before) this.#changePeerWindow(peer.initialWindow - before)
    this.#hasSettings = true
    this.output.control(frames.SETTINGS, frames.ACK, 0, '')
    this.onSettings()
  }

  #changePeerWindow(change: number): void {
    for (const stream of this.streams.values()) {
      const wasBlocked = stream.sendWindow <= 0
      stream.sendWindow += change
      if (stream.sendWindow > frames.MAX_WINDOW) throw new ConnectionError(frames.FLOW_CONTROL_ERROR, 'window of a stream exceeds 2^31-1')
      if (wasBlocked && stream.sendWindow > 0) this.schedule(stream)
    }
  }

  #changeLocalWindow(size: number): void {
    const change = size - this.localInitialWindow
    this.localInitialWindow = size
    if (change !== 0) for (const stream of this.streams.values()) stream.changeWindow(change)
  }

  #readPing(bytes: Buffer, from: number, to: number, flags: number, id: number): void {
    requireConnection(id)
    if (to - from !== 8) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'PING frame without 8 bytes')
    this.guard.countIdleFrame()
    const payload = bytes.toString('latin1', from, to)
    if ((flags & frames.ACK) === 0) this.output.control(frames.PING, frames.ACK, 0, payload)
    else this.onPingAck(payload)
  }

  /** Priorities are deprecated (RFC 9113 §5.3.2); only their form is checked. */
  #readPriority(bytes: Buffer, from: number, to: number, id: number): void {
    requireStream(id)
    this.guard.countIdleFrame()
    if (to - from !== 5) throw new ConnectionError(frames.FRAME_SIZE_ERROR, 'PRIORITY frame without 5 bytes')
    if ((bytes.readUInt32BE(from) & frames.MAX_STREAM_ID) === id) throw new ConnectionError(frames.PROTOCOL_ERROR, 'stream depends on itself')
  }

  /** Ends a stream whose peer violated the protocol. Throws what is no violation of one stream. */
  #violate(stream: S, error: unknown): void {
    if (!(error instanceof StreamError) && !(error instanceof MessageError)) throw error
    const code = error instanceof StreamError ? error.code : frames.PROTOCOL_ERROR
    this.reset(stream, code)
    stream.onLost(error, code)
    this.guard.countReset()
  }
}
