import type { Exchange } from '../../../request/exchange/exchange.ts'
import { PeekedBody } from '../../../request/expression/peek.ts'
import { contentCoding, decodePrefix } from '../../../http/coding.ts'
import type { ResponseHead } from '../../../http/message.ts'

/** Bytes of an error that are read for its cause. */
const MAX_BYTES = 65_536
/** Time for an upstream to send them. */
const MAX_WAIT_MS = 2000
const nothing = Buffer.alloc(0)

/** Reads the beginning of an error response, decoded. The response keeps its whole body. Empty if the body does not arrive or cannot be decoded. */
export async function readErrorBody(exchange: Exchange, response: ResponseHead): Promise<Buffer> {
  const { body } = response
  if (body === undefined) return nothing
  const peeked = new PeekedBody(body)
  response.body = peeked
  const leftMs = exchange.deadlineAtMs === undefined ? Infinity : exchange.deadlineAtMs - performance.now()
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), Math.max(0, Math.min(MAX_WAIT_MS, leftMs)))
  try {
    const read = await Promise.race([peeked.peek(MAX_BYTES), late.promise])
    if (read === undefined) return nothing
    const coding = contentCoding(response.headers)
    if (coding === undefined) return read.prefix
    return (await decodePrefix(read.prefix, coding, { limitBytes: MAX_BYTES, isWhole: read.isComplete })).bytes
  } catch {
    return nothing
  } finally {
    clearTimeout(timer)
  }
}
