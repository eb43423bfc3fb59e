import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ProxyError } from '../../../request/exchange/error.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { sharedDeadlines, type Deadlines, type Waiter } from '../../../http/deadlines.ts'
import { parseRequestHead, type ParsedRequest } from '../../../http/http1/head.ts'
import { HeaderList } from '../../../http/headers.ts'
import { IncomingBody, type BodyOwner } from '../../../http/http1/incoming.ts'
import type { ResponseHead, UpgradedSocket } from '../../../http/message.ts'
import { OutgoingBody, type OutgoingOwner } from '../../../http/http1/outgoing.ts'
import { encodeResponseHead, type ConnectionOption } from '../../../http/http1/serialize.ts'
import { spliceSockets } from '../../../http/splice.ts'
import { findHead, hasBareLineFeed, MessageError, requestHeadLimits, type HeadLimits } from '../../../http/syntax.ts'
import { readMemory } from '../../../http/read-memory.ts'
import { defaultTimeouts, FIRST_REQUEST_MS, LINGER_MS, MAX_HELD_BYTES, type Http1Options, type Http1Server, type Http1Timeouts } from './options.ts'
import { hasResponseBody, requestFailure, responseFraming, setErrorResponse, unsentFailure } from './response.ts'

/** Limit of unread body bytes that are skipped to reuse a connection; beyond it closing is cheaper. */
const MAX_DISCARD_BYTES = 65_536
export type { Http1Options, Http1Server, Http1Timeouts }

/** Serves HTTP/1 on an accepted socket, plaintext or decrypted (RFC 9112). Serves the requests of a connection one after another. */
export function serveHttp1(socket: Duplex, options: Http1Options): Http1Server {
  const connection = new ServerConnection(socket, options)
  connection.open(options.initial)
  return connection
}

class ServerConnection implements Http1Server, BodyOwner, OutgoingOwner, Waiter {
  deadlineMs = Infinity
  readonly #socket: Duplex
  readonly #options: Http1Options
  readonly #limits: HeadLimits
  readonly #timeouts: Http1Timeouts
  readonly #deadlines: Deadlines
  readonly #scheme: 'http' | 'https'
  #phase: 'head' | 'exchange' | 'closing' | 'tunnel' | 'closed' = 'head'
  /** Bytes received and not yet consumed: a partial head, pipelined requests, an unread body. */
  #pending: Buffer | undefined = undefined
  /** Number of bytes of `#pending` that were searched for the end of a head. */
  #scanned = 0
  #isPaused = false
  #isAdvancing = false
  #isDraining = false
  #hasHadRequest = false
  #lastActivityMs = 0

  // The request in flight.
  #exchange: Exchange | undefined = undefined
  #incoming: IncomingBody | undefined = undefined
  #outgoing: OutgoingBody | undefined = undefined
  #isPersistent = false
  #owesContinue = false
  #hasReturned = false
  #isResponseDone = false
  #discarded = 0
  #requestError: MessageError | undefined = undefined
  #upgraded: UpgradedSocket | undefined = undefined

  constructor(socket: Duplex, options: Http1Options) {
    this.#socket = socket
    this.#options = options
    this.#limits = options.limits ?? requestHeadLimits
    this.#timeouts = { ...defaultTimeouts, ...options.timeouts }
    this.#deadlines = options.deadlines ?? sharedDeadlines
    this.#scheme = options.connection.tls === undefined ? 'http' : 'https'
  }

  get isIdle(): boolean {
    return this.#phase === 'head' && this.#pending === undefined
  }

