import type { Exchange } from '../../../request/exchange/exchange.ts'
import { startCall, tokenFailure } from '../../../net/callout/http.ts'
import { BufferBody } from '../../../http/body.ts'
import type { HeaderList } from '../../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import { transformForBackend } from '../../../request/transformation/backend.ts'
import { beginCall, type CallDetails } from '../../../observe/telemetry/metrics/call.ts'
import type { Registry } from '../../../observe/telemetry/metrics/registry.ts'
import type { EndpointState } from '../../../net/upstream/balancer/balancer.ts'
import { authorityFor } from '../../../net/upstream/destination.ts'
import type { RetryPlan } from '../../forward/call-plan.ts'
import { setRetryHeader, withRetries } from '../../forward/retry.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { MAX_EVENT_CHARS } from '../sse/parser.ts'
import type { Target } from '../target/target.ts'
import { decodeBody } from './decode.ts'
import { transformAnswer } from './transform.ts'
import type { RpcId, RpcMessage } from '../message/rpc.ts'

/** Properties of a message, for headers and for matching its response. */
export interface MessageLabel {
  /** Undefined if the message is a response to the server. */
  readonly method: string | undefined
  /** Name or URI of the item, as the target knows it. */
  readonly name?: string | undefined
  /** Name of the item as the client sent it, for errors of the gateway. */
  readonly shownName?: string | undefined
  /** Headers of arguments, in place of those of the client. */
  readonly params?: readonly (readonly [string, string])[] | undefined
  /** Arguments of a tool, as the target receives them. */
  readonly arguments?: unknown
  /** Id, if the message is a request. */
  readonly id?: RpcId | undefined
  /** Token of the progress notifications that the client wants. */
  readonly progressToken?: unknown
  /** The response has log messages too, which the client receives on no other stream. */
  readonly takesLogs?: boolean
}

/** Context of a call to a target: the client's request and the plan of its rule. */
export interface CallContext {
  readonly exchange: Exchange
  readonly registry: Registry
  /** Limit of each attempt until its response head, in milliseconds; undefined is no limit. */
  readonly timeoutMs: number | undefined
  readonly retry: RetryPlan | undefined
  readonly maxBufferBytes: number | undefined
  /** Response headers that a transformation set. With a single target they are added to the client's response. */
  readonly answerHeaders: HeaderList
  /** The client's message and its text, whose members were checked (`message/members.ts`). */
  readonly received?: { readonly message: RpcMessage; readonly text: string } | undefined
  /** Aborted with a CancelledError when the client cancels the request. Its calls end, and no others start. */
  readonly cancellation?: AbortSignal | undefined
}

/** Limit of a message that the gateway reads, in characters: `maxBufferSize` if it is above the default. */
export const messageLimit = ({ maxBufferBytes = 0 }: Pick<CallContext, 'maxBufferBytes'>): number => Math.max(MAX_EVENT_CHARS, maxBufferBytes)

/** An HTTP request to a target. */
export interface TargetCall {
  readonly method: 'POST' | 'GET' | 'DELETE' | 'OPTIONS' | 'PUT' | 'PATCH'
  /** Path and query. Default: those of the target. */
  readonly path?: string | undefined
  readonly headers: HeaderList
  readonly body?: Buffer | undefined
  /** Method and name of the message in the body. */
  readonly message?: Pick<MessageLabel, 'method' | 'name'>
  /** `host:port` that a session is bound to. */
  readonly endpoint?: string | undefined
  /** False if the call may have side effects. It is then retried only if it was not sent. Default: true. */
  readonly isRepeatable?: boolean
}

/** The endpoint of a session was removed, and the session with it. */
export class EndpointGoneError extends Error {}

/** The response of a target, its content coding removed. */
export interface TargetAnswer {
  readonly response: ResponseHead
  /** `host:port` that responded. */
  readonly endpoint: string
}

/**
 * Sends an HTTP request to a target, with the transformations of the backend and the retries of the rule. Rejects with an
 * EndpointGoneError, an UpstreamError, a ProxyError or the reason of the cancellation.
 */
export async function callTarget(context: CallContext, target: Target, call: TargetCall): Promise<TargetAnswer> {
  const { exchange, retry, cancellation } = context
  exchange.upstreamStartedAtMs ||= performance.now()
  const request = requestTo(exchange, target, call)
  const { transformation } = target.destination.settings
  let sent: Exchange | undefined
  if (transformation !== undefined) await transformForBackend((sent = exchange.fork(request)), transformation, context.maxBufferBytes)
  const canRetry = (outcome: ResponseHead | Error): boolean => cancellation?.aborted !== true && (call.isRepeatable !== false || isUnsent(outcome))
  let endpoint = ''
  const attempt = async (number: number): Promise<ResponseHead> => {
    const answer = await tryEndpoints(context, target, call, request, number)
    endpoint = answer.endpoint
    return answer.response
  }
  const response = await withRetries(exchange, retry, attempt, { canRetry, recordsAttempts: false })
  return { response: sent === undefined ? response : await transformAnswer(sent, target, response, context), endpoint }
}

