import { BufferBody } from '../../../http/body.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import {
  CANCEL,
  COMPRESSION_ERROR,
  ConnectionError,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  HTTP_1_1_REQUIRED,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  STREAM_CLOSED,
  StreamError,
} from '../../../http/http2/frames.ts'
import type { Http2ClientConnection } from './connection.ts'
import type { Http2UpstreamSession, SessionCall, SessionOwner } from './session.ts'
import { encodeRequestHead, type Http2ClientStream } from './stream.ts'
import { UpstreamError, type UpstreamCall, type UpstreamFailure } from '../types.ts'

/** The pool of a call. */
export interface SessionSource extends SessionOwner {
  /** Returns a session with capacity for one more call; a new one if `isFresh`. */
  acquire(connectMs: number, isFresh: boolean): Http2UpstreamSession
}

/** Idempotent methods, which may be sent again even if the upstream has processed the first request (RFC 9110 §9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Reset codes of protocol errors, by either side. */
const protocolCodes = new Set<number>([PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, STREAM_CLOSED, COMPRESSION_ERROR, HTTP_1_1_REQUIRED])

/** A request and its response. Uses a second stream if the upstream did not process the first. */
export class Http2Call implements UpstreamCall, SessionCall {
  readonly response: Promise<ResponseHead>
  #request: RequestHead
  readonly #pool: SessionSource
  readonly #connectMs: number
  heldBy: Http2UpstreamSession | undefined = undefined
  #session: Http2UpstreamSession | undefined
  #stream: Http2ClientStream | undefined
  #block = ''
  #wasFresh = true
  /** Streams that were opened for it. */
  #attempts = 0
  #isSettled = false
  #resolve: (response: ResponseHead) => void = () => undefined
  #reject: (error: Error) => void = () => undefined

  constructor(request: RequestHead, pool: SessionSource, connectMs: number) {
    this.#request = request
    this.#pool = pool
    this.#connectMs = connectMs
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  send(isFresh: boolean): void {
    try {
      const { tls, marks } = this.#pool.transport
      this.#block = encodeRequestHead(this.#request, tls === undefined ? 'http' : 'https') + (marks?.literal(this.#request.loop) ?? '')
    } catch (error) {
      return this.fail(new UpstreamError('protocol', (error as Error).message, error))
    }
    this.#session = this.#pool.acquire(this.#connectMs, isFresh)
    this.#session.run(this)
  }

  /** For the session: it is connected. */
  begin(connection: Http2ClientConnection, session: Http2UpstreamSession): void {
    this.#attempts++
    this.#wasFresh = session.isFresh
    const stream = (this.#stream = connection.openStream(this, this.#request.method))
    stream.send(this.#block, this.#request)
  }

  cancel(reason: Error): void {
    const error = new UpstreamError('cancelled', 'call was cancelled', reason)
    const stream = this.#stream
    this.#stream = undefined
    stream?.abort()
    stream?.fail(error)
    this.fail(error)
  }

  /** No response head will be received. */
  fail(error: UpstreamError): void {
    this.#session?.release(this)
    this.#session = undefined
    if (this.#isSettled) return
    this.#isSettled = true
    this.#request.body?.cancel(error)
    this.#reject(error)
  }

  // For the stream.

  onResponse(response: ResponseHead): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#resolve(response)
  }

  onRequestFailed(error: Error): void {
    const stream = this.#stream
    this.#stream = undefined
    const failure = new UpstreamError('cancelled', 'request body broke off', error)
    stream?.abort()
    stream?.fail(failure)
    this.fail(failure)
  }

  onStreamLost(stream: Http2ClientStream, cause: Error, code: number = CANCEL): void {
    if (this.#stream !== undefined && stream !== this.#stream) return
    this.#stream = undefined
    const session = this.#session
    this.#session = undefined
    session?.release(this)
    const reset = cause instanceof StreamError || cause instanceof ConnectionError ? cause.message : `stream was reset with code ${code}`
    const what = session?.isDead === true ? 'upstream does not answer any more' : reset
    const error = this.#errorOf(this.#failureOf(stream, code, session), what)
    stream.fail(error)
    if (this.#isSettled) return
    if (this.#mayRepeat(error, session)) this.#repeat(session?.isClosing === true)
    else this.fail(error)
  }

  #failureOf(stream: Http2ClientStream, code: number, session: Http2UpstreamSession | undefined): UpstreamFailure {
    // The upstream did not process these (RFC 9113 §8.7).
    if (code === REFUSED_STREAM || !stream.isOpened) return 'connect'
    if (session !== undefined && stream.id > session.lastProcessedId) return 'connect'
    return protocolCodes.has(code) ? 'protocol' : 'reset'
  }

  /** Whether to send the call again: once, if the upstream did not process the request or closed an idle connection. */
  #mayRepeat(error: UpstreamError, session: Http2UpstreamSession | undefined): boolean {
    const { body, method } = this.#request
    if (this.#attempts > 1 || (body !== undefined && !(body instanceof BufferBody))) return false
    if (error.failure === 'connect') return true
    return error.failure === 'reset' && !this.#wasFresh && session?.isClosing === true && idempotent.has(method)
  }

  #repeat(isFresh: boolean): void {
    const { body } = this.#request
    if (body instanceof BufferBody) this.#request = { ...this.#request, body: body.copy() }
    this.send(isFresh)
  }

  #errorOf(failure: UpstreamFailure, what: string): UpstreamError {
    const { host, port } = this.#pool.transport
    return new UpstreamError(failure, `${host}:${port}: ${what}`)
  }
}
