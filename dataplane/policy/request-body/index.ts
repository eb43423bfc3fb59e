import type { RequestBody } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { isGrpcRequest, ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bodyHold } from '../../request/exchange/held.ts'
import { withinDeadline } from '../../request/expression/buffer.ts'
import { PeekedBody } from '../../request/expression/peek.ts'
import { BodyTooLargeError, type Body } from '../../http/body.ts'
import { ObservedBody } from '../../http/observe.ts'

/** Why the body of a gRPC request ended early. */
interface Outcome {
  failure?: ProxyError
}

/**
 * Limits the body of requests (traffic.md §8.20). A body whose length is known is not read. Another one is read first, but for gRPC, whose streams
 * end with a response.
 *
 * @throws ProxyError BODY_TOO_LARGE (413); HELD_BYTES (503), REQUEST_TIMEOUT (504) and PROCESSING_FAILED (503) while the body is read.
 * @example
 * traffic:
 *   requestBody:
 *     maxSize: 1048576
 */
export function compileRequestBody({ maxSize }: RequestBody): Policy {
  const tooLarge = (): ProxyError => new ProxyError('BODY_TOO_LARGE', { cause: new BodyTooLargeError(maxSize) })
  return withSides<Outcome | undefined>({
    request(exchange) {
      const { request } = exchange
      const { body } = request
      if (body === undefined || request.upgrade !== undefined) return undefined
      if (body.length !== undefined) {
        if (body.length > maxSize) throw tooLarge()
        return undefined
      }
      if (!isGrpcRequest(request)) return readFirst(exchange, body, maxSize, tooLarge)
      const outcome: Outcome = {}
      let size = 0
      const counted = new ObservedBody(body, {
        onData(chunk) {
          size += chunk.length
          if (size > maxSize) counted.fail((outcome.failure = tooLarge()))
        },
      })
      request.body = counted
      return outcome
    },
    /** The call of the upstream failed with the body: the client learns why. */
    response({ error }, outcome) {
      if (outcome?.failure !== undefined && error !== undefined) throw outcome.failure
    },
  })
}

/** Reads a body of unknown length, so that a longer one does not reach the upstream. */
async function readFirst(exchange: Exchange, body: Body, maxSize: number, tooLarge: () => ProxyError): Promise<undefined> {
  const { deadlineAtMs } = exchange
  const peeked = new PeekedBody(body)
  try {
    const work = peeked.peek(maxSize, bodyHold(exchange))
    const { isComplete } = await (deadlineAtMs === undefined ? work : withinDeadline(work, deadlineAtMs))
    if (!isComplete) throw tooLarge()
    exchange.request.body = peeked
  } catch (error) {
    peeked.cancel()
    throw error instanceof ProxyError ? error : new ProxyError('PROCESSING_FAILED', { detail: 'the request body broke off', cause: error })
  }
}
