import { isGrpcRequest, ProxyError } from '../../../request/exchange/error.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import type { Deadlines } from '../../../http/deadlines.ts'
import type { ResponseHead, UpgradedSocket } from '../../../http/message.ts'
import { MessageError } from '../../../http/syntax.ts'
import { CANCEL, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR, StreamError } from '../../../http/http2/frames.ts'
import { Http2Stream, type StreamOwner } from '../../../http/http2/stream.ts'
import { hasResponseBody, requestFailure, setErrorResponse, unsentFailure } from '../http1/response.ts'
import { parseHttp2Request } from './request.ts'
import { encodeResponseHead, encodeStatus, textResponse } from './response.ts'
import type { Http2Options, Http2Settings } from './options.ts'
import { Tunnel } from './tunnel.ts'

/** The connection of a stream. */
export interface ServerStreamOwner extends StreamOwner {
  readonly options: Http2Options
  readonly scheme: 'http' | 'https'
  readonly settings: Http2Settings
  readonly deadlines: Deadlines
  /** The handler of a request was called, and has returned. */
  handlerStarted(): void
  handlerReturned(): void
}

/**
 * A response that does not need the request body waits for the rest of a short one. A response before the end of the request must be
 * followed by a reset (RFC 9113 §8.1), which some clients report as an error while they are sending (curl 7.88: error 92).
 */
const MAX_AWAITED_BYTES = 65_536
const MAX_AWAIT_MS = 100

/** One stream of a client's connection: a request and its response. */
export class Http2ServerStream extends Http2Stream {
  declare protected readonly owner: ServerStreamOwner
  #exchange: Exchange | undefined = undefined
  #hasRequestBody = false
  #owesContinue = false
  #hasReturned = false
  #hasResponse = false
  #isTunnel = false
  #isTunnelClosed = false
  #requestError: MessageError | undefined = undefined
  #afterRequest: (() => void) | undefined = undefined

  constructor(owner: ServerStreamOwner, id: number) {
    super(owner)
    this.id = id
  }

