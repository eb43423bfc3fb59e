import { ProcessingMode_BodySendMode as Wire } from '#gen/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.js'
import type { ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { toResponseHead } from '../../request/exchange/answer.ts'
import { callFailureClass, isCallFailure } from '../../net/callout/grpc.ts'
import { LightContext } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bufferedRequest, bufferRequest, decodeContent, MAX_BUFFER_BYTES, releaseRequest, replaceRequestBody } from '../../request/expression/buffer.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { bodyMessage, mutateHead, requestHeaders, respondImmediately } from '../../policy/ext-proc/messages.ts'
import { modesOf } from '../../policy/ext-proc/modes.ts'
import { ImmediateAnswer, ProcessorSession } from '../../policy/ext-proc/session.ts'
import { setLogField } from '../../observe/telemetry/access-log/fields.ts'
import { createRegistry, type Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import type { EndpointPool } from '../../net/upstream/hooks.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import { RequestReplies } from './replies.ts'

/** Header or metadata field with the selected endpoints in order of preference: `ip:port,ip:port`. */
const DESTINATION = ownHeaders.endpoint
/** Namespace of the dynamic metadata that may contain the field instead of a header. */
export const METADATA = 'envoy.lb'
/** A picker may delay a request while all endpoints are busy, up to this limit. */
const TIMEOUT_MS = 30_000
/** Bytes of body per message; gRPC servers accept messages of up to 4 MiB by default. */
const PIECE_BYTES = 1024 * 1024
const modes = modesOf()
const uncounted = createRegistry()

/** The endpoint picker of an InferencePool. */
export interface EndpointPicker {
  readonly destination: Destination
  /** Balances if the picker is unavailable; otherwise requests fail. */
  readonly isFailOpen: boolean
}

interface PickerOptions {
  /** Largest body that is sent to the picker, in bytes. Default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
  readonly registry?: Registry | undefined
  /** Timeout of each reply in milliseconds. Default 30 s. */
  readonly timeoutMs?: number
}

/** The endpoints that the picker selected. */
export interface PickedEndpoints {
  /** Labels of the pool's endpoints in the picker's order; undefined if the picker failed open, so that the load balancer selects an endpoint. */
  readonly labels: readonly string[] | undefined
  /** The stream to the picker, for the response phase. */
  readonly session: ProcessorSession | undefined
}

/**
 * Sends the request to the picker of `pool`, applies its changes to head and body, and returns the selected endpoints. undefined if the
 * picker responded to the client itself; the response is then set. Throws a ProxyError if the picker fails and is not fail-open, or if
 * it selects no endpoint of the pool.
 */
export async function pickEndpoints(
  exchange: Exchange,
  pool: EndpointPool,
  picker: EndpointPicker,
  options: PickerOptions,
): Promise<PickedEndpoints | undefined> {
  const { maxBufferBytes = MAX_BUFFER_BYTES, registry = uncounted, timeoutMs = TIMEOUT_MS } = options
  const { request } = exchange
  // The client must not select the endpoint.
  request.headers.remove(DESTINATION)
  decodeContent(exchange, 'request')
  if (request.body !== undefined) await bufferRequest(exchange, maxBufferBytes)
  if (bufferedRequest(exchange)?.isComplete === false) {
    if (picker.isFailOpen) return { labels: undefined, session: undefined }
    releaseRequest(exchange)
    throw new ProxyError('BODY_TOO_LARGE', { detail: `the endpoint picker accepts at most ${maxBufferBytes} bytes` })
  }
  const session = new ProcessorSession(exchange, picker.destination, modes, timeoutMs, registry)
  try {
    const named = await requestEndpoints(exchange, session, maxBufferBytes, timeoutMs)
    const labels = named.filter((label) => pool.endpointAt(label) !== undefined)
    if (labels[0] === undefined) throw missed(named, pool)
    setLogField(exchange, 'inferencepool.selected_endpoint', labels[0])
    return { labels, session }
  } catch (error) {
    if (error instanceof ImmediateAnswer) {
      exchange.response = toResponseHead(respondImmediately(new LightContext(exchange), error.response))
      releaseRequest(exchange)
      return undefined
    }
    session.abandon(error instanceof Error ? error : new Error(String(error)))
    const isFailure = isCallFailure(error)
    if (isFailure && picker.isFailOpen && exchange.abortReason === undefined) {
      request.headers.remove(DESTINATION)
      return { labels: undefined, session: undefined }
    }
    releaseRequest(exchange)
    throw isFailure ? new ProxyError('ENDPOINT_PICKER', { detail: callFailureClass(error), cause: error }) : error
  }
}

function missed(named: readonly string[], pool: EndpointPool): ProxyError {
  if (named.length === 0) return new ProxyError('ENDPOINT_PICKER', { detail: 'the picker named no endpoint' })
  const text = named.join(',')
  // For logs only: it has addresses.
  const cause = new Error(`${text.length > 100 ? `${text.slice(0, 97)}...` : text} is not an endpoint of ${pool.name}`)
  return new ProxyError('ENDPOINT_PICKER', { detail: 'the picker named no endpoint of the pool', cause })
}

/** The request phase. Returns the endpoints that the picker selects, in order of preference. */
async function requestEndpoints(exchange: Exchange, session: ProcessorSession, limitBytes: number, timeoutMs: number): Promise<string[]> {
  const { request } = exchange
  const buffered = request.body === undefined ? undefined : bufferedRequest(exchange)
  const replies = new RequestReplies(session, Math.max(limitBytes, 1) * 2)
  if (buffered !== undefined) session.add(replies)
  // Send the body without waiting for the reply to the head: the picker may need it for that reply.
  session.send(requestHeaders(request))
  if (buffered !== undefined) sendPieces(session, buffered.prefix)
  const head = await session.await('requestHeaders')
  const common = head.response.case === 'requestHeaders' ? head.response.value.response : undefined
  mutateHead(exchange, 'request', common?.headerMutation)
  let named = namedIn(head.dynamicMetadata)
  if (buffered !== undefined) {
    if (head.modeOverride?.requestBodyMode === Wire.NONE) replies.stop()
    else {
      const body = await withTimeout(replies.done, timeoutMs)
      if (body !== undefined && !body.equals(buffered.prefix)) replaceBody(exchange, body)
    }
    for (const { headerMutation, dynamicMetadata } of replies.replies) {
      mutateHead(exchange, 'request', headerMutation)
      named ??= namedIn(dynamicMetadata)
    }
  }
  const text = request.headers.get(DESTINATION) ?? named ?? ''
  return text
    .split(',')
    .map((label) => label.trim())
    .filter((label) => label !== '')
}

function sendPieces(session: ProcessorSession, body: Buffer): void {
  let at = 0
  do {
    const end = at + PIECE_BYTES
    session.send(bodyMessage('request', body.subarray(at, end), end >= body.length))
    at = end
  } while (at < body.length)
}

function replaceBody(exchange: Exchange, body: Buffer): void {
  exchange.request.headers.remove('content-length')
  replaceRequestBody(exchange, body)
}

function namedIn(metadata: ProcessingResponse['dynamicMetadata']): string | undefined {
  const values = metadata?.[METADATA]
  const named = typeof values === 'object' && values !== null && !Array.isArray(values) ? values[DESTINATION] : undefined
  return typeof named === 'string' ? named : undefined
}

async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UpstreamError('connect-timeout', `no reply about the body within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
