import { parseInAdvance } from '#api/cel/index.ts'
import { defaultJsonLimits } from '#api/json/index.ts'
import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bodyHold } from '../exchange/held.ts'
import { defineSlot } from '../exchange/slot.ts'
import { BufferBody, type Body } from '../../http/body.ts'
import { CodingError, contentCoding, decodeBody, decodePrefix, describeNewBody, supportedCodings } from '../../http/coding.ts'
import type { BodyHold } from '../../http/budget.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { runWhileConnected } from '../exchange/connected.ts'
import { PeekedBody } from './peek.ts'

/** Default of `frontend.http.maxBufferSize`. */
export const MAX_BUFFER_BYTES = 2 * 1024 * 1024

/** The bytes of a body that policies can read, without content codings. */
export interface BufferedBody {
  /** The body to forward: it delivers all bytes, including those read. */
  readonly body: Body | undefined
  /** The complete body, or its first bytes. */
  readonly prefix: Buffer
  readonly isComplete: boolean
  readonly trailers: HeaderList | undefined
  /** The bytes as they were received, if they have content codings; the others are decoded. */
  readonly coded?: { readonly bytes: Buffer; readonly isComplete: boolean }
}

const requestBody = defineSlot<BufferedBody>('expression.requestBody')
const responseBody = defineSlot<BufferedBody>('expression.responseBody')
const EMPTY = Buffer.alloc(0)

/** Undefined if the request's body was not buffered. */
export function bufferedRequest(exchange: Exchange): BufferedBody | undefined {
  return requestBody.get(exchange)
}

/** Undefined if the response's body was not buffered, or was replaced since. */
export function bufferedResponse(exchange: Exchange): BufferedBody | undefined {
  const buffered = responseBody.get(exchange)
  return buffered !== undefined && buffered.body === exchange.response?.body ? buffered : undefined
}

/**
 * Buffers the request's body up to `limitBytes`; a larger body is forwarded nevertheless. A body with content codings is decoded for its readers,
 * up to the same limit, and forwarded as it was received. `parses`: expressions read it with `json()`. Throws a ProxyError if the body fails, cannot
 * be decoded, exceeds the request's deadline or exceeds the budget of buffered bodies: policies have not seen such a request.
 */
export async function bufferRequest(exchange: Exchange, limitBytes: number, parses = false): Promise<void> {
  await readRequest(exchange, limitBytes)
  if (parses) await parseInSlices(exchange, bufferedRequest(exchange))
}

/**
 * Buffers the response's body up to `limitBytes`, as `bufferRequest` does. `parses`: expressions read it with `json()`. Throws a ProxyError if the
 * body fails, cannot be decoded or exceeds the budget of buffered bodies.
 */
export async function bufferResponse(exchange: Exchange, limitBytes: number, parses = false): Promise<void> {
  await readResponse(exchange, limitBytes)
  if (parses) await parseInSlices(exchange, bufferedResponse(exchange))
}

/** Up to this length, expressions parse a body when they read it: that takes about a millisecond. */
const SHORT_BODY = 65_536

/** Parses a body for `json()` in slices, so that a long one does not delay other requests, and with the limits of the exchange. */
async function parseInSlices(exchange: Exchange, buffered: BufferedBody | undefined): Promise<void> {
  const { jsonLimits } = exchange
  if (buffered === undefined || (buffered.prefix.length <= SHORT_BODY && jsonLimits === defaultJsonLimits)) return
  await runWhileConnected(parseInAdvance(buffered.prefix, jsonLimits), exchange)
}

async function readRequest(exchange: Exchange, limitBytes: number): Promise<void> {
  const { request, deadlineAtMs } = exchange
  const { body } = request
  const known = bufferedRequest(exchange)
  if (known !== undefined && known.body === body && (known.isComplete || known.prefix.length >= limitBytes)) return
  try {
    const work = bufferContent(request, limitBytes, bodyHold(exchange))
    const buffered = await (work instanceof Promise && deadlineAtMs !== undefined ? withinDeadline(work, deadlineAtMs) : work)
    request.body = buffered.body
    requestBody.set(exchange, buffered)
  } catch (error) {
    body?.cancel()
    if (error instanceof ProxyError) throw error
    throw error instanceof CodingError
      ? codingFailure(error, 'request')
      : new ProxyError('PROCESSING_FAILED', { detail: 'the request body broke off', cause: error })
  }
}

async function readResponse(exchange: Exchange, limitBytes: number): Promise<void> {
  const { response } = exchange
  if (response === undefined || bufferedResponse(exchange) !== undefined) return
  try {
    const buffered = await bufferContent(response, limitBytes, bodyHold(exchange))
    response.body = buffered.body
    responseBody.set(exchange, buffered)
  } catch (error) {
    if (error instanceof ProxyError) throw error
    if (!(error instanceof CodingError)) throw new ProxyError('UPSTREAM_FAILED', { detail: 'the response broke off', cause: error })
    response.body?.cancel()
    throw codingFailure(error, 'response')
  }
}

