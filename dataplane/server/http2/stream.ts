import { constants, type Http2Stream, type ServerHttp2Stream } from 'node:http2'
import { ProxyError } from '../../exchange/error.ts'
import { Exchange } from '../../exchange/exchange.ts'
import { Http2Incoming, type Http2BodyOwner } from '../../http/http2/incoming.ts'
import { Http2Outgoing, isWritableField, resetStream, type Http2OutgoingOwner } from '../../http/http2/outgoing.ts'
import type { ResponseHead } from '../../http/message.ts'
import { MessageError, parseContentLength } from '../../http/syntax.ts'
import { hasResponseBody, requestFailure, setErrorResponse, unsentFailure } from '../http1/response.ts'
import { parseHttp2Request } from './request.ts'
import type { Http2Options, Http2Settings } from './options.ts'

/** The connection of a stream. */
export interface Http2StreamOwner {
  readonly options: Http2Options
  readonly scheme: 'http' | 'https'
  readonly settings: Http2Settings
  streamClosed(stream: Http2ServerStream): void
}

/**
 * A response that does not need the request body waits for the rest of a short one. A response before the end of the request must be
 * followed by a reset (RFC 9113 §8.1), which some clients report as an error while they are sending (curl 7.88: error 92).
 */
const MAX_AWAITED_BYTES = 65_536
const MAX_AWAIT_MS = 100

/** One stream of a client's connection: a request and its response. */
export class Http2ServerStream implements Http2BodyOwner, Http2OutgoingOwner {
  readonly #stream: ServerHttp2Stream
  readonly #owner: Http2StreamOwner
  #exchange: Exchange | undefined
  #incoming: Http2Incoming | undefined
  #outgoing: Http2Outgoing | undefined
  #head: string[] = []
  #owesContinue = false
  #hasReturned = false
  #isCancelled = false
  #requestError: MessageError | undefined

  constructor(stream: ServerHttp2Stream, owner: Http2StreamOwner) {
    this.#stream = stream
    this.#owner = owner
  }

