import { constants, type ClientHttp2Session, type ClientHttp2Stream, type Http2Stream } from 'node:http2'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { Http2Incoming, isHopField, type Http2BodyOwner } from '../../http/http2/incoming.ts'
import { Http2Outgoing, isWritableField, resetStream, type Http2OutgoingOwner } from '../../http/http2/outgoing.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { isAuthority, isOriginForm, isToken, parseContentLength } from '../../http/syntax.ts'
import type { Http2UpstreamSession, SessionCall, SessionOwner } from './session.ts'
import { UpstreamError, type UpstreamCall, type UpstreamFailure } from '../types.ts'

/** The pool of a call. */
export interface SessionSource extends SessionOwner {
  /** Returns a session with capacity for one more call; a new one if `isFresh`. */
  acquire(connectMs: number, isFresh: boolean): Http2UpstreamSession
}

/** Idempotent methods, which may be sent again even if the upstream has processed the first request (RFC 9110 §9.2.2). */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Reset codes of protocol errors, by either side. */
const protocolCodes = new Set<number>([
  constants.NGHTTP2_PROTOCOL_ERROR,
  constants.NGHTTP2_FLOW_CONTROL_ERROR,
  constants.NGHTTP2_FRAME_SIZE_ERROR,
  constants.NGHTTP2_COMPRESSION_ERROR,
  constants.NGHTTP2_HTTP_1_1_REQUIRED,
])

