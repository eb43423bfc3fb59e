import { Socket, type OnReadOpts } from 'node:net'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import { parseResponseHead, type ParsedResponse } from '../../../http/http1/head.ts'
import { IncomingBody, type BodyOwner, type ChunkMemory } from '../../../http/http1/incoming.ts'
import { OutgoingBody, type OutgoingOwner } from '../../../http/http1/outgoing.ts'
import { encodeRequestHead, requestFraming } from '../../../http/http1/serialize.ts'
import { findHead, hasBareLineFeed, MessageError, type HeadLimits } from '../../../http/syntax.ts'
import { connectFailure, type Connector } from './connect.ts'
import { largeBuffers, sharedBuffer } from './read-buffers.ts'
import { UpstreamError, type Transport } from '../types.ts'

/** Limit of interim responses to one call; more is a protocol error. */
const MAX_INTERIM_RESPONSES = 32
/** Limit of the rest of a cancelled response that is skipped to reuse the connection. */
const MAX_DISCARD_BYTES = 65_536
const MAX_DISCARD_MS = 1000

/** The pool of a connection. */
export interface ConnectionOwner {
  readonly transport: Transport
  readonly limits: HeadLimits
  /** The call has ended and the connection can be reused. `keepAliveSeconds`: idle timeout that the upstream announced. */
  release(connection: ClientConnection, keepAliveSeconds: number | undefined): void
  /** The connection is closed. */
  forget(connection: ClientConnection): void
}

/** The call on a connection. */
export interface CallSink {
  readonly request: RequestHead
  /** The response head was received. */
  succeed(response: ResponseHead): void
  /** No response head will be received. */
  fail(error: Error): void
  /** The connection closed before the first byte of the response. `wasReused`: it served a call before. */
  lose(error: UpstreamError, wasReused: boolean, hasStartedBody: boolean): void
}

/** A connection to an upstream. Serves one call at a time. */
export class ClientConnection implements BodyOwner, OutgoingOwner {
  /** For the pool: time at which the idle connection is closed. */
  idleUntilMs = Infinity
  isClosed = false
  readonly #pool: ConnectionOwner
  readonly #socket: Socket
  #isConnected = false
  /** Connect timeout, or timeout while a cancelled response is skipped. */
  #timer: NodeJS.Timeout | undefined
  #calls = 0
  /** The buffer that reads go to instead of the shared one. */
  #large: Buffer | undefined = undefined
  /** Whether a large body is expected or being read. */
  #isLarge = false

  // The call in flight.
  #call: CallSink | undefined = undefined
  /** Bytes received and not consumed: a partial head, or an unread body. */
  #pending: Buffer | undefined = undefined
  /** Number of bytes of a partial head that were searched for its end. */
  #scanned = 0
  #outgoing: OutgoingBody | undefined = undefined
  #incoming: IncomingBody | undefined = undefined
  #head: ParsedResponse | undefined = undefined
  #isRequestSent = false
  #hasReceived = false
  #interimResponses = 0
  /** How the connection ended while the reader of the body was paused. */
  #ended: { readonly error: UpstreamError; readonly isInOrder: boolean } | undefined = undefined

