import type { Body, BodySink } from '../body.ts'
import type { HeaderList } from '../headers.ts'
import type { Underscores } from '../syntax.ts'
import { trailersAfter } from '../trailers.ts'
import { encodeTrailers, parseTrailers } from './fields.ts'
import { ReceiveWindow } from './flow.ts'
import { END_STREAM, PROTOCOL_ERROR, StreamError } from './frames.ts'
import { MAX_JOINED_CHUNK, type Output } from './output.ts'

/** Bytes that a stream holds for its peer before it pauses the source. */
const MAX_QUEUED_BYTES = 65_536
const MAX_QUEUED_CHUNKS = 1024

/** The connection of a stream. */
export interface StreamOwner {
  readonly output: Output
  /** How many bytes of DATA the peer accepts on the connection. */
  sendWindow: number
  readonly peer: { readonly maxFrame: number; readonly initialWindow: number }
  /** Window of a stream that the peer opens now, and the configured window. */
  readonly localInitialWindow: number
  readonly streamWindow: number
  readonly underscores: Underscores | undefined
  /** The stream has frames to send. */
  schedule(stream: Http2Stream): void
  /** Bytes of DATA frames were consumed: the connection credits the peer. */
  consume(bytes: number): void
  /** Credits the peer with bytes of one stream. */
  credit(id: number, increment: number): void
  /** Writes a header section, in several frames if necessary. */
  writeHeaders(id: number, block: string, endStream: boolean): void
  /** Resets the stream. Afterwards the stream is closed. */
  reset(stream: Http2Stream, code: number): void
  /** Both sides have ended the stream. */
  remove(stream: Http2Stream): void
}

/** Result of `writeFrames`: whether the stream has more to send now, waits for the window of the connection, or needs nothing from it. */
export type WriteResult = 'more' | 'connection' | 'done'

/**
 * One stream of a connection, client or server: the body that is received (Body), and the sink of the body that is sent (BodySink), without other objects
 * in between. The head to send is held until the end of the turn, so that a short message is sent as one write and, if it is empty, as one frame.
 */
export abstract class Http2Stream implements Body, BodySink {
  /** 0: not assigned yet. */
  id = 0
  /** The peer knows the stream: its HEADERS were received or sent. */
  isOpened = true
  /** The stream is not part of its connection any more. */
  isClosed = false
  /** END_STREAM or RST_STREAM was received. */
  isRemoteEnded = false
  /** END_STREAM was sent. */
  isLocalEnded = false
  /** Whether the connection has scheduled the stream. */
  isScheduled = false
  /** How many bytes of DATA the peer accepts; negative after a smaller SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.9.2). */
  sendWindow: number
  /** `content-length` of the received message. */
  length: number | undefined = undefined
  /** Body bytes received and sent. */
  receivedBytes = 0
  sentBytes = 0
  protected readonly owner: StreamOwner

  // The body that is received.
  protected hasStarted = false
  /** The body was delivered to its end, was cancelled, or failed. */
  protected isBodyOver = false
  #window: ReceiveWindow | undefined = undefined
  #sink: BodySink | undefined = undefined
  #held: Buffer[] | undefined = undefined
  #isPaused = false
  #isDelivering = false
  #trailers: HeaderList | undefined = undefined
  #failure: Error | undefined = undefined
  /** Bytes that were received and not yet credited. */
  #owed = 0

  // The message that is sent.
  #head: string | undefined = undefined
  #headers: HeaderList | undefined = undefined
  #source: Body | undefined = undefined
  #expected: number | undefined = undefined
  #isSourcePaused = false
  #isSourceOver = false
  #queue: Buffer[] | undefined = undefined
  /** Index of the first chunk of the queue that was not sent entirely, and what was sent of it. */
  #next = 0
  #offset = 0
  #queuedBytes = 0
  #trailerBlock = ''

  constructor(owner: StreamOwner) {
    this.owner = owner
    this.sendWindow = owner.peer.initialWindow
  }

