import { ProxyError } from '../../exchange/error.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import { bufferedRequest, bufferRequest, releaseRequest } from '../../expression/buffer.ts'
import { BodyTooLargeError, BufferBody, type Body } from '../../http/body.ts'
import { ReplayableBody } from '../../http/replay.ts'
import { decodeBytes, UnknownCodingError } from './coding.ts'
import { hasDuplicateKeys, isObject, listMembers, parseJson, type Member } from '../common/json.ts'
import { FormatError, type JsonObject } from '../common/types.ts'

/** A request's body as bytes, as text and parsed; without a byte order mark. */
export interface ParsedRequest {
  readonly bytes: Buffer
  readonly text: string
  readonly json: JsonObject
  /** Where its fields are in the text. */
  readonly members: readonly Member[]
}

/** The client's body, for as many attempts as it takes. */
export class RequestSource {
  readonly #exchange: Exchange
  readonly #limitBytes: number
  #decoded: Promise<Buffer> | undefined
  #parsed: ParsedRequest | undefined
  #replayable: ReplayableBody | undefined
  #wire: Buffer | undefined

  constructor(exchange: Exchange, limitBytes: number) {
    this.#exchange = exchange
    this.#limitBytes = limitBytes
  }

  /** False once more was streamed than can be sent again. */
  get isReplayable(): boolean {
    return this.#replayable?.isReplayable !== false
  }

  /** The whole body, its content-encoding removed. Rejects with a ProxyError. */
  read(): Promise<Buffer> {
    return (this.#decoded ??= this.#read())
  }

  /** The body as the client sent it, with its content-encoding; undefined when there is none. */
  async wireBody(): Promise<Body | undefined> {
    await this.read()
    return this.#wire === undefined || this.#wire.length === 0 ? undefined : new BufferBody(this.#wire)
  }

  /** As JSON object. Rejects with a ProxyError, or with a FormatError. */
  async parse(): Promise<ParsedRequest> {
    if (this.#parsed !== undefined) return this.#parsed
    const bytes = withoutMark(await this.read())
    const text = bytes.toString()
    const json = parseJson(text)
    if (!isObject(json)) throw new FormatError('missing', 'missing field: request must be an object')
    // Parsers disagree on which of two counts: what policies judged must be what the provider reads.
    const members = listMembers(text) ?? []
    if (hasDuplicateKeys(members, json)) throw new FormatError('invalid', 'failed to parse request: a field is there twice: remove one')
    return (this.#parsed = { bytes, text, json, members })
  }

  /** The body as it comes, for this attempt. */
  stream(): Body | undefined {
    const { body } = this.#exchange.request
    if (body === undefined) return undefined
    return (this.#replayable ??= new ReplayableBody(body)).nextAttempt()
  }

  cancel(error: Error): void {
    this.#replayable?.cancel(error)
  }

  async #read(): Promise<Buffer> {
    const exchange = this.#exchange
    if (this.#replayable !== undefined) exchange.request.body = this.#replayable.nextAttempt()
    await bufferRequest(exchange, this.#limitBytes)
    const buffered = bufferedRequest(exchange)
    const isComplete = buffered?.isComplete !== false
    const bytes = buffered?.prefix ?? Buffer.alloc(0)
    if (isComplete) releaseRequest(exchange)
    else exchange.request.body?.cancel()
    if (!isComplete) throw this.#tooLarge()
    this.#wire = bytes
    const coding = exchange.request.headers.get('content-encoding')
    return coding === undefined ? bytes : decodeBytes(bytes, coding, this.#limitBytes).catch((error: unknown) => this.#refuse(error))
  }

  #tooLarge(): ProxyError {
    return new ProxyError('LLM_REQUEST_TOO_LARGE', { detail: `the limit is ${this.#limitBytes} bytes (frontend.http.maxBufferSize)` })
  }

  #refuse(error: unknown): never {
    if (error instanceof BodyTooLargeError) throw this.#tooLarge()
    if (error instanceof UnknownCodingError) throw new ProxyError('LLM_REQUEST_ENCODING', { detail: error.message })
    throw new ProxyError('LLM_REQUEST', { detail: 'failed to parse request: the body is not in its content-encoding', cause: error })
  }
}

/** The bytes as JSON text has them. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}