  /** `mayTunnel`: the socket may be passed on as a tunnel, whose reader needs `data` events. */
  constructor(connect: Connector, connectMs: number, pool: ConnectionOwner, mayTunnel: boolean) {
    this.#pool = pool
    this.#socket = connect(() => this.#connected(), mayTunnel ? undefined : this.#reads())
    holdWriteErrors(this.#socket, this.#onWriteError)
    this.#socket.on('data', this.#onData)
    this.#socket.on('drain', this.#onDrain)
    this.#socket.on('end', this.#onEnd)
    this.#socket.on('error', this.#onError)
    this.#socket.on('close', this.#onClose)
    this.#timer = setTimeout(() => this.#close(this.#errorOf('connect-timeout', `no connection within ${connectMs} ms`)), connectMs)
  }

  /** Sends a call's request, once connected. */
  send(call: CallSink): void {
    this.#call = call
    this.#calls++
    this.#isRequestSent = false
    this.#hasReceived = false
    this.#interimResponses = 0
    this.#head = undefined
    this.#incoming = undefined
    if (this.#isConnected) this.#write(call)
  }

  /** The caller cancelled the call. */
  abandon(call: CallSink, error: UpstreamError): void {
    if (call === this.#call) this.#close(error)
  }

  destroy(): void {
    this.#close(this.#errorOf('cancelled', 'pool is closing'))
  }

  #errorOf(failure: UpstreamError['failure'], what: string, cause?: unknown): UpstreamError {
    const { host, port } = this.#pool.transport
    return new UpstreamError(failure, `${host}:${port}: ${what}`, cause)
  }

  #connected(): void {
    this.#stopTimer()
    this.#isConnected = true
    if (this.#call !== undefined) this.#write(this.#call)
  }

  #write(call: CallSink): void {
    const { request } = call
    const framing = requestFraming(request)
    let head: string
    try {
      const { keepAlive, marks } = this.#pool.transport
      head = encodeRequestHead(request, framing, keepAlive !== undefined, marks?.line(request.loop))
    } catch (error) {
      // The request is invalid, but nothing was written: the connection can be reused.
      this.#call = undefined
      this.#pool.release(this, undefined)
      call.fail(error as Error)
      return
    }
    if (request.body === undefined) {
      this.#isRequestSent = true
      this.#socket.write(head, 'latin1')
      return
    }
    this.#outgoing = new OutgoingBody(this.#socket, head, request.body, framing ?? 'chunked', request.headers, this)
    this.#outgoing.start()
  }

  bodySent(): void {
    this.#outgoing = undefined
    this.#isRequestSent = true
  }

  /** The request body failed or violated its length: closes the connection, so that the upstream does not take it for complete. */
  bodyFailed(error: Error): void {
    this.#outgoing = undefined
    this.#close(this.#errorOf('cancelled', 'request body broke off', error))
  }

  // Socket events. Properties, because the listeners are removed when the connection becomes a tunnel.

  readonly #onData = (chunk: Buffer): void => this.#receive(chunk, 'owned')

  #reads(): OnReadOpts {
    return {
      buffer: () => this.#nextBuffer(),
      callback: (count, buffer) => {
        this.#receive((buffer as Buffer).subarray(0, count), buffer === sharedBuffer ? 'shared' : 'exclusive')
        return true
      },
    }
  }

  /** The buffer of the next read. Called when the connection opens and after each read, so a large buffer stays attached until the first read that does not need it. */
  #nextBuffer(): Buffer {
    const incoming = this.#incoming
    if (incoming !== undefined && this.#isLarge && !this.isClosed && incoming.isBorrowing !== false) {
      this.#large ??= largeBuffers.attach()
      const held = this.#pending
      // The start of the body is in the buffer until the sink accepts it.
      if (held !== undefined && held.buffer === this.#large?.buffer) return this.#large.subarray(held.length)
      return this.#large ?? sharedBuffer
    }
    this.#detachLarge(false)
    return sharedBuffer
  }

