import { bodyHold } from '../../request/exchange/held.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BufferBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import { MAX_BODY_BYTES, type CachedResponse } from './store.ts'

/**
 * Saves a response when it is complete, in the form that the upstream sent it. Not one that breaks off, has trailers, or whose bytes exceed a limit.
 */
export function record(exchange: Exchange, response: ResponseHead, save: (head: Pick<CachedResponse, 'status' | 'headers'>, body: Buffer) => void): void {
  const { body, status } = response
  // Policies change the headers of the response later.
  const head = { status, headers: new HeaderList(response.headers.raw.slice()) }
  if (body === undefined) return save(head, Buffer.alloc(0))
  if ((body.length ?? 0) > MAX_BODY_BYTES) return
  // A copy, because the bytes may be part of a larger buffer.
  if (body instanceof BufferBody) return save(head, Buffer.from(body.bytes))
  const hold = bodyHold(exchange)
  let chunks: Buffer[] = []
  let size = 0
  response.body = new ObservedBody(body, {
    onData: (chunk) => {
      if (size === Infinity) return
      const isRecorded = size + chunk.length <= MAX_BODY_BYTES && hold.reserve(chunk.length) === undefined
      size = isRecorded ? size + chunk.length : Infinity
      if (isRecorded) chunks.push(chunk)
      else chunks = []
    },
    onTrailers: (trailers) => {
      const hasTrailers = trailers !== undefined && trailers.raw.length > 0
      if (size !== Infinity && !hasTrailers && (body.length === undefined || body.length === size)) save(head, Buffer.concat(chunks))
      chunks = []
    },
  })
}
