import type { Decompression } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { codingFailure, decodeContent } from '../../request/expression/buffer.ts'
import { BodyTooLargeError } from '../../http/body.ts'
import { CodingError } from '../../http/coding.ts'
import { ObservedBody } from '../../http/observe.ts'

const MAX_SIZE = 10 * 1024 * 1024

/** Why the body of a request ended early. */
interface Outcome {
  failure?: ProxyError
}

/**
 * Decompresses bodies of requests for upstreams that do not (traffic.md §8.16).
 *
 * @throws ProxyError CONTENT_CODING (415), CONTENT_MISMATCH (400), BODY_TOO_LARGE (413)
 * @example
 * traffic:
 *   decompression:
 *     maxSize: 1048576
 */
export function compileDecompression({ maxSize = MAX_SIZE }: Decompression): Policy {
  return withSides<Outcome | undefined>({
    request(exchange) {
      const { request } = exchange
      const coded = request.body
      decodeContent(exchange, 'request')
      if (request.body === undefined || request.body === coded) return undefined
      const outcome: Outcome = {}
      let size = 0
      const body = new ObservedBody(request.body, {
        onData(chunk) {
          size += chunk.length
          if (size > maxSize) body.fail((outcome.failure = new ProxyError('BODY_TOO_LARGE', { cause: new BodyTooLargeError(maxSize) })))
        },
        onClose(error) {
          if (error instanceof CodingError) outcome.failure = codingFailure(error, 'request')
        },
      })
      request.body = body
      return outcome
    },
    /** The call of the upstream failed with the body: the client learns why. */
    response({ error }, outcome) {
      if (outcome?.failure !== undefined && error !== undefined) throw outcome.failure
    },
  })
}
