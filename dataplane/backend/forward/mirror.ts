import type { Exchange } from '../../request/exchange/exchange.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import { transformRequest } from '../../request/transformation/request.ts'
import { beginCall } from '../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import { authenticate, authorizeRequest, isFetched } from '../../net/upstream/auth.ts'
import { authorityFor } from '../../net/upstream/destination.ts'
import { returnsNever, returnsOnce } from '../../net/upstream/loop.ts'
import type { ForwardPlan, PlannedMirror } from './plan.ts'

/**
 * Sends copies of the request to the mirrors by their share, without body and content-length. Responses are discarded, and failures have no
 * effect (traffic.md §7).
 */
export function sendMirrors(exchange: Exchange, mirrors: readonly PlannedMirror[], { random, registry }: Pick<ForwardPlan, 'random' | 'registry'>): void {
  for (const mirror of mirrors) if (random() * mirror.denominator < mirror.numerator) sendMirror(exchange, mirror, registry)
}

function sendMirror(exchange: Exchange, { destination }: PlannedMirror, registry: Registry | undefined): void {
  const { broken, auth, transformation } = destination.settings
  if (destination.error !== undefined || broken !== undefined || auth?.kind === 'broken') return
  // Not the exchange itself: the client gets no cookie of a mirror's load balancer.
  const endpoint = destination.pick({ request: exchange.request, connection: exchange.connection })
  if (endpoint === undefined) return
  const headers = exchange.request.headers.clone()
  headers.remove('content-length')
  if (auth !== undefined) authenticate(headers, auth, exchange)
  const loop = (destination.isDynamic ? returnsNever : returnsOnce)(exchange.request.loop)
  const request: RequestHead = { ...exchange.request, headers, body: undefined, upgrade: undefined, loop }
  const copy = exchange.fork(request)
  copy.backend = destination.name
  copy.backendType = destination.type
  // Bodies are not mirrored, so the transformation of the body is skipped.
  if (transformation?.request !== undefined) transformRequest(copy, { ...transformation.request, body: undefined }, new ExchangeView(copy))
  request.authority = authorityFor(copy, destination)
  const counted =
    registry &&
    beginCall(registry, exchange, 'Mirror', 'Http', { method: request.method, host: request.authority, path: request.target, endpoint: endpoint.label })
  const call = (): Promise<ResponseHead> => destination.poolFor(endpoint, copy).call(request, destination.settings).response
  const response = auth !== undefined && isFetched(auth) ? authorizeRequest(request, auth, { exchange }).then(call) : call()
  response.then(
    (head) => {
      counted?.end({ status: head.status })
      head.upgraded?.socket.destroy()
      head.body?.start({ onData: () => {}, onBorrowed: () => false, onEnd: () => {}, onError: () => {} })
    },
    (error: Error) => counted?.end({ error }),
  )
}
