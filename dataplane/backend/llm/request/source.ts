import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { bodyHold } from '../../../request/exchange/held.ts'
import { bufferedRequest, bufferRequest, releaseRequest } from '../../../request/expression/buffer.ts'
import { BufferBody, type Body } from '../../../http/body.ts'
import { ReplayableBody } from '../../../http/replay.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { isShortJson, parseJson, parseJsonInSteps } from '#api/json/index.ts'
import { hasDuplicateKeys, invalidJson, isObject, listMembers, listMembersInSteps, type Member } from '../common/json.ts'
import { FormatError, type JsonObject } from '../common/types.ts'

/** A request body as bytes, as text and parsed, without byte order mark. */
export interface ParsedRequest {
  readonly bytes: Buffer
  readonly text: string
  readonly json: JsonObject
  /** Positions of the top-level fields in the text. */
  readonly members: readonly Member[]
}

/** The client's body, readable once per attempt. */
export class RequestSource {
  readonly #exchange: Exchange
  readonly #limitBytes: number
  #decoded: Promise<Buffer | undefined> | undefined
  #parsed: ParsedRequest | undefined
  #replayable: ReplayableBody | undefined
  #wire: Buffer | undefined

  constructor(exchange: Exchange, limitBytes: number) {
    this.#exchange = exchange
    this.#limitBytes = limitBytes
  }

  /** False once more bytes were streamed than are kept for a retry. */
  get isReplayable(): boolean {
    return this.#replayable?.isReplayable !== false
  }

  /** The complete body, decoded. Rejects with a ProxyError, LLM_REQUEST_TOO_LARGE beyond the limit. */
  async read(): Promise<Buffer> {
    const bytes = await this.readWithinLimit()
    if (bytes !== undefined) return bytes
    this.#exchange.request.body?.cancel()
    throw this.#tooLarge()
  }

  /** As `read`; undefined for a body over the limit, which can still be streamed. */
  readWithinLimit(): Promise<Buffer | undefined> {
    return (this.#decoded ??= this.#read())
  }

  /** The body as the client sent it, with its content-encoding, for one attempt: from memory if it was read, else as a stream. */
  forward(): Body | undefined {
    if (this.#wire === undefined) return this.stream()
    return this.#wire.length === 0 ? undefined : new BufferBody(this.#wire)
  }

  /** The body parsed as a JSON object. Rejects with a ProxyError or a FormatError. */
  async parse(): Promise<ParsedRequest> {
    if (this.#parsed !== undefined) return this.#parsed
    const bytes = stripByteOrderMark(await this.read())
    const text = bytes.toString()
    const json = await this.#parseText(text)
    if (!isObject(json)) throw new FormatError('missing', 'missing field: request must be an object')
    // Parsers disagree on which duplicate counts, so the provider could read another value than the policies checked.
    const members = (isShortJson(text) ? listMembers(text) : await runWhileConnected(listMembersInSteps(text), this.#exchange)) ?? []
    if (hasDuplicateKeys(members, json)) throw new FormatError('invalid', 'failed to parse request: duplicate field: remove one of them')
    return (this.#parsed = { bytes, text, json, members })
  }

  /** Parses long text in slices, until the client disconnects. */
  async #parseText(text: string): Promise<unknown> {
    const exchange = this.#exchange
    const { jsonLimits: limits } = exchange
    // A budget counts one of two members of the same name, and the provider may read the other.
    const options = { limits, rejectsDuplicates: exchange.tokenBudgets?.readsDemand === true }
    try {
      return isShortJson(text) ? parseJson(text, options) : await runWhileConnected(parseJsonInSteps(text, options), exchange)
    } catch (error) {
      throw invalidJson(error)
    }
  }

  /** The body as a stream, for one attempt. */
  stream(): Body | undefined {
    const { body } = this.#exchange.request
    if (body === undefined) return undefined
    return (this.#replayable ??= new ReplayableBody(body, bodyHold(this.#exchange))).nextAttempt()
  }

  cancel(error: Error): void {
    this.#replayable?.cancel(error)
  }

  async #read(): Promise<Buffer | undefined> {
    const exchange = this.#exchange
    const { body } = exchange.request
    if (body?.length !== undefined && body.length > this.#limitBytes && this.#replayable === undefined) return undefined
    if (this.#replayable !== undefined) exchange.request.body = this.#replayable.nextAttempt()
    await bufferRequest(exchange, this.#limitBytes).catch((error: unknown) => this.#fail(error))
    const buffered = bufferedRequest(exchange)
    if (buffered?.isComplete === false) return undefined
    const bytes = buffered?.prefix ?? Buffer.alloc(0)
    releaseRequest(exchange)
    this.#wire = buffered?.coded?.bytes ?? bytes
    return bytes
  }

  #tooLarge(): ProxyError {
    return new ProxyError('LLM_REQUEST_TOO_LARGE', { detail: `the limit is ${this.#limitBytes} bytes (frontend.http.maxBufferSize)` })
  }

  #fail(error: unknown): never {
    if (!(error instanceof ProxyError)) throw error
    const { code, detail, headers, cause } = error
    if (code === 'CONTENT_CODING') throw new ProxyError('LLM_REQUEST_ENCODING', { detail, headers })
    if (code !== 'CONTENT_MISMATCH') throw error
    throw new ProxyError('LLM_REQUEST', { detail: 'failed to parse request: the body does not match its content-encoding', cause })
  }
}

function stripByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}
