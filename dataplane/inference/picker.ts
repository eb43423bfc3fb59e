import { ProcessingMode_BodySendMode as Wire } from '#gen/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.js'
import type { ProcessingResponse } from '#gen/proto/envoy/service/ext_proc/v3/external_processor_pb.js'
import { toResponseHead } from '../exchange/answer.ts'
import { isCallFailure } from '../callout/grpc.ts'
import { LightContext } from '../exchange/context.ts'
import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bufferedRequest, bufferRequest, MAX_BUFFER_BYTES, releaseRequest, replaceRequestBody } from '../expression/buffer.ts'
import { bodyMessage, mutateHead, requestHeaders, respondAtOnce } from '../policy/ext-proc/messages.ts'
import { modesOf } from '../policy/ext-proc/modes.ts'
import { ImmediateAnswer, Session } from '../policy/ext-proc/session.ts'
import { setLogField } from '../telemetry/access-log/fields.ts'
import { createRegistry, type Registry } from '../telemetry/metrics/registry.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamError } from '../upstream/types.ts'
import { RequestReplies } from './replies.ts'

/** Field that names the endpoints, in order of preference: `ip:port,ip:port`. */
const DESTINATION = 'x-gateway-destination-endpoint'
/** Namespace of dynamic metadata that may name them instead. */
export const METADATA = 'envoy.lb'
/** A picker may keep a request waiting while all endpoints are busy; for ever it may not. */
const TIMEOUT_MS = 30_000
/** Below what gRPC servers take in one message (4 MiB). */
const PIECE_BYTES = 1024 * 1024
const modes = modesOf()
const uncounted = createRegistry()

interface PickerOptions {
  /** Largest body that the picker is asked about. Default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
  readonly registry?: Registry | undefined
  /** Of each answer; default 30 s. */
  readonly timeoutMs?: number
}

/** Where a request goes. */
export interface Choice {
  /** Labels of the pool's endpoints in the picker's order; undefined: the picker is out of order, and the endpoints are balanced. */
  readonly labels: readonly string[] | undefined
  /** The stream to the picker, which wants to know of the response. */
  readonly session: Session | undefined
}

/**
 * Asks the picker of `pool` where the request goes, and carries out its changes to head and body. Undefined: the picker has
 * answered the client itself, and the response is set. Throws a ProxyError when it cannot be asked and fails close, or names no
 * endpoint of the pool.
 */
export async function choose(
  exchange: Exchange,
  pool: Destination,
  picker: NonNullable<Destination['picker']>,
  options: PickerOptions,
): Promise<Choice | undefined> {
  const { maxBufferBytes = MAX_BUFFER_BYTES, registry = uncounted, timeoutMs = TIMEOUT_MS } = options
  const { request } = exchange
  // What the client says of it would count where the picker says nothing.
  request.headers.remove(DESTINATION)
  if (request.body !== undefined) await bufferRequest(exchange, maxBufferBytes)
  if (bufferedRequest(exchange)?.isComplete === false) {
    if (picker.isFailOpen) return { labels: undefined, session: undefined }
    releaseRequest(exchange)
    throw new ProxyError('BODY_TOO_LARGE', { detail: `the endpoint picker gets at most ${maxBufferBytes} bytes` })
  }
  const session = new Session(exchange, picker.destination, modes, timeoutMs, registry)
  try {
    const named = await ask(exchange, session, maxBufferBytes, timeoutMs)
    const labels = named.filter((label) => pool.endpointAt(label) !== undefined)
    if (labels[0] === undefined) throw new ProxyError('ENDPOINT_PICKER', { detail: describeMiss(named, pool) })
    setLogField(exchange, 'inferencepool.selected_endpoint', labels[0])
    return { labels, session }
  } catch (error) {
    if (error instanceof ImmediateAnswer) {
      exchange.response = toResponseHead(respondAtOnce(new LightContext(exchange), error.response))
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
    throw isFailure ? new ProxyError('ENDPOINT_PICKER', { detail: (error as Error).message, cause: error }) : error
  }
}

function describeMiss(named: readonly string[], pool: Destination): string {
  if (named.length === 0) return 'the picker named no endpoint'
  const text = named.join(',')
  return `the picker named ${text.length > 100 ? `${text.slice(0, 97)}...` : text}, which is no endpoint of ${pool.name}`
}

/** The request phase. Gives the endpoints that the picker names. */
async function ask(exchange: Exchange, session: Session, limitBytes: number, timeoutMs: number): Promise<string[]> {
  const { request } = exchange
  const buffered = request.body === undefined ? undefined : bufferedRequest(exchange)
  const replies = new RequestReplies(session, Math.max(limitBytes, 1) * 2)
  if (buffered !== undefined) session.add(replies)
  // The picker may want the body before it says anything about the head.
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

function sendPieces(session: Session, body: Buffer): void {
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
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new UpstreamError('connect-timeout', `no reply about the body within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
