import type { Transformation } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { bufferRequest, bufferResponse, MAX_BUFFER_BYTES, releaseRequest } from '../../request/expression/buffer.ts'
import { parsesJson, needsRequestBody, readsResponseBody } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { PolicyState } from '../state.ts'
import { compileTransform, programsOf } from '../../request/transformation/compile.ts'
import { transformRequest } from '../../request/transformation/request.ts'
import { transformResponse } from '../../request/transformation/response.ts'

/**
 * Changes request and response by expressions (traffic.md §8.10): `add`, `set` and `remove` headers or pseudo headers, replace the `body`,
 * and compute `metadata` for other policies. The response side sees the request as it was forwarded, and runs on responses of the gateway
 * itself too.
 *
 * @example
 * traffic:
 *   transformation:
 *     request:
 *       set:
 *         - name: ':path'
 *           value: '"/v1" + request.pathAndQuery'
 *     response:
 *       set:
 *         - name: x-user
 *           value: jwt.sub
 */
export function compileTransformation(section: Transformation, { kept }: Pick<PolicyState, 'kept'>, maxBufferBytes = MAX_BUFFER_BYTES): Policy {
  const { request, response } = kept.get(section, [], () => ({
    request: section.request && compileTransform(section.request, 'request'),
    response: section.response && compileTransform(section.response, 'response'),
  }))
  const buffersRequest = needsRequestBody([...programsOf(request), ...programsOf(response)])
  const buffersResponse = readsResponseBody(programsOf(response))
  const parses = parsesJson([...programsOf(request), ...programsOf(response)])
  // A policy that waits for a body or has to clean up after any outcome is plain middleware.
  if (!buffersRequest && !buffersResponse && request?.setsMethod !== true)
    return withSides({
      ...(request && { request: (exchange) => transformRequest(exchange, request, new ExchangeView(exchange)) }),
      ...(response && { response: (exchange) => transformResponse(exchange, response, new ExchangeView(exchange)) }),
    })
  return async (c, next) => {
    const { exchange } = c.var
    if (buffersRequest) await bufferRequest(exchange, maxBufferBytes, parses)
    const { method } = exchange.request
    try {
      if (request !== undefined) transformRequest(exchange, request, new ExchangeView(exchange))
      await next()
      if (response === undefined) return
      if (buffersResponse) await bufferResponse(exchange, maxBufferBytes, parses)
      transformResponse(exchange, response, new ExchangeView(exchange))
    } finally {
      // Whether a response has a body depends on the method of the client, not on the forwarded one.
      exchange.request.method = method
      if (buffersRequest) releaseRequest(exchange)
    }
  }
}
