import type { AttemptTarget } from '../../forward/attempt.ts'
import { toProxyFailure } from '../../forward/failure.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { ResponseHead } from '../../../http/message.ts'

/**
 * Calls a pool: its endpoint picker reads the request as the target receives it, chooses the endpoint, and receives the response. Resolves with the response
 * of the picker, if that rejects the request. Rejects with a ProxyError.
 */
export async function callPool(
  exchange: Exchange,
  target: AttemptTarget,
  maxBufferBytes: number,
  call: (target: AttemptTarget) => Promise<ResponseHead>,
): Promise<ResponseHead> {
  const { destination, request } = target
  const sent = exchange.fork(request)
  exchange.onAbort((reason) => sent.abort(reason))
  const choice = await destination.hooks?.choose?.(sent, destination, maxBufferBytes)
  if (choice === undefined) {
    if (sent.response === undefined) throw new ProxyError('ENDPOINT_PICKER', { detail: 'the picker chose no endpoint' })
    return sent.response
  }
  try {
    const { labels, by } = choice
    const alive = labels?.flatMap((label) => destination.endpointAt(label) ?? [])
    const endpoint = alive === undefined ? target.endpoint : alive[exchange.retryAttempt % alive.length]
    if (endpoint === undefined) throw new ProxyError('NO_HEALTHY_BACKENDS', { detail: `no endpoint that ${by} chose is left in ${destination.name}` })
    if (sent.request.authority === target.endpoint.label) sent.request.authority = endpoint.label
    sent.response = await call({ ...target, endpoint, request: sent.request, why: alive === undefined ? target.why : `choice of ${by}` })
    sent.endpoint = endpoint.label
    await choice.report()
    return sent.response
  } catch (error) {
    choice.abandon(toProxyFailure(error))
    throw error
  }
}