/** A request and its response. Uses a second stream if the upstream did not process the first. */
export class Http2Call implements UpstreamCall, SessionCall, Http2OutgoingOwner, Http2BodyOwner {
  readonly response: Promise<ResponseHead>
  #request: RequestHead
  readonly #pool: SessionSource
  readonly #connectMs: number
  #session: Http2UpstreamSession | undefined
  #client: ClientHttp2Session | undefined
  #stream: ClientHttp2Stream | undefined
  #head: string[] = []
  #outgoing: Http2Outgoing | undefined
  #incoming: Http2Incoming | undefined
  #wasFresh = true
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
      this.#head = encodeHead(this.#request, this.#pool.transport.tls === undefined ? 'http' : 'https')
    } catch (error) {
      return this.fail(new UpstreamError('protocol', (error as Error).message, error))
    }
    this.#attempts++
    this.#session = this.#pool.acquire(this.#connectMs, isFresh)
    this.#session.run(this)
  }

  /** For the session: it is connected. */
  begin(client: ClientHttp2Session, session: Http2UpstreamSession): void {
    this.#client = client
    this.#wasFresh = session.isFresh
    const { body } = this.#request
    if (body === undefined) {
      this.open({ endStream: true, waitForTrailers: false })
      return
    }
    this.#outgoing = new Http2Outgoing(body, this.#request.headers, this)
    this.#outgoing.start()
  }

  cancel(reason: Error): void {
    const error = new UpstreamError('cancelled', 'call was cancelled', reason)
    this.#abort()
    this.#incoming?.fail(error)
    this.fail(error)
  }

  /** No response head will be received. */
  fail(error: UpstreamError): void {
    this.#session?.release(this)
    this.#session = undefined
    this.#outgoing?.cancel(error)
    if (this.#isSettled) return
    this.#isSettled = true
    this.#request.body?.cancel(error)
    this.#reject(error)
  }

  // The request.

  open(options: { readonly endStream: boolean; readonly waitForTrailers: boolean }): Http2Stream | undefined {
    const client = this.#client
    if (client === undefined || this.#isSettled) return undefined
    const stream = (this.#stream = client.request(this.#head, options))
    // Handled in 'close', which follows.
    stream.on('error', () => undefined)
    stream.on('response', (_headers, flags, raw) => this.#receive(stream, flags, raw))
    stream.on('close', () => this.#closed(stream))
    return stream
  }

  bodySent(): void {
    // The response determines the outcome.
  }

  bodyFailed(error: Error): void {
    this.#abort()
    const failure = new UpstreamError('cancelled', 'request body broke off', error)
    this.#incoming?.fail(failure)
    this.fail(failure)
  }

  // The response.

  #receive(stream: ClientHttp2Stream, flags: number, raw: readonly string[]): void {
    if (this.#isSettled || stream !== this.#stream) return
    const { status, headers, contentLength } = parseResponse(raw)
    if (!(status >= 200 && status <= 599) || contentLength === 'invalid') {
      this.#abort()
      return this.fail(this.#errorOf('protocol', 'invalid response head'))
    }
    const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0
    if (hasBody) this.#incoming = new Http2Incoming(stream, contentLength, this)
    this.#isSettled = true
    this.#resolve({ status, headers, body: this.#incoming, upgraded: undefined })
    if (!hasBody) this.endBody()
  }

  /** The response is complete; the rest of the request is not needed. */
  endBody(): void {
    if (this.#stream?.writableEnded === false) this.#abort()
  }

  cancelBody(): void {
    this.#abort()
  }

  #abort(): void {
    this.#outgoing?.cancel()
    if (this.#stream !== undefined) resetStream(this.#stream, 'cancelled')
  }

  #closed(stream: ClientHttp2Stream): void {
    if (stream !== this.#stream) return
    const session = this.#session
    this.#session = undefined
    session?.release(this)
    if (this.#isSettled && this.#incoming?.isOver !== false) {
      this.#outgoing?.cancel()
      return
    }
    const what = session?.isDead === true ? 'upstream does not answer any more' : `stream was reset with code ${stream.rstCode}`
    const error = this.#errorOf(this.#failureOf(stream, session), what)
    this.#incoming?.fail(error)
    if (this.#isSettled) this.#outgoing?.cancel(error)
    else if (this.#mayRepeat(error, session)) this.#repeat(session?.isClosing === true)
    else this.fail(error)
  }

  #failureOf(stream: ClientHttp2Stream, session: Http2UpstreamSession | undefined): UpstreamFailure {
    // The upstream did not process these (RFC 9113 §8.7).
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined) return 'connect'
    if (session !== undefined && stream.id > session.lastProcessedId) return 'connect'
    return protocolCodes.has(stream.rstCode) ? 'protocol' : 'reset'
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
    this.#outgoing?.cancel()
    this.#outgoing = undefined
    this.#stream = undefined
    if (body instanceof BufferBody) this.#request = { ...this.#request, body: body.copy() }
    this.send(isFresh)
  }

  #errorOf(failure: UpstreamFailure, what: string): UpstreamError {
    const { host, port } = this.#pool.transport
    return new UpstreamError(failure, `${host}:${port}: ${what}`)
  }
}

/** Encodes a request head. Throws for text that the upstream, or an HTTP/1.1 hop behind it, could read differently. */
function encodeHead(request: RequestHead, scheme: 'http' | 'https'): string[] {
  const { method, target, authority, headers, body, acceptsTrailers } = request
  if (!isToken(method) || method === 'CONNECT') throw new Error('method cannot be sent over HTTP/2')
  if (target !== '*' && !isOriginForm(target)) throw new Error('target holds a character that HTTP cannot carry')
  if (authority !== '' && !isAuthority(authority)) throw new Error('authority holds a character that HTTP cannot carry')
  const head = [':method', method, ':scheme', scheme, ':authority', authority, ':path', target]
  const { raw } = headers
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    if (name !== 'content-length' && isWritableField(name, value)) head.push(name, value)
  }
  if (body?.length !== undefined) head.push('content-length', String(body.length))
  else if (body === undefined && headers.has('content-length')) head.push('content-length', '0')
  if (acceptsTrailers) head.push('te', 'trailers')
  return head
}

function parseResponse(raw: readonly string[]): { status: number; headers: HeaderList; contentLength: number | undefined | 'invalid' } {
  const fields: string[] = []
  let status = 0
  let contentLength: number | undefined | 'invalid'
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    if (name === ':status') status = Number(value)
    else if (name === 'content-length') {
      contentLength = contentLength === undefined ? (parseContentLength(value) ?? 'invalid') : 'invalid'
      fields.push(name, value)
    } else if (!isHopField(name)) fields.push(name, value)
  }
  return { status, headers: new HeaderList(fields), contentLength }
}
