import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { defineSlot } from '../exchange/slot.ts'
import { BufferBody, type Body } from '../http/body.ts'
import type { HeaderList } from '../http/headers.ts'
import type { ResponseHead } from '../http/message.ts'
import { PeekedBody } from './peek.ts'

/** Default of `frontend.http.maxBufferSize`. */
export const MAX_BUFFER_BYTES = 2 * 1024 * 1024

/** What expressions may see of a body. */
export interface BufferedBody {
  /** The body that it was read from, as it goes on. */
  readonly body: Body | undefined
  /** The whole body, or its first bytes. */
  readonly prefix: Buffer
  readonly isComplete: boolean
  readonly trailers: HeaderList | undefined
}

const requestBody = defineSlot<BufferedBody>('expression.requestBody')
const responseBody = defineSlot<BufferedBody>('expression.responseBody')
const EMPTY = Buffer.alloc(0)

export function bufferedRequest(exchange: Exchange): BufferedBody | undefined {
  return requestBody.get(exchange)
}

/** Undefined when the response has another body by now. */
export function bufferedResponse(exchange: Exchange): BufferedBody | undefined {
  const buffered = responseBody.get(exchange)
  return buffered !== undefined && buffered.body === exchange.response?.body ? buffered : undefined
}

/**
 * Reads the request's body up to `limitBytes`; a larger one goes on all the same. Throws a ProxyError when it breaks off or is
 * later than the request's deadline: nobody has judged such a request.
 */
export async function bufferRequest(exchange: Exchange, limitBytes: number): Promise<void> {
  const { request, deadlineAtMs } = exchange
  const { body } = request
  const known = bufferedRequest(exchange)
  if (known !== undefined && known.body === body) return
  try {
    const work = bufferBody(body, limitBytes)
    const buffered = await (work instanceof Promise && deadlineAtMs !== undefined ? withinDeadline(work, deadlineAtMs) : work)
    request.body = buffered.body
    requestBody.set(exchange, buffered)
  } catch (error) {
    body?.cancel()
    throw error instanceof ProxyError ? error : new ProxyError('PROCESSING_FAILED', { detail: 'the request body broke off', cause: error })
  }
}

/** As `bufferRequest`, for the response's. */
export async function bufferResponse(exchange: Exchange, limitBytes: number): Promise<void> {
  const { response } = exchange
  if (response === undefined || bufferedResponse(exchange) !== undefined) return
  try {
    const buffered = await bufferBody(response.body, limitBytes)
    response.body = buffered.body
    responseBody.set(exchange, buffered)
  } catch (error) {
    throw error instanceof ProxyError ? error : new ProxyError('UPSTREAM_FAILED', { detail: 'the response broke off', cause: error })
  }
}

/** While `look` runs, expressions see these bytes as the body of a response that nobody has buffered. */
export function withResponseBytes<T>(exchange: Exchange, response: ResponseHead, bytes: Pick<BufferedBody, 'prefix' | 'isComplete'>, look: () => T): T {
  const before = responseBody.get(exchange)
  responseBody.set(exchange, { body: response.body, trailers: undefined, ...bytes })
  try {
    return look()
  } finally {
    responseBody.set(exchange, before)
  }
}

/** A body made here takes the place of the request's; expressions see it from now on. Bytes that nobody read are thrown away. */
export function replaceRequestBody(exchange: Exchange, bytes: Buffer): void {
  const { request } = exchange
  request.body?.cancel()
  request.body = bytes.length === 0 ? undefined : new BufferBody(bytes)
  requestBody.set(exchange, { body: request.body, prefix: bytes, isComplete: true, trailers: undefined })
}

/** Gives up what was begun to read and nobody went on with, so that the client's connection can go on or close. */
export function releaseRequest(exchange: Exchange): void {
  const body = bufferedRequest(exchange)?.body
  if (body instanceof PeekedBody && body.isIdle) body.cancel()
}

function bufferBody(body: Body | undefined, limitBytes: number): Promise<BufferedBody> | BufferedBody {
  if (body === undefined) return { body, prefix: EMPTY, isComplete: true, trailers: undefined }
  if (body instanceof BufferBody) return { body, prefix: body.bytes.subarray(0, limitBytes), isComplete: body.length <= limitBytes, trailers: undefined }
  const peeked = new PeekedBody(body)
  return peeked.peek(limitBytes).then((peek) => ({ body: peeked, ...peek }))
}

/** Rejects with a ProxyError when the work is not done by `performance.now()`. */
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