  serve(flags: number, raw: readonly string[]): void {
    const stream = this.#stream
    // Handled in 'close', which follows.
    stream.on('error', () => undefined)
    stream.on('close', () => this.#closed())
    const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0
    let parsed
    try {
      parsed = parseHttp2Request(raw, this.#owner.scheme, this.#owner.settings.maxHeaderList, this.#owner.settings.underscores)
    } catch (error) {
      return this.#refuse(error instanceof MessageError ? error : new MessageError(400, 'invalid request'))
    }
    const { request } = parsed
    if (request.method === 'CONNECT') this.#isCancelled = hasBody
    else if (hasBody) {
      this.#owesContinue = parsed.expectsContinue
      this.#incoming = request.body = new Http2Incoming(stream, parsed.contentLength, this, this.#owner.settings.underscores)
    }
    const { connection, onRequest } = this.#owner.options
    const exchange = (this.#exchange = new Exchange(connection, request, performance.now()))
    const returned = onRequest(exchange)
    if (returned === undefined) this.#respond(exchange)
    else
      returned.then(
        () => this.#respond(exchange),
        (error: unknown) => this.#answer(exchange, new ProxyError('INTERNAL', { cause: error })),
      )
  }

  /** Aborts the exchange on the server's initiative. */
  cut(cause: 'shutdown' | 'timeout' | 'client'): void {
    if (this.#exchange !== undefined) this.#exchange.cutBy ??= cause
    resetStream(this.#stream, 'cancelled')
  }

  // The request body.

  startBody(): void {
    if (!this.#owesContinue) return
    this.#owesContinue = false
    if (!this.#stream.destroyed && !this.#stream.headersSent) this.#stream.additionalHeaders({ ':status': 100 })
  }

  /** The rest of an unread body stays in the stream's window; the end of the response resets the stream. */
  cancelBody(): void {
    this.#isCancelled = true
    if (!this.#stream.destroyed) this.#stream.pause()
  }

  /** The request turned out to be invalid after its head. */
  rejectTrailers(error: MessageError): void {
    this.#requestError = error
    this.#incoming?.fail(error)
    this.#exchange?.abort(error)
    if (this.#outgoing !== undefined) this.cut('client')
  }

  // The response.

  #answer(exchange: Exchange, error: ProxyError): void {
    this.#outgoing = undefined
    setErrorResponse(exchange, error)
    this.#respond(exchange)
  }

  #respond(exchange: Exchange): void {
    this.#hasReturned = true
    exchange.answeredAtMs = performance.now()
    if (this.#requestError !== undefined) setErrorResponse(exchange, requestFailure(this.#requestError))
    const incoming = this.#incoming
    if (incoming === undefined || incoming.hasStarted) return this.#send(exchange)
    // The body will not be started any more.
    incoming.cancel()
    if (this.#owesContinue || incoming.length === undefined || incoming.length > MAX_AWAITED_BYTES) return this.#send(exchange)
    this.#skipBody(() => this.#send(exchange))
  }

  /** Calls `onDone` once: when the request has ended or the wait has timed out. */
  #skipBody(onDone: () => void): void {
    const stream = this.#stream
    const finish = (): void => {
      clearTimeout(timer)
      stream.off('end', onEnd).off('close', finish).pause()
      onDone()
    }
    const onEnd = (): void => {
      this.#isCancelled = false
      finish()
    }
    const timer = setTimeout(finish, MAX_AWAIT_MS)
    if (stream.readableEnded) return onEnd()
    stream.on('end', onEnd).on('close', finish).resume()
  }

  #send(exchange: Exchange): void {
    if (this.#stream.destroyed || this.#stream.closed) {
      exchange.response?.body?.cancel()
      exchange.response?.upgraded?.socket.destroy()
      if (this.#exchange !== undefined) this.#finish(exchange)
      return
    }
    let response = exchange.response
    if (response?.upgraded !== undefined || response === undefined || response.status < 200) {
      // HTTP/2 has no upgrades (RFC 9113 §8.6), so the request contained none.
      response?.upgraded?.socket.destroy()
      response = setErrorResponse(exchange, new ProxyError('INTERNAL'))
    }
    const hasBody = response.body !== undefined && hasResponseBody(exchange.request, response)
    try {
      this.#head = encodeHead(response, hasBody)
    } catch (error) {
      response.body?.cancel()
      return this.#answer(exchange, new ProxyError('INTERNAL', { cause: error }))
    }
    if (response.body === undefined || !hasBody) {
      response.body?.cancel()
      this.open({ endStream: true, waitForTrailers: false })
      return this.bodySent()
    }
    this.#outgoing = new Http2Outgoing(response.body, response.headers, this)
    this.#outgoing.start()
  }

  open(options: { readonly endStream: boolean; readonly waitForTrailers: boolean }): Http2Stream | undefined {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return undefined
    stream.respond(this.#head, options)
    return stream
  }

  bodySent(): void {
    if (this.#exchange !== undefined) this.#finish(this.#exchange)
    // The client may stop sending (RFC 9113 §8.1).
    if (this.#incoming?.isOver === false || this.#isCancelled) closeAfterEnd(this.#stream)
  }

  bodyFailed(error: Error, isUnsent: boolean): void {
    const exchange = this.#exchange
    if (exchange !== undefined && isUnsent && !this.#stream.destroyed) return this.#answer(exchange, unsentFailure(error))
    if (exchange !== undefined) {
      exchange.cutBy ??= 'upstream'
      exchange.error ??= error instanceof ProxyError ? error : new ProxyError('UPSTREAM_FAILED', { cause: error })
      this.#finish(exchange)
    }
    resetStream(this.#stream, 'broken')
  }

  #finish(exchange: Exchange): void {
    exchange.requestBytes = this.#incoming?.bytes ?? exchange.requestBytes
    exchange.responseBytes = this.#outgoing?.bytes ?? exchange.responseBytes
    exchange.finishedAtMs = performance.now()
    this.#exchange = undefined
    this.#owner.options.onFinish(exchange)
  }

  /** Rejects an invalid request. The connection stays open, because frames delimit the request. */
  #refuse(error: MessageError): void {
    this.#owner.options.onRefuse?.(error)
    this.#stream.respond([':status', String(error.status), 'content-type', 'text/plain'])
    this.#stream.end(error.message)
    closeAfterEnd(this.#stream)
  }

  #closed(): void {
    this.#owner.streamClosed(this)
    if (this.#exchange === undefined && this.#incoming?.isOver !== false) return
    const error = new Error(`client closed the stream (code ${this.#stream.rstCode})`)
    this.#incoming?.fail(error)
    const exchange = this.#exchange
    if (exchange === undefined) return
    exchange.cutBy ??= 'client'
    this.#outgoing?.cancel(error)
    exchange.abort(error)
    // Otherwise it is finished when the handler returns.
    if (this.#hasReturned && this.#exchange !== undefined) this.#finish(exchange)
  }
}

/** Head in the form that Node requires; Node adds `date`. Throws if a policy inserted text that HTTP cannot carry. */
function encodeHead({ status, headers, body }: ResponseHead, hasBody: boolean): string[] {
  const head = [':status', String(status)]
  const { raw } = headers
  let length = body?.length
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    // The length of the body replaces the field. Without a body the field is the length of a GET response.
    if (name === 'content-length') length = hasBody ? length : (length ?? parseContentLength(value))
    else if (isWritableField(name, value)) head.push(name, value)
  }
  if (length !== undefined && status !== 204) head.push('content-length', String(length))
  return head
}

/** Resets without an error after everything was sent, including trailers, which Node sends some turns after `finish`. */
function closeAfterEnd(stream: ServerHttp2Stream, turns = 10): void {
  if (stream.destroyed || stream.closed) return
  if (!stream.writableFinished) stream.once('finish', () => closeAfterEnd(stream))
  else if (stream.state.localClose === 1 || turns === 0) stream.close(constants.NGHTTP2_NO_ERROR)
  else setImmediate(() => closeAfterEnd(stream, turns - 1))
}
