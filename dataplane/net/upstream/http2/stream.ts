import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import { isAuthority, isOriginForm, isToken, parseContentLength } from '../../../http/syntax.ts'
import { encodeLiteral, isConnectionField } from '../../../http/http2/fields.ts'
import { CANCEL, NO_ERROR, PROTOCOL_ERROR, StreamError } from '../../../http/http2/frames.ts'
import { encodeField, encodeName, encodeValue } from '../../../http/http2/hpack.ts'
import { Http2Stream, type StreamOwner } from '../../../http/http2/stream.ts'

/** Limit of interim responses to one call. */
const MAX_INTERIM_RESPONSES = 32

/** The call of a stream. */
export interface StreamCall {
  /** The final response head was received. */
  onResponse(response: ResponseHead): void
  /** The stream was reset (`code`), or the connection was lost, before the response was complete. */
  onStreamLost(stream: Http2ClientStream, error: Error, code: number | undefined): void
  /** The body of the request failed. */
  onRequestFailed(error: Error): void
}

/** One stream of a connection to an upstream: a request and its response. */
export class Http2ClientStream extends Http2Stream {
  readonly call: StreamCall
  readonly #method: string
  #hasResponse = false
  #interimResponses = 0

  constructor(owner: StreamOwner, id: number, call: StreamCall, method: string) {
    super(owner)
    this.id = id
    this.isOpened = false
    this.call = call
    this.#method = method
    this.expectBody(undefined)
  }

  /** Sends a request whose head is encoded. */
  send(block: string, { headers, body }: RequestHead): void {
    this.sendMessage(block, headers, body)
  }

  /** Resets the stream; the call gets no more events. */
  abort(error?: Error): void {
    this.cancelSource(error)
    this.owner.reset(this, CANCEL)
  }

  /** Ends the body of the response with an error. */
  fail(error: Error): void {
    this.failBody(error)
  }

  protected override onHeadSending(): void {
    this.isOpened = true
  }

  protected override onSent(): void {
    // The response determines the outcome.
  }

  protected override onSourceFailed(error: Error): void {
    this.call.onRequestFailed(error)
  }

  override receiveHeaders(fields: readonly string[], endStream: boolean): void {
    if (this.#hasResponse) return this.receiveTrailers(fields, endStream)
    const { status, headers, contentLength } = parseResponse(fields)
    if (status < 200) {
      if (++this.#interimResponses > MAX_INTERIM_RESPONSES) throw new StreamError(PROTOCOL_ERROR, 'too many interim responses')
      // Interim responses are not forwarded. 101 does not exist in HTTP/2 (RFC 9113 §8.6).
      if (status === 101 || endStream) throw new StreamError(PROTOCOL_ERROR, 'invalid interim response')
      return
    }
    // Responses to HEAD and 304 have the length of a GET (RFC 9110 §8.6).
    const length = this.#method === 'HEAD' || status === 304 || status === 204 ? undefined : contentLength
    if (endStream && (length ?? 0) > 0) throw new StreamError(PROTOCOL_ERROR, 'content-length without a body')
    this.#hasResponse = true
    this.length = length
    this.call.onResponse({ status, headers, body: endStream ? undefined : this, upgraded: undefined })
    if (!endStream) return
    this.isBodyOver = true
    this.endRemote()
    this.onBodyEnd()
  }

  override receiveData(payload: Buffer, from: number, to: number, bytes: number, endStream: boolean): void {
    if (!this.#hasResponse) throw new StreamError(PROTOCOL_ERROR, 'DATA before the response head')
    super.receiveData(payload, from, to, bytes, endStream)
  }

  /** The response is complete: the rest of the request is not needed. */
  protected override onBodyEnd(): void {
    if (!this.isLocalEnded) this.abort()
  }

  protected override onBodyCancelled(error: Error | undefined): void {
    this.abort(error)
  }

  override onLost(error: Error, code: number | undefined): void {
    this.cancelSource(error)
    // A response that was received to its end can still be read, whatever became of the request.
    if (this.#hasResponse && this.isRemoteEnded) return
    // Servers on node:http2 send RST_STREAM instead of END_STREAM if no window is left after the last byte.
    if (this.#hasResponse && code === NO_ERROR && (this.length === undefined || this.length === this.receivedBytes)) return this.endBody()
    this.call.onStreamLost(this, error, code)
  }
}

const AUTHORITY = encodeName(':authority')
const PATH = encodeName(':path')
const SCHEMES = { http: encodeField(':scheme', 'http'), https: encodeField(':scheme', 'https') }
const TE_TRAILERS = encodeField('te', 'trailers')

/** Encodes a request head. Throws for text that the upstream, or an HTTP/1.1 hop behind it, could read differently. */
export function encodeRequestHead(request: RequestHead, scheme: 'http' | 'https'): string {
  const { method, target, authority, headers, body, acceptsTrailers } = request
  if (!isToken(method) || method === 'CONNECT') throw new Error('method cannot be sent over HTTP/2')
  if (target !== '*' && !isOriginForm(target)) throw new Error('target holds a character that HTTP cannot carry')
  if (authority !== '' && !isAuthority(authority)) throw new Error('authority holds a character that HTTP cannot carry')
  let block = encodeField(':method', method) + SCHEMES[scheme] + AUTHORITY + encodeValue(authority)
  block += target === '/' ? encodeField(':path', '/') : PATH + encodeValue(target)
  const { raw } = headers
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (name !== 'content-length') block += encodeLiteral(name, raw[i + 1] ?? '')
  }
  if (body?.length !== undefined) block += encodeLiteral('content-length', String(body.length))
  else if (body === undefined && headers.has('content-length')) block += encodeLiteral('content-length', '0')
  return acceptsTrailers ? block + TE_TRAILERS : block
}

const statusText = /^[1-9][0-9]{2}$/

/** Parses a response head (RFC 9113 §8.3.2). Throws StreamError. */
function parseResponse(raw: readonly string[]): { status: number; headers: HeaderList; contentLength: number | undefined } {
  if (raw[0] !== ':status' || !statusText.test(raw[1] ?? '')) throw new StreamError(PROTOCOL_ERROR, 'response without a valid :status')
  const status = Number(raw[1])
  if (status > 599) throw new StreamError(PROTOCOL_ERROR, 'response without a valid :status')
  const fields: string[] = []
  let contentLength: number | undefined
  for (let i = 2; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    if (name.charCodeAt(0) === 58) throw new StreamError(PROTOCOL_ERROR, 'unexpected pseudo-header field')
    if (name === 'content-length') {
      const length = parseContentLength(value)
      if (length === undefined || contentLength !== undefined) throw new StreamError(PROTOCOL_ERROR, 'invalid content-length')
      contentLength = length
      fields.push(name, value)
    } else if (name === 'te' || name === 'trailer' || name === 'proxy-authenticate') continue
    else if (isConnectionField(name, value)) throw new StreamError(PROTOCOL_ERROR, `field ${name} in HTTP/2`)
    else fields.push(name, value)
  }
  return { status, headers: new HeaderList(fields), contentLength }
}