  /**
   * Copies bytes out of the buffer that was read into. The start of a large body is copied into the buffer of its connection: with memory of its
   * own for each body, the heap of the allocator grows by 20 to 30 MiB until V8 collects it.
   */
  #keep(bytes: Buffer): Buffer {
    if (this.#incoming !== undefined && this.#isLarge) this.#large ??= largeBuffers.attach()
    if (this.#large === undefined || this.#incoming === undefined || !this.#isLarge) return Buffer.from(bytes)
    bytes.copy(this.#large)
    return this.#large.subarray(0, bytes.length)
  }

  /** `isHeld`: a pending write still reads the buffer. */
  #detachLarge(isHeld: boolean): void {
    if (this.#large === undefined) return
    largeBuffers.detach(this.#large, isHeld)
    this.#large = undefined
  }

  #receive(chunk: Buffer, memory: ChunkMemory): void {
    const call = this.#call
    if (call === undefined) {
      // Bytes without a request: the connection is out of sync and must be closed.
      this.#close(this.#errorOf('protocol', 'unexpected bytes on an idle connection'))
      return
    }
    this.#hasReceived = true
    const incoming = this.#incoming
    if (incoming === undefined) {
      this.#readHead(call, this.#pending === undefined ? chunk : Buffer.concat([this.#pending, chunk]))
      if (memory !== 'owned' && this.#pending?.buffer === chunk.buffer) this.#pending = this.#keep(this.#pending)
    } else if (incoming.isFlowing && this.#pending === undefined) {
      // A full buffer: the body is large, whatever its framing.
      if (chunk.length === sharedBuffer.length) this.#isLarge = true
      this.#feed(incoming, chunk, memory)
    } else {
      this.#pending = this.#pending === undefined ? (memory === 'owned' ? chunk : Buffer.from(chunk)) : Buffer.concat([this.#pending, chunk])
      this.#socket.pause()
    }
  }

  readonly #onDrain = (): void => this.#outgoing?.onDrain()

  readonly #onEnd = (): void => this.#end(this.#errorOf('reset', 'connection closed'), true)

  readonly #onError = (error: Error): void => {
    if (this.#isConnected) this.#end(this.#errorOf('reset', `connection failed: ${codeOf(error)}`, error), false)
    else this.#close(connectFailure(this.#pool.transport, error))
  }

  /**
   * A write failed. An upstream that rejects a large body responds, closes, and resets the connection: what it sent before is still to be read,
   * then reading reports the end. Returns false if nothing can be read.
   */
  readonly #onWriteError = (error: Error): boolean => {
    if (this.#outgoing === undefined || this.isClosed) return false
    // The upstream may still read nothing and send nothing. A response that has begun ends by itself.
    if (this.#head === undefined)
      this.#timer ??= setTimeout(() => this.#end(this.#errorOf('reset', `connection failed: ${codeOf(error)}`, error), false), MAX_DISCARD_MS)
    return true
  }

  readonly #onClose = (): void => this.#end(this.#errorOf('reset', 'connection closed'), false)

  /** The upstream closed the connection, gracefully or not. Bytes that the reader of the body has not received are delivered first. */
  #end(error: UpstreamError, isInOrder: boolean): void {
    const incoming = this.#incoming
    if (incoming !== undefined && !incoming.isFlowing && !incoming.isOver) {
      this.#ended ??= { error, isInOrder }
      return
    }
    if (isInOrder) incoming?.finish(error)
    this.#close(error)
  }

  // The response.

  #readHead(call: CallSink, bytes: Buffer): void {
    this.#pending = undefined
    const found = findHead(bytes, 0, Math.max(0, this.#scanned - 3))
    if ((found === undefined ? bytes.length : found.end + 2) > this.#pool.limits.maxHeadBytes) {
      return this.#close(this.#errorOf('protocol', `response head exceeds ${this.#pool.limits.maxHeadBytes} bytes`))
    }
    if (found === undefined) {
      const isHttp = 'HTTP/1.'.startsWith(bytes.toString('latin1', 0, 7))
      if (!isHttp || hasBareLineFeed(bytes, this.#scanned)) return this.#close(this.#errorOf('protocol', 'no HTTP/1 response head'))
      this.#pending = bytes
      this.#scanned = bytes.length
      return
    }
    this.#scanned = 0
    const next = found.end + 2
    const rest = next < bytes.length ? bytes.subarray(next) : undefined
    try {
      const head = parseResponseHead(found.text, found.end, call.request.method, this.#pool.limits)
      this.#acceptHead(call, head, rest)
    } catch (error) {
      if (!(error instanceof MessageError)) throw error
      this.#close(this.#errorOf('protocol', error.message))
    }
  }

  #acceptHead(call: CallSink, head: ParsedResponse, rest: Buffer | undefined): void {
    const { status, headers, framing } = head
    if (status === 101 || (call.request.method === 'CONNECT' && status < 300 && status >= 200)) return this.#acceptTunnel(call, head, rest)
    if (status < 200) {
      if (++this.#interimResponses > MAX_INTERIM_RESPONSES) this.#close(this.#errorOf('protocol', 'too many interim responses'))
      else if (rest !== undefined) this.#readHead(call, rest)
      return
    }
    this.#stopTimer()
    this.#head = head
    if (framing === 0) {
      this.#endResponse(rest)
      call.succeed({ status, headers, body: undefined, upgraded: undefined })
      return
    }
    this.#pending = rest
    this.#incoming = new IncomingBody(framing, this, this.#pool.limits)
    this.#isLarge = typeof framing === 'number' && framing - (rest?.length ?? 0) > sharedBuffer.length
    call.succeed({ status, headers, body: this.#incoming, upgraded: undefined })
  }

  #acceptTunnel(call: CallSink, head: ParsedResponse, rest: Buffer | undefined): void {
    const asked = call.request.upgrade
    if (head.status === 101 && (asked === undefined || head.upgrade?.toLowerCase() !== asked.toLowerCase())) {
      this.#close(this.#errorOf('upgrade', asked === undefined ? 'switched protocols unasked' : 'switched to another protocol than asked for'))
      return
    }
    const socket = this.#socket
    socket.pause()
    socket.off('data', this.#onData).off('drain', this.#onDrain).off('end', this.#onEnd)
    this.#call = undefined
    // The client needs this hop-by-hop field.
    if (head.upgrade !== undefined) head.headers.set('upgrade', head.upgrade)
    call.succeed({ status: head.status, headers: head.headers, body: undefined, upgraded: { socket, head: rest ?? Buffer.alloc(0) } })
  }

  #feed(incoming: IncomingBody, chunk: Buffer, memory: ChunkMemory): void {
    try {
      incoming.feed(chunk, memory)
    } catch (error) {
      if (!(error instanceof MessageError)) throw error
      this.#close(this.#errorOf('protocol', error.message))
    }
    if (!incoming.isHeld || incoming.state === 'paused') return
    // More may be read before the write completes.
    incoming.isHeld = false
    this.#detachLarge(true)
  }

  startBody(): void {
    this.resumeBody()
  }

  pauseBody(): void {
    this.#socket.pause()
  }

  resumeBody(): void {
    const held = this.#pending
    this.#pending = undefined
    if (held !== undefined && this.#incoming !== undefined) this.#feed(this.#incoming, held, held.buffer === this.#large?.buffer ? 'exclusive' : 'owned')
    if (this.#incoming?.isFlowing !== true) return
    if (this.#ended !== undefined) this.#end(this.#ended.error, this.#ended.isInOrder)
    else this.#socket.resume()
  }

  endBody(rest: Buffer | undefined): void {
    this.#endResponse(rest)
  }

  cancelBody(error: Error | undefined): void {
    const incoming = this.#incoming
    if (incoming?.length !== undefined && incoming.remaining <= MAX_DISCARD_BYTES && this.#isRequestSent && !incoming.isHeld) {
      this.#timer = setTimeout(() => this.#close(this.#errorOf('cancelled', 'rest of the response is late')), MAX_DISCARD_MS)
      this.resumeBody()
    } else this.#close(this.#errorOf('cancelled', 'response was cancelled', error))
  }

  /** The response is complete: returns the connection to its pool if both directions are complete. */
  #endResponse(rest: Buffer | undefined): void {
    const head = this.#head
    this.#stopTimer()
    const isReusable = head?.isPersistent === true && rest === undefined && this.#isRequestSent && this.#ended === undefined
    this.#call = undefined
    this.#head = undefined
    this.#incoming = undefined
    this.#pending = undefined
    // An upstream that responds before it has read the request does not need the rest.
    if (!isReusable) return this.#close(this.#errorOf('cancelled', 'response ended'))
    this.#socket.resume()
    this.#pool.release(this, head.keepAliveSeconds)
  }

  #stopTimer(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Closes the connection in any state; the call and its bodies fail with `error`. */
  #close(error: UpstreamError): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#stopTimer()
    const call = this.#call
    const incoming = this.#incoming
    const outgoing = this.#outgoing
    this.#call = undefined
    this.#outgoing = undefined
    this.#pool.forget(this)
    this.#socket.destroy()
    // The last read may be in progress, or a write of it pending.
    this.#detachLarge(true)
    incoming?.fail(error)
    if (call === undefined || incoming !== undefined) outgoing?.cancel(error)
    else if (error.failure === 'reset' && !this.#hasReceived) {
      call.lose(error, this.#calls > 1, outgoing !== undefined || this.#isRequestSent)
    } else call.fail(error)
  }
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message
}

type WriteCallback = (error?: Error | null) => void

/** Calls `isHeld` with errors of writes. If it returns true, the write never completes, because Node would destroy the socket with its unread bytes. */
function holdWriteErrors(socket: Socket, isHeld: (error: Error) => boolean): void {
  if (!(socket instanceof Socket)) return
  const { _write: write, _writev: writev } = socket
  const guard =
    (done: WriteCallback): WriteCallback =>
    (error) => {
      if (error === undefined || error === null || !isHeld(error)) done(error)
    }
  const guarded: Pick<Socket, '_write' | '_writev'> = {
    _write: (chunk, encoding, done) => write.call(socket, chunk, encoding, guard(done)),
    ...(writev !== undefined && { _writev: (chunks, done) => writev.call(socket, chunks, guard(done)) }),
  }
  Object.assign(socket, guarded)
}