/** Calls `evaluate` while expressions see these bytes as the body of `response`, which was not buffered. */
export function withResponseBytes<T>(exchange: Exchange, response: ResponseHead, bytes: Pick<BufferedBody, 'prefix' | 'isComplete'>, evaluate: () => T): T {
  const before = responseBody.get(exchange)
  responseBody.set(exchange, { body: response.body, trailers: undefined, ...bytes })
  try {
    return evaluate()
  } finally {
    responseBody.set(exchange, before)
  }
}

/** Replaces the request's body, also for expressions. Discards the bytes of the old one. Throws a ProxyError if the budget of buffered bodies is exceeded. */
export function replaceRequestBody(exchange: Exchange, bytes: Buffer): void {
  const { request } = exchange
  holdBytes(exchange, bytes)
  request.body?.cancel()
  request.body = bytes.length === 0 ? undefined : new BufferBody(bytes)
  requestBody.set(exchange, { body: request.body, prefix: bytes, isComplete: true, trailers: undefined })
}

/** Removes the buffered body from a copy of the exchange that outlives the request. */
export function forgetRequestBody(exchange: Exchange): void {
  requestBody.set(exchange, { body: undefined, prefix: EMPTY, isComplete: true, trailers: undefined })
}

/** Cancels a buffered body that nothing has started, so that the client's connection can be reused or closed. */
export function releaseRequest(exchange: Exchange): void {
  const body = bufferedRequest(exchange)?.body
  if (body instanceof PeekedBody && body.isIdle) body.cancel()
}

/** Counts bytes that were created for an exchange, such as a new body. Throws a ProxyError if the budget of buffered bodies is exceeded. */
export function holdBytes(exchange: Exchange, { length }: Buffer): void {
  const error = bodyHold(exchange).reserve(length)
  if (error !== undefined) throw error
}

function bufferBody(body: Body | undefined, limitBytes: number, hold: BodyHold): Promise<BufferedBody> | BufferedBody {
  if (body === undefined) return { body, prefix: EMPTY, isComplete: true, trailers: undefined }
  if (body instanceof BufferBody) return { body, prefix: body.bytes.subarray(0, limitBytes), isComplete: body.length <= limitBytes, trailers: undefined }
  const peeked = new PeekedBody(body)
  return peeked.peek(limitBytes, hold).then((peek) => ({ body: peeked, ...peek }))
}

/** As `bufferBody`, and decodes the bytes. Rejects also with a CodingError. */
function bufferContent({ headers, body }: Message, limitBytes: number, hold: BodyHold): Promise<BufferedBody> | BufferedBody {
  const buffered = bufferBody(body, limitBytes, hold)
  const coding = contentCoding(headers)
  if (coding === undefined || body === undefined) return buffered
  return Promise.resolve(buffered).then(async (received) => {
    const { prefix: bytes, isComplete } = received
    const decoded = await decodePrefix(bytes, coding, { limitBytes, isWhole: isComplete, hold })
    return { ...received, prefix: decoded.bytes, isComplete: decoded.isComplete, coded: { bytes, isComplete } }
  })
}

type Direction = 'request' | 'response'
interface Message {
  readonly headers: HeaderList
  body: Body | undefined
}

/** The error of a message that must be read and cannot be decoded. */
export function codingFailure(error: CodingError, direction: Direction): ProxyError {
  const { message: detail } = error
  if (direction === 'response') return new ProxyError('RESPONSE_CODING', { detail, cause: error })
  if (!error.isUnknown) return new ProxyError('CONTENT_MISMATCH', { detail, cause: error })
  return new ProxyError('CONTENT_CODING', { detail, headers: { 'accept-encoding': supportedCodings }, cause: error })
}

/**
 * Replaces a body with content codings by its content, for policies that may change it: they see a head and a body that agree. Throws a ProxyError
 * for a coding that is not known; corrupt content fails the body.
 */
export function decodeContent(exchange: Exchange, direction: Direction): void {
  const message = direction === 'request' ? exchange.request : exchange.response
  const coding = message && contentCoding(message.headers)
  if (message?.body === undefined || coding === undefined) return
  try {
    message.body = decodeBody(message.body, coding)
  } catch (error) {
    throw error instanceof CodingError ? codingFailure(error, direction) : error
  }
  describeNewBody(message.headers)
}

/** Whether a response has a coding that is not known. It was not touched, and policies that fail open let it pass. */
export function isUnknownCoding(error: unknown): boolean {
  return error instanceof ProxyError && error.code === 'RESPONSE_CODING' && error.cause instanceof CodingError && error.cause.isUnknown
}

/** Awaits the work. Rejects with REQUEST_TIMEOUT if it is not done by the deadline, in milliseconds of `performance.now()`. */
export async function withinDeadline<T>(work: Promise<T>, deadlineAtMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ProxyError('REQUEST_TIMEOUT')), Math.max(0, deadlineAtMs - performance.now()))
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