  open(initial: Buffer | undefined): void {
    const socket = this.#socket
    if (socket instanceof Socket) socket.setNoDelay(true)
    this.#deadlines.add(this)
    this.#wait(this.#timeouts.headMs)
    socket.on('error', this.#onError).on('close', this.#onClose).on('end', this.#onEnd).on('drain', this.#onDrain)
    if (initial !== undefined && initial.length > 0) this.#onData(initial)
    socket.on('data', this.#onData)
    // Protocol detection may have paused the socket.
    if (!this.#isPaused) socket.resume()
    if (socket.destroyed) this.#lose(new Error('client is gone'))
  }

  drain(keepNew = false): void {
    this.#isDraining = true
    if (this.isIdle && !(keepNew && !this.#hasHadRequest)) this.#closeInOrder()
  }

  close(force: boolean): void {
    if (!force) {
      this.drain(true)
      // Still idle: the first request of a client that does not know of the shutdown may be in transit.
      if (this.isIdle) this.#wait(Math.max(1, Math.min(FIRST_REQUEST_MS, this.deadlineMs - this.#deadlines.nowMs)))
      return
    }
    if (this.#exchange !== undefined) this.#exchange.cutBy ??= 'shutdown'
    this.#upgraded?.socket.destroy()
    this.#socket.destroy()
  }

  expire(): void {
    this.deadlineMs = Infinity
    if (this.#phase === 'closing') this.#socket.destroy()
    else if (this.#phase === 'head') {
      if (this.#socket.writableNeedDrain) this.#socket.destroy()
      else if (this.#pending === undefined) this.#closeInOrder()
      else this.#refuse(new MessageError(408, 'request head not received in time'))
    } else if (this.#phase === 'exchange') this.#expireBody()
    else if (this.#phase === 'tunnel') this.#expireTunnel()
  }

  /** Applies the idle timeout to an upgraded connection. */
  #expireTunnel(): void {
    const { idleMs } = this.#timeouts
    const leftMs = this.#lastActivityMs + idleMs - this.#deadlines.nowMs
    if (leftMs > 0) return this.#wait(leftMs)
    if (this.#exchange !== undefined) this.#exchange.cutBy ??= 'timeout'
    this.#upgraded?.socket.destroy()
    this.#socket.destroy()
  }

  #expireBody(): void {
    if (this.#isResponseDone) return this.#closeInOrder()
    const isWaiting = this.#incoming?.state === 'flowing' || this.#outgoing?.isBlocked === true
    if (isWaiting && this.#deadlines.nowMs - this.#lastActivityMs >= this.#timeouts.bodyMs) {
      if (this.#exchange !== undefined) this.#exchange.cutBy = 'timeout'
      this.#failRequest(new MessageError(408, 'request body not received in time'))
    } else this.#wait(this.#timeouts.bodyMs)
  }

  #wait(ms: number): void {
    this.deadlineMs = ms > 0 ? this.#deadlines.nowMs + ms : Infinity
  }

  // Socket events. Properties, because the listeners are removed when the connection becomes a tunnel.

  readonly #onData = (chunk: Buffer): void => {
    readMemory.add(chunk.length)
    if (this.#phase === 'exchange') {
      this.#lastActivityMs = this.#deadlines.nowMs
      if (this.#pending === undefined && this.#incoming?.isFlowing === true) this.#feed(chunk)
      else this.#hold(chunk)
    } else if (this.#phase === 'head') {
      if (this.#pending === undefined) this.#pending = chunk
      else this.#pending = Buffer.concat([this.#pending, chunk])
      this.#advance()
    }
  }

  readonly #onDrain = (): void => {
    this.#lastActivityMs = this.#deadlines.nowMs
    if (this.#phase === 'head') this.#advance()
    else this.#outgoing?.onDrain()
  }

  // Treat a half-close as a disconnect, as other proxies do: the two cannot be distinguished.
  readonly #onEnd = (): void => {
    if (this.#phase === 'closing') return
    this.#lose(new Error('client closed the connection'))
    this.#socket.destroy()
  }

  readonly #onError = (error: Error): void => this.#lose(error)

  readonly #onClose = (): void => {
    this.#lose(new Error('client closed the connection'))
    this.#deadlines.remove(this)
    this.#options.onClose?.()
  }

  /** The client disconnected: aborts the exchange. */
  #lose(error: Error): void {
    if (this.#phase === 'closed' || this.#phase === 'tunnel') return
    this.#phase = 'closed'
    this.#pending = undefined
    this.deadlineMs = Infinity
    const exchange = this.#exchange
    this.#incoming?.fail(error)
    if (exchange === undefined || this.#isResponseDone) return
    exchange.cutBy ??= 'client'
    this.#outgoing?.cancel(error)
    exchange.abort(error)
    // Otherwise it is finished when the handler returns.
    if (this.#hasReturned) this.#finish(exchange)
  }

  // Reading requests.

  /** Serves the pending requests; a loop, so that a long pipeline does not build a deep stack. */
  #advance(): void {
    if (this.#isAdvancing) return
    this.#isAdvancing = true
    while (this.#phase === 'head' && this.#pending !== undefined && !this.#socket.writableNeedDrain && this.#readRequest(this.#pending));
    this.#isAdvancing = false
    if (this.#phase !== 'head') return
    // Do not serve more requests while the client does not read the responses.
    if (this.#socket.writableNeedDrain) this.#pauseReading()
    else this.#resumeReading()
  }

  /** Reads one head from the pending bytes and serves it. Returns false if it is incomplete or was rejected. */
  #readRequest(bytes: Buffer): boolean {
    // Ignore one empty line before a request (RFC 9112 §2.2).
    const start = bytes[0] === 13 && bytes[1] === 10 ? 2 : 0
    const head = findHead(bytes, start, Math.max(0, this.#scanned - start - 3))
    const { maxHeadBytes, maxTargetBytes } = this.#limits
    if ((head === undefined ? bytes.length - start : head.end + 2) > maxHeadBytes) {
      const lineEnd = bytes.indexOf('\r\n', start, 'latin1')
      const isLongTarget = lineEnd === -1 || lineEnd > maxTargetBytes
      this.#refuse(isLongTarget ? new MessageError(414, 'request target is too long') : new MessageError(431, `request head exceeds ${maxHeadBytes} bytes`))
      return false
    }
    if (head === undefined) {
      if (hasBareLineFeed(bytes, this.#scanned)) this.#refuse(new MessageError(400, 'bare LF in the head'))
      else if (this.#scanned === 0) this.#wait(this.#timeouts.headMs)
      this.#scanned = bytes.length
      return false
    }
    this.#scanned = 0
    let request: ParsedRequest
    try {
      request = parseRequestHead(head.text, head.end, this.#scheme, this.#limits)
    } catch (error) {
      this.#refuse(error instanceof MessageError ? error : new MessageError(400, 'invalid request'))
      return false
    }
    const next = start + head.end + 2
    this.#pending = next < bytes.length ? bytes.subarray(next) : undefined
    this.#serve(request)
    return true
  }

  #serve(request: ParsedRequest): void {
    this.#phase = 'exchange'
    this.#hasHadRequest = true
    this.#isPersistent = request.isPersistent
    this.#owesContinue = request.expectsContinue
    this.#hasReturned = false
    this.#isResponseDone = false
    if (request.framing !== 0) {
      this.#discarded = 0
      this.#incoming = request.body = new IncomingBody(request.framing, this, this.#limits)
      this.#lastActivityMs = this.#deadlines.nowMs
    }
    this.#wait(this.#timeouts.bodyMs)
    const exchange = (this.#exchange = new Exchange(this.#options.connection, request, performance.now()))
    if (request.method === 'CONNECT') {
      // After a failed CONNECT the next bytes are tunnel data, not a request.
      this.#isPersistent = false
      if (this.#options.allowsConnect !== true) return this.#answer(exchange, new ProxyError('METHOD_NOT_ALLOWED'))
    }
    const returned = this.#options.onRequest(exchange)
    if (returned === undefined) this.#respond(exchange)
    else
      returned.then(
        () => this.#respond(exchange),
        (error: unknown) => this.#answer(exchange, new ProxyError('INTERNAL', { cause: error })),
      )
  }

  #answer(exchange: Exchange, error: ProxyError): void {
    this.#outgoing = undefined
    setErrorResponse(exchange, error)
    this.#respond(exchange)
  }

  /** Responds to an invalid request and closes, because the start of the next request is unknown. */
  #refuse(error: MessageError): void {
    this.#options.onRefuse?.(error)
    const text = error.message
    const head = encodeResponseHead(error.status, new HeaderList(['content-type', 'text/plain']), text.length, 'close')
    this.#socket.write(head + text, 'latin1')
    this.#closeInOrder()
  }

  // The request body.

  #feed(chunk: Buffer): void {
    const incoming = this.#incoming
    if (incoming === undefined) return
    if (incoming.state === 'discarded') this.#discarded += chunk.length
    try {
      incoming.feed(chunk)
    } catch (error) {
      this.#failRequest(error instanceof MessageError ? error : new MessageError(400, 'invalid request body'))
      return
    }
    if (this.#discarded > MAX_DISCARD_BYTES && !incoming.isOver) {
      this.#isPersistent = false
      this.#pauseReading()
    }
    if (this.#isResponseDone) this.#endTurn()
  }

  /** The request turned out to be invalid after its head. */
  #failRequest(error: MessageError): void {
    this.#requestError = error
    this.#isPersistent = false
    this.#pending = undefined
    if (this.#outgoing !== undefined && this.#exchange !== undefined) this.#exchange.cutBy ??= 'client'
    this.#incoming?.fail(error)
    this.#exchange?.abort(error)
    if (this.#isResponseDone) this.#closeInOrder()
    else if (this.#outgoing !== undefined) this.#socket.destroy()
  }

  #hold(chunk: Buffer): void {
    this.#pending = this.#pending === undefined ? chunk : Buffer.concat([this.#pending, chunk])
    if (this.#incoming?.isOver === false || this.#pending.length > MAX_HELD_BYTES) this.#pauseReading()
  }

  #pauseReading(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket.pause()
  }

  #resumeReading(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#socket.resume()
  }

  startBody(): void {
    if (this.#owesContinue) {
      this.#owesContinue = false
      if (this.#pending === undefined && this.#outgoing === undefined) this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
    }
    this.resumeBody()
  }

  pauseBody(): void {
    this.#pauseReading()
  }

  resumeBody(): void {
    const held = this.#pending
    this.#pending = undefined
    if (held !== undefined) this.#feed(held)
    if (this.#incoming?.isFlowing === true) this.#resumeReading()
  }

  endBody(rest: Buffer | undefined): void {
    this.#pending = rest
  }

  cancelBody(): void {
    if (!this.#canSkipBody()) this.#isPersistent = false
    else this.resumeBody()
  }

  /** Whether the rest of an unread body is short enough to be skipped. A client that waits for 100 may never send it. */
  #canSkipBody(): boolean {
    const incoming = this.#incoming
    if (incoming === undefined || incoming.isOver) return true
    return !this.#owesContinue && (incoming.length === undefined || incoming.remaining <= MAX_DISCARD_BYTES)
  }

  // The response.

  #respond(exchange: Exchange): void {
    this.#hasReturned = true
    exchange.answeredAtMs = performance.now()
    if (this.#phase === 'closed') {
      exchange.response?.body?.cancel()
      exchange.response?.upgraded?.socket.destroy()
      this.#finish(exchange)
      return
    }
    if (this.#requestError !== undefined) setErrorResponse(exchange, requestFailure(this.#requestError))
    let response = exchange.response
    if (response === undefined || (response.status < 200 && response.upgraded === undefined)) {
      response = setErrorResponse(exchange, new ProxyError('INTERNAL'))
    }
    if (response.upgraded !== undefined) return this.#switch(exchange, response, response.upgraded)
    // The body will not be started any more.
    if (this.#incoming?.state === 'unstarted') this.#incoming.cancel()
    if (!this.#canSkipBody() || this.#isDraining) this.#isPersistent = false
    this.#write(exchange, response)
  }

  #write(exchange: Exchange, response: ResponseHead): void {
    const { request } = exchange
    const framing = responseFraming(request, response)
    if (framing === 'until-close') this.#isPersistent = false
    const isHttp10 = request.version === 'HTTP/1.0'
    let head: string
    try {
      head = encodeResponseHead(response.status, response.headers, framing, !this.#isPersistent ? 'close' : isHttp10 ? 'keep-alive' : 'none')
    } catch (error) {
      response.body?.cancel()
      this.#answer(exchange, new ProxyError('INTERNAL', { cause: error }))
      return
    }
    if (framing === undefined || response.body === undefined || !hasResponseBody(request, response)) {
      response.body?.cancel()
      this.#socket.write(head, 'latin1')
      this.#endResponse()
      return
    }
    this.#outgoing = new OutgoingBody(this.#socket, head, response.body, framing, request.acceptsTrailers ? response.headers : undefined, this)
    this.#outgoing.start()
  }

  bodySent(): void {
    this.#endResponse()
  }

  bodyFailed(error: Error, isUnsent: boolean): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    if (isUnsent) return this.#answer(exchange, unsentFailure(error))
    exchange.cutBy ??= 'upstream'
    exchange.error ??= error instanceof ProxyError ? error : new ProxyError('UPSTREAM_FAILED', { cause: error })
    // The client must not take a partial body for a complete one: a body that ends with the connection is aborted by a reset, or without close_notify.
    if (this.#socket instanceof Socket && !('encrypted' in this.#socket) && exchange.request.version === 'HTTP/1.0') this.#socket.resetAndDestroy()
    else this.#socket.destroy()
    this.#lose(error)
  }

  #endResponse(): void {
    this.#isResponseDone = true
    const exchange = this.#exchange
    if (exchange !== undefined) this.#finish(exchange)
    this.#endTurn()
  }

  #finish(exchange: Exchange): void {
    exchange.requestBytes = this.#incoming?.bytes ?? exchange.requestBytes
    exchange.responseBytes = this.#outgoing?.bytes ?? exchange.responseBytes
    exchange.finishedAtMs = performance.now()
    this.#exchange = undefined
    this.#outgoing = undefined
    this.#options.onFinish(exchange)
  }

  /** After the response: continues with the next request once the body of this one is consumed. */
  #endTurn(): void {
    if (this.#phase !== 'exchange') return
    if (!this.#isPersistent || this.#requestError !== undefined) return this.#closeInOrder()
    if (this.#incoming !== undefined && !this.#incoming.isOver) return this.#wait(this.#timeouts.bodyMs || LINGER_MS)
    if (this.#isDraining && this.#pending === undefined) return this.#closeInOrder()
    this.#incoming = undefined
    this.#phase = 'head'
    this.#wait(this.#timeouts.idleMs)
    this.#advance()
  }

  /** Sends the remaining data and FIN, and continues to read for a while, so that the client does not see a reset. */
  #closeInOrder(): void {
    if (this.#phase === 'closing' || this.#phase === 'closed') return
    this.#incoming?.fail(new Error('connection is closing'))
    this.#phase = 'closing'
    this.#pending = undefined
    this.#socket.end()
    this.#isPaused = false
    this.#socket.resume()
    this.#wait(LINGER_MS)
  }

  // Upgrades and CONNECT.

  #switch(exchange: Exchange, response: ResponseHead, upgraded: UpgradedSocket): void {
    const { upgrade, method } = exchange.request
    const connection: ConnectionOption | undefined = upgrade !== undefined ? { upgrade } : method === 'CONNECT' ? 'none' : undefined
    let head: string | undefined
    try {
      if (connection !== undefined) head = encodeResponseHead(response.status, response.headers, undefined, connection)
    } catch {
      head = undefined
    }
    if (head === undefined) {
      upgraded.socket.destroy()
      return this.#answer(exchange, new ProxyError('UPGRADE_FAILED', { detail: 'nobody asked for it' }))
    }
    const socket = this.#socket
    this.#phase = 'tunnel'
    this.#lastActivityMs = this.#deadlines.nowMs
    this.#wait(this.#timeouts.idleMs)
    this.#upgraded = upgraded
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError).off('drain', this.#onDrain)
    socket.write(head, 'latin1')
    if (upgraded.head.length > 0) socket.write(upgraded.head)
    const early = this.#pending
    this.#pending = undefined
    if (early !== undefined) upgraded.socket.write(early)
    spliceSockets(socket, upgraded.socket, {
      onBytes: () => (this.#lastActivityMs = this.#deadlines.nowMs),
      onDone: ({ forwardBytes, backwardBytes, error }) => {
        exchange.requestBytes = forwardBytes + (early?.length ?? 0)
        exchange.responseBytes = backwardBytes + upgraded.head.length
        this.deadlineMs = Infinity
        if (error !== undefined) exchange.cutBy ??= 'client'
        this.#finish(exchange)
      },
    })
  }
}