  // The body that is received: Body.

  start(sink: BodySink): void {
    if (this.hasStarted) return
    this.hasStarted = true
    if (this.#failure !== undefined) return sink.onError(this.#failure)
    if (this.isBodyOver) return
    this.#sink = sink
    this.onBodyStart()
    this.#deliver()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.hasStarted) this.#deliver()
  }

  cancel(error?: Error): void {
    if (this.isBodyOver) return
    this.isBodyOver = true
    this.#discard()
    this.onBodyCancelled(error)
  }

  /** Ends the body that is received with an error. */
  protected failBody(error: Error): void {
    if (this.isBodyOver) return
    this.isBodyOver = true
    this.#failure = error
    const sink = this.#sink
    this.#discard()
    sink?.onError(error)
  }

  /** The body got its sink. */
  protected onBodyStart(): void {
    // By default nothing depends on it.
  }

  /** The body was delivered to its end; called before the sink's `onEnd`. */
  protected onBodyEnd(): void {
    // By default nothing depends on it.
  }

  /** The rest of the body is not needed. It is discarded without credit for the stream. */
  protected abstract onBodyCancelled(error: Error | undefined): void

  /** The peer ended its message. */
  protected onRemoteEnd(): void {
    // By default nothing depends on it.
  }

  /** Announces a body: the peer has not ended its message with the head. */
  protected expectBody(length: number | undefined): void {
    this.length = length
    this.#window = new ReceiveWindow(this.owner.localInitialWindow, this.owner.streamWindow)
  }

  /** Whether the window of the stream admits a DATA frame. */
  admits(bytes: number): boolean {
    return this.#window?.receive(bytes) ?? true
  }

  /** The peer acknowledged another initial window. */
  changeWindow(bytes: number): void {
    this.#window?.change(bytes)
  }

  /** A DATA frame: `bytes` of the frame counts for flow control. Throws StreamError. */
  receiveData(payload: Buffer, from: number, to: number, bytes: number, endStream: boolean): void {
    const { length } = this
    this.#owed += bytes
    this.receivedBytes += to - from
    if (length !== undefined && (this.receivedBytes > length || (endStream && this.receivedBytes < length)))
      throw new StreamError(PROTOCOL_ERROR, `body of ${this.receivedBytes} bytes differs from its content-length ${length}`)
    if (endStream) this.endRemote()
    if (this.isBodyOver) return this.#discard()
    if (to > from) {
      const chunk = payload.subarray(from, to)
      if (this.hasStarted && !this.#isPaused && !this.#isDelivering && this.#held === undefined) this.#sink?.onData(chunk)
      else (this.#held ??= []).push(chunk)
    }
    if (this.hasStarted) this.#deliver()
  }

  /** Trailers. Throws StreamError and MessageError. */
  protected receiveTrailers(fields: readonly string[], endStream: boolean): void {
    if (!endStream) throw new StreamError(PROTOCOL_ERROR, 'trailers without END_STREAM')
    this.#trailers = parseTrailers(fields, this.owner.underscores)
    if (this.length !== undefined && this.receivedBytes < this.length)
      throw new StreamError(PROTOCOL_ERROR, `body of ${this.receivedBytes} bytes differs from its content-length ${this.length}`)
    this.endRemote()
    if (this.hasStarted) this.#deliver()
  }

  /** The header section of a message, an interim message, or trailers. Throws StreamError and MessageError. */
  abstract receiveHeaders(fields: readonly string[], endStream: boolean): void

  /** The peer reset the stream or violated the protocol (`code`), or the connection is lost. The stream is closed. */
  abstract onLost(error: Error, code: number | undefined): void

  /** Ends the body that is received, as END_STREAM does. */
  protected endBody(): void {
    this.endRemote()
    if (this.hasStarted) this.#deliver()
  }

  protected endRemote(): void {
    this.isRemoteEnded = true
    this.onRemoteEnd()
    if (this.isLocalEnded && !this.isClosed) this.owner.remove(this)
  }

  #deliver(): void {
    // A sink may resume within onData.
    if (this.#isDelivering) return
    this.#isDelivering = true
    const held = this.#held
    if (held !== undefined) {
      let at = 0
      while (at < held.length && !this.#isPaused && !this.isBodyOver) {
        const chunk = held[at++]
        if (chunk !== undefined) this.#sink?.onData(chunk)
      }
      if (at === held.length) this.#held = undefined
      else if (this.#held !== undefined) held.splice(0, at)
    }
    this.#isDelivering = false
    if (this.isBodyOver || this.#isPaused) return
    this.#credit()
    if (this.isRemoteEnded) this.#end()
  }

  #end(): void {
    this.isBodyOver = true
    const sink = this.#sink
    this.#sink = undefined
    this.onBodyEnd()
    sink?.onEnd(this.#trailers)
  }

  /** Credits the peer with what the sink has consumed. */
  #credit(): void {
    const bytes = this.#owed
    if (bytes === 0) return
    this.#owed = 0
    this.owner.consume(bytes)
    const increment = this.#window?.consume(bytes) ?? 0
    if (increment > 0 && !this.isRemoteEnded && !this.isClosed) this.owner.credit(this.id, increment)
  }

  /** Drops what was received; only the connection is credited. */
  #discard(): void {
    this.#sink = undefined
    this.#held = undefined
    const bytes = this.#owed
    this.#owed = 0
    if (bytes > 0) this.owner.consume(bytes)
  }

  /** For the connection: the stream is closed. Drops what it holds. */
  close(): void {
    this.isClosed = true
    this.#queue = undefined
    this.#head = undefined
    // A body that was received to its end can still be read, but does not hold the window of the connection any more.
    const bytes = this.#owed
    this.#owed = 0
    if (bytes > 0) this.owner.consume(bytes)
  }

  // The message that is sent: BodySink.

  /** Sends a head (an encoded block) with its body. `headers`: those of the head, for the choice of trailers. */
  protected sendMessage(block: string, headers: HeaderList, body: Body | undefined): void {
    this.#head = block
    this.#headers = headers
    this.#source = body
    this.#expected = body?.length
    this.#isSourceOver = body === undefined
    this.#isSourcePaused = false
    this.#queue = undefined
    this.#queuedBytes = 0
    this.#trailerBlock = ''
    body?.start(this)
    if (!this.isClosed) this.owner.schedule(this)
  }

  /** Whether no part of the message was sent. */
  protected get isUnsent(): boolean {
    return this.#head !== undefined
  }

  /** Abandons the message that is sent. Does not reset the stream. */
  protected cancelSource(error?: Error): void {
    const source = this.#source
    this.#source = undefined
    this.#queue = undefined
    this.#head = undefined
    if (this.#isSourceOver) return
    this.#isSourceOver = true
    source?.cancel(error)
  }

  /** END_STREAM was sent. */
  protected abstract onSent(): void

  /** The body that is sent failed. */
  protected abstract onSourceFailed(error: Error): void

  /** The stream is about to send its head. */
  protected onHeadSending(): void {
    // By default nothing depends on it.
  }

  onData(chunk: Buffer): void {
    if (this.#isSourceOver || this.isClosed || chunk.length === 0) return
    const queue = (this.#queue ??= [])
    queue.push(chunk)
    this.#queuedBytes += chunk.length
    if (this.#expected !== undefined && this.sentBytes + this.#queuedBytes > this.#expected) {
      this.#isSourceOver = true
      this.#source?.cancel()
      return this.onSourceFailed(new Error(`body is longer than its content-length ${this.#expected}`))
    }
    if (this.#queuedBytes > MAX_QUEUED_BYTES || queue.length > MAX_QUEUED_CHUNKS) this.#pauseSource()
    if (!this.isScheduled) this.owner.schedule(this)
  }

  onEnd(received: HeaderList | undefined): void {
    if (this.#isSourceOver) return
    this.#isSourceOver = true
    const total = this.sentBytes + this.#queuedBytes
    if (this.#expected !== undefined && this.#expected !== total) return this.onSourceFailed(new Error(`body ended after ${total} of ${this.#expected} bytes`))
    const trailers = this.#headers && trailersAfter(this.#headers, received)
    if (trailers !== undefined) {
      try {
        this.#trailerBlock = encodeTrailers(trailers)
      } catch (error) {
        return this.onSourceFailed(error as Error)
      }
    }
    if (!this.isClosed) this.owner.schedule(this)
  }

  onError(error: Error): void {
    if (this.#isSourceOver) return
    this.#isSourceOver = true
    this.onSourceFailed(error)
  }

  /** For the connection: sends what the windows admit, at most one DATA frame. */
  writeFrames(): WriteResult {
    const { owner } = this
    const isQueueEmpty = this.#queuedBytes === 0
    if (this.#head !== undefined) {
      this.onHeadSending()
      const head = this.#head
      this.#head = undefined
      const isAll = isQueueEmpty && this.#isSourceOver && this.#trailerBlock === ''
      owner.writeHeaders(this.id, head, isAll)
      if (isAll) return this.#finish()
    }
    if (!isQueueEmpty) {
      const limit = Math.min(owner.peer.maxFrame, this.sendWindow, owner.sendWindow)
      if (limit <= 0) {
        this.#pauseSource()
        return this.sendWindow <= 0 ? 'done' : 'connection'
      }
      if (this.#writeData(limit)) return this.#finish()
      if (this.#queuedBytes > 0) return 'more'
    }
    if (this.#isSourceOver) {
      if (this.#trailerBlock === '') owner.output.textData(END_STREAM, this.id, '')
      else owner.writeHeaders(this.id, this.#trailerBlock, true)
      return this.#finish()
    }
    if (this.#isSourcePaused) {
      this.#isSourcePaused = false
      this.#source?.resume()
    }
    return 'done'
  }

  /** Sends one DATA frame of at most `limit` bytes. Returns whether it ended the stream. */
  #writeData(limit: number): boolean {
    const queue = this.#queue ?? []
    const { output } = this.owner
    const chunk = queue[this.#next] ?? Buffer.alloc(0)
    const left = chunk.length - this.#offset
    const isLast = this.#isSourceOver && this.#trailerBlock === ''
    if (left <= limit && left < this.#queuedBytes && left <= MAX_JOINED_CHUNK) {
      // Several small chunks become one frame.
      let text = ''
      for (let next = chunk; text.length + next.length - this.#offset <= limit && next.length - this.#offset <= MAX_JOINED_CHUNK;) {
        text += next.toString('latin1', this.#offset)
        this.#offset = 0
        const following = queue[++this.#next]
        if (following === undefined) break
        next = following
      }
      this.#advance(text.length)
      const ends = isLast && this.#queuedBytes === 0
      output.textData(ends ? END_STREAM : 0, this.id, text)
      return ends
    }
    const size = Math.min(left, limit)
    const from = this.#offset
    if (size === left) {
      this.#offset = 0
      this.#next++
    } else this.#offset += size
    this.#advance(size)
    const ends = isLast && this.#queuedBytes === 0
    output.data(ends ? END_STREAM : 0, this.id, chunk, from, from + size)
    return ends
  }

  #advance(bytes: number): void {
    this.sentBytes += bytes
    this.#queuedBytes -= bytes
    this.sendWindow -= bytes
    this.owner.sendWindow -= bytes
    if (this.#queuedBytes > 0) return
    this.#queue = undefined
    this.#next = 0
  }

  #finish(): WriteResult {
    this.isLocalEnded = true
    this.onSent()
    if (this.isRemoteEnded && !this.isClosed) this.owner.remove(this)
    return 'done'
  }

  #pauseSource(): void {
    if (this.#isSourcePaused || this.#isSourceOver) return
    this.#isSourcePaused = true
    this.#source?.pause()
  }
}
