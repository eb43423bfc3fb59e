import { evalBool, readsMember, type Program } from '#api/cel/index.ts'
import { isGrpcRequest } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bodyHold } from '../../request/exchange/held.ts'
import { MAX_BUFFER_BYTES, withResponseBytes, type BufferedBody } from '../../request/expression/buffer.ts'
import { contentCoding, decodePrefix } from '../../http/coding.ts'
import { readsResponseBody } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import type { ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamError } from '../upstream/types.ts'

/**
 * Records the health of an endpoint by its response, whose head arrived `seconds` after the request. The destination's policy defines
 * what is unhealthy; the default is 5xx and a grpc-status other than 0 (traffic.md §13). If the result depends on trailers (gRPC) or on
 * the body, it is recorded at the end of the response. Also stores the grpc-status in the exchange.
 */
export function recordResponse(exchange: Exchange, destination: Destination, endpoint: EndpointState, response: ResponseHead, seconds: number): void {
  const condition = destination.settings.health?.condition
  if (condition !== undefined && readsResponseBody([condition])) return recordByBody(exchange, destination, endpoint, response, condition, seconds)
  const record = (): void => destination.record(endpoint, !isUnhealthy(exchange, response, condition), seconds, response.status)
  if (!isGrpcRequest(exchange.request)) return record()
  exchange.grpcStatus = response.headers.get('grpc-status')
  const { body } = response
  if (body === undefined || exchange.grpcStatus !== undefined) return record()
  const isJudgedAtEnd = condition === undefined ? response.status < 500 : readsMember(condition, 'response.grpcStatus')
  if (!isJudgedAtEnd) record()
  response.body = new ObservedBody(body, {
    onTrailers: (trailers) => {
      exchange.grpcStatus = trailers?.get('grpc-status')
      if (isJudgedAtEnd) record()
    },
    onClose: (error) => {
      if (isJudgedAtEnd && error instanceof UpstreamError && error.failure !== 'cancelled') destination.record(endpoint, false, 0)
    },
  })
}

/** Records at the end of the body, which is forwarded as it streams. The policy sees its first MAX_BUFFER_BYTES, or fewer if the budget of buffered bodies is exceeded. */
function recordByBody(
  exchange: Exchange,
  destination: Destination,
  endpoint: EndpointState,
  response: ResponseHead,
  condition: Program,
  seconds: number,
): void {
  const { body } = response
  const chunks: Buffer[] = []
  const hold = bodyHold(exchange)
  let length = 0
  let isComplete = true
  const judge = (bytes: Pick<BufferedBody, 'prefix' | 'isComplete'>): void =>
    destination.record(endpoint, !withResponseBytes(exchange, response, bytes, () => isUnhealthy(exchange, response, condition)), seconds, response.status)
  const coding = contentCoding(response.headers)
  const record = (): void => {
    const prefix = Buffer.concat(chunks).subarray(0, MAX_BUFFER_BYTES)
    if (coding === undefined) return judge({ prefix, isComplete })
    // The condition of a response that cannot be decoded fails, as one of a longer response does.
    void decodePrefix(prefix, coding, { limitBytes: MAX_BUFFER_BYTES, isWhole: isComplete }).then(
      ({ bytes, isComplete: isWhole }) => judge({ prefix: bytes, isComplete: isWhole }),
      () => judge({ prefix: Buffer.alloc(0), isComplete: false }),
    )
  }
  const isGrpc = isGrpcRequest(exchange.request)
  if (isGrpc) exchange.grpcStatus = response.headers.get('grpc-status')
  if (body === undefined) return record()
  response.body = new ObservedBody(body, {
    onData: (chunk) => {
      if (!isComplete) return
      if (hold.reserve(chunk.length) === undefined) chunks.push(chunk)
      else isComplete = false
      length += chunk.length
      if (length > MAX_BUFFER_BYTES) isComplete = false
    },
    onTrailers: (trailers) => {
      if (isGrpc) exchange.grpcStatus ??= trailers?.get('grpc-status')
      record()
    },
    onClose: (error) => {
      if (error instanceof UpstreamError && error.failure !== 'cancelled') destination.record(endpoint, false, 0)
    },
  })
}

/** Whether a response is unhealthy by the policy's condition, or by default. */
export function isUnhealthy(exchange: Exchange, response: ResponseHead, condition: Program | undefined): boolean {
  if (condition === undefined) return response.status >= 500 || (exchange.grpcStatus !== undefined && exchange.grpcStatus !== '0')
  // An attempt that may be retried is not yet the response of the exchange.
  const before = exchange.response
  exchange.response = response
  try {
    return evalBool(condition, new ExchangeView(exchange))
  } finally {
    exchange.response = before
  }
}