  /** Serves a request. Returns the code of the reset if it is malformed. */
  serve(fields: readonly string[], endStream: boolean, problem: 'too large' | undefined): number | undefined {
    const { owner } = this
    const { settings } = owner
    this.isRemoteEnded = endStream
    let parsed
    try {
      if (problem !== undefined) throw new MessageError(431, `request header section exceeds ${settings.maxHeaderList} bytes`)
      parsed = parseHttp2Request(fields, owner.scheme, settings.underscores)
      if (endStream && (parsed.contentLength ?? 0) > 0) throw new StreamError(PROTOCOL_ERROR, 'content-length without a body')
    } catch (error) {
      if (error instanceof StreamError) return error.code
      this.#refuse(error as MessageError)
      return undefined
    }
    const { request } = parsed
    if (!endStream) {
      this.expectBody(request.upgrade === undefined ? parsed.contentLength : undefined)
      if (request.method === 'CONNECT') this.isBodyOver = true
      // Before the upstream has accepted a tunnel, its bytes stay in the window.
      else if (request.upgrade === undefined) {
        this.#hasRequestBody = true
        this.#owesContinue = parsed.expectsContinue
        request.body = this
      }
    }
    const { connection, onRequest } = owner.options
    const exchange = (this.#exchange = new Exchange(connection, request, performance.now()))
    const returned = onRequest(exchange)
    if (returned === undefined) {
      this.#respond(exchange)
      return undefined
    }
    owner.handlerStarted()
    returned.then(
      () => {
        owner.handlerReturned()
        this.#respond(exchange)
      },
      (error: unknown) => {
        owner.handlerReturned()
        this.#answer(exchange, new ProxyError('INTERNAL', { cause: error }))
      },
    )
    return undefined
  }

  /** Aborts the exchange on the server's initiative. */
  cut(cause: 'shutdown' | 'timeout' | 'client'): void {
    if (this.isClosed) return
    if (this.#exchange !== undefined) this.#exchange.cutBy ??= cause
    this.owner.reset(this, CANCEL)
    this.onLost(new Error(`stream was closed (${cause})`), undefined)
  }

  // The request body.

  protected override onBodyStart(): void {
    if (!this.#owesContinue) return
    this.#owesContinue = false
    if (!this.isClosed && !this.#hasResponse) this.owner.writeHeaders(this.id, encodeStatus(100), false)
  }

  /** The rest of an unread body stays in the window of the stream; the end of the response resets the stream. */
  protected override onBodyCancelled(): void {
    // Nothing more is credited.
  }

  protected override onRemoteEnd(): void {
    this.#afterRequest?.()
    if (this.#isTunnel && this.isLocalEnded && this.#exchange !== undefined) this.#finish(this.#exchange)
  }

  override receiveHeaders(fields: readonly string[], endStream: boolean): void {
    try {
      this.receiveTrailers(fields, endStream)
    } catch (error) {
      if (!(error instanceof MessageError)) throw error
      // The request turned out to be invalid after its head.
      this.#requestError = error
      this.failBody(error)
      this.#exchange?.abort(error)
      if (this.#hasResponse) this.cut('client')
      else this.endRemote()
    }
  }

  // The response.

  #answer(exchange: Exchange, error: ProxyError): void {
    setErrorResponse(exchange, error)
    this.#respond(exchange)
  }

  #respond(exchange: Exchange): void {
    this.#hasReturned = true
    exchange.answeredAtMs = performance.now()
    if (this.#requestError !== undefined) setErrorResponse(exchange, requestFailure(this.#requestError))
    if (!this.#hasRequestBody || this.hasStarted) return this.#send(exchange)
    // The body will not be started any more.
    this.cancel()
    const { length } = this
    if (this.isRemoteEnded || this.isClosed || this.#owesContinue || length === undefined || length > MAX_AWAITED_BYTES) return this.#send(exchange)
    this.#awaitRequest(() => this.#send(exchange))
  }

  /** Calls `onDone` once: when the request or the stream has ended, or the wait has timed out. */
  #awaitRequest(onDone: () => void): void {
    const finish = (): void => {
      clearTimeout(timer)
      this.#afterRequest = undefined
      onDone()
    }
    const timer = setTimeout(finish, MAX_AWAIT_MS)
    this.#afterRequest = finish
  }

  #send(exchange: Exchange): void {
    let response = exchange.response
    if (this.isClosed) {
      response?.body?.cancel()
      response?.upgraded?.socket.destroy()
      if (this.#exchange !== undefined) this.#finish(exchange)
      return
    }
    const { upgrade } = exchange.request
    if (response?.upgraded !== undefined && upgrade !== undefined) return this.#switch(exchange, response, response.upgraded)
    if (upgrade !== undefined) this.cancel()
    if (response?.upgraded !== undefined || response === undefined || response.status < 200) {
      // HTTP/2 has no upgrades (RFC 9113 §8.6), so the request contained none.
      response?.upgraded?.socket.destroy()
      response = setErrorResponse(exchange, new ProxyError('INTERNAL'))
    }
    const hasBody = response.body !== undefined && hasResponseBody(exchange.request, response)
    let block
    try {
      block = encodeResponseHead(response, hasBody)
    } catch (error) {
      response.body?.cancel()
      return this.#answer(exchange, new ProxyError('INTERNAL', { cause: error }))
    }
    if (!hasBody) response.body?.cancel()
    this.#hasResponse = true
    this.sendMessage(block, response.headers, hasBody ? response.body : undefined)
  }

  /** Accepts a tunnel: 200 instead of 101 (RFC 8441 §5). */
  #switch(exchange: Exchange, response: ResponseHead, upgraded: UpgradedSocket): void {
    const { settings, deadlines } = this.owner
    response.headers.remove('sec-websocket-accept')
    let block
    try {
      block = encodeResponseHead({ ...response, status: 200, body: undefined }, true)
    } catch (error) {
      upgraded.socket.destroy()
      return this.#answer(exchange, new ProxyError('UPGRADE_FAILED', { cause: error }))
    }
    this.#isTunnel = true
    this.#hasResponse = true
    const tunnel = new Tunnel(upgraded, this, settings.tunnelIdleMs, deadlines, {
      onIdle: () => this.cut('timeout'),
      onClosed: () => {
        this.#isTunnelClosed = true
        if (this.isLocalEnded && !this.isClosed) this.onSent()
      },
    })
    this.sendMessage(block, response.headers, tunnel)
  }

  protected override onSent(): void {
    // The client may still send to an upstream that has ended its side.
    if (this.#isTunnel && !this.isRemoteEnded && !this.#isTunnelClosed) return
    if (this.#exchange !== undefined) this.#finish(this.#exchange)
    // The client may stop sending (RFC 9113 §8.1).
    if (this.isRemoteEnded) return
    this.failBody(new Error('the response is complete'))
    this.owner.reset(this, NO_ERROR)
  }

  protected override onSourceFailed(error: Error): void {
    const exchange = this.#exchange
    if (exchange !== undefined && this.isUnsent && !this.isClosed && !this.#isTunnel) return this.#answer(exchange, unsentFailure(error))
    if (exchange !== undefined) {
      exchange.cutBy ??= 'upstream'
      exchange.error ??= error instanceof ProxyError ? error : new ProxyError('UPSTREAM_FAILED', { cause: error })
      // Clients report the reset as INTERNAL (gRPC over HTTP/2, "Errors").
      if (isGrpcRequest(exchange.request)) exchange.grpcStatus ??= '13'
      this.#finish(exchange)
    }
    this.failBody(error)
    this.owner.reset(this, INTERNAL_ERROR)
  }

  #finish(exchange: Exchange): void {
    exchange.requestBytes = this.#hasRequestBody || this.#isTunnel ? this.receivedBytes : exchange.requestBytes
    exchange.responseBytes = this.#hasResponse ? this.sentBytes : exchange.responseBytes
    exchange.finishedAtMs = performance.now()
    this.#exchange = undefined
    this.owner.options.onFinish(exchange)
  }

  /** Rejects an invalid request. The connection stays open, because frames delimit the request. */
  #refuse(error: MessageError): void {
    this.owner.options.onRefuse?.(error)
    if (!this.isRemoteEnded) this.expectBody(undefined)
    this.isBodyOver = true
    const response = textResponse(error)
    this.sendMessage(encodeResponseHead(response, true), response.headers, response.body)
  }

  override onLost(error: Error, code: number | undefined): void {
    const cause = code === undefined ? error : new Error(`client closed the stream (code ${code})`)
    const exchange = this.#exchange
    if (exchange !== undefined) exchange.cutBy ??= 'client'
    this.failBody(cause)
    this.cancelSource(cause)
    this.#afterRequest?.()
    if (exchange === undefined || this.#exchange === undefined) return
    exchange.abort(cause)
    // Otherwise it is finished when the handler returns.
    if (this.#hasReturned && this.#exchange !== undefined) this.#finish(exchange)
  }
}