/** Whether the target did not receive the request. */
const isUnsent = (error: ResponseHead | Error): boolean => error instanceof UpstreamError && (error.failure === 'connect' || error.failure === 'dns')

/** Maximum number of endpoints that one attempt connects to. */
const MAX_ENDPOINTS = 4

/** One attempt. Skips endpoints that refuse connections: any other can start the session. */
async function tryEndpoints(context: CallContext, target: Target, call: TargetCall, request: RequestHead, number: number): Promise<TargetAnswer> {
  const { destination } = target
  if (call.endpoint !== undefined) {
    const pinned = destination.endpointAt(call.endpoint)
    if (pinned === undefined) throw new EndpointGoneError(`${target.name} has no endpoint ${call.endpoint} any more`)
    return tryOnce(context, target, call, request, number, pinned)
  }
  const failed = new Set<EndpointState>()
  let endpoint = chooseEndpoint(target, request)
  for (;;) {
    try {
      return await tryOnce(context, target, call, request, number, endpoint)
    } catch (error) {
      const isRefused = error instanceof UpstreamError && error.failure === 'connect'
      if (!isRefused || endpoint === undefined || context.exchange.abortReason !== undefined) throw error
      endpoint = nextEndpoint(target, failed.add(endpoint))
      if (endpoint === undefined) throw error
    }
  }
}

function nextEndpoint({ destination }: Target, failed: ReadonlySet<EndpointState>): EndpointState | undefined {
  return failed.size < MAX_ENDPOINTS ? destination.pickOther(failed) : undefined
}

async function tryOnce(
  { exchange, registry, timeoutMs, cancellation }: CallContext,
  target: Target,
  call: TargetCall,
  request: RequestHead,
  number: number,
  pinned: EndpointState | undefined,
): Promise<TargetAnswer> {
  cancellation?.throwIfAborted()
  const { destination } = target
  // Each attempt needs a body that was not read.
  const body = request.body instanceof BufferBody ? request.body.copy() : undefined
  const details = { method: call.method, host: destination.name, path: request.target, endpoint: pinned?.label, ...nameSpan(target, call) }
  const span = beginCall(registry, exchange, 'Primary', 'Mcp', details)
  const headers = request.headers.clone()
  setRetryHeader(headers, number)
  if (span.traceparent !== undefined) headers.set('traceparent', span.traceparent)
  const { method, target: path, authority } = request
  const started = startCall(destination, { method, target: path, authority, headers, body, isGrpc: target.grpc !== undefined }, { timeoutMs, exchange, pinned })
  cancellation?.addEventListener('abort', () => started.cancel(new UpstreamError('cancelled', 'the client cancelled the request', cancellation.reason)), {
    once: true,
  })
  try {
    const response = await started.response
    span.end({ status: response.status })
    exchange.endpoint = started.endpoint
    return { response: { ...response, body: decodeBody(response) }, endpoint: started.endpoint ?? '' }
  } catch (error) {
    span.end({ error: error instanceof Error ? error : new Error(String(error)) })
    throw tokenFailure(error) ?? error
  }
}

/** Names are chosen by clients, so their length is not limited. */
const MAX_SPAN_NAME_CHARS = 256

/** Name and fields of a call's span: `tools/call a_echo`, `tools/list a`, `response a`, `DELETE a` (mcp.md §10). */
function nameSpan({ name: target }: Target, { method, message }: TargetCall): Pick<CallDetails, 'name' | 'fields'> {
  if (message === undefined) return { name: `${method} ${target}`, fields: { 'mcp.target': target } }
  const isTool = message.method === 'tools/call'
  const item = isTool || message.method === 'prompts/get' ? message.name : undefined
  const name = `${message.method ?? 'response'} ${target}${item === undefined ? '' : `_${item}`}`
  const fields = { 'mcp.target': target, 'mcp.method.name': message.method, 'gen_ai.tool.name': isTool ? item : undefined }
  return { name: name.slice(0, MAX_SPAN_NAME_CHARS), fields }
}

/** Chosen before the call, so that the endpoint that handles `initialize` is known. */
function chooseEndpoint({ destination }: Target, request: RequestHead): EndpointState | undefined {
  return destination.error === undefined ? destination.pick({ request, connection: { tls: undefined } }) : undefined
}

function requestTo(exchange: Exchange, { destination, path }: Target, call: TargetCall): RequestHead {
  const authority = authorityFor(exchange, destination)
  return {
    method: call.method,
    target: call.path ?? path,
    scheme: destination.settings.tls === undefined ? 'http' : 'https',
    authority,
    version: 'HTTP/1.1',
    headers: call.headers,
    body: call.body === undefined ? undefined : new BufferBody(call.body),
    upgrade: undefined,
    acceptsTrailers: false,
  }
}
