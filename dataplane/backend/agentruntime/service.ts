import type { BackendFull } from '#gen/config/types.ts'
import { toProxyFailure } from '../forward/failure.ts'
import { setRetryHeader, withRetries } from '../forward/retry.ts'
import { startCall } from '../../net/callout/http.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import { readHeldBody } from '../../request/exchange/held.ts'
import { BodyTooLargeError, BufferBody } from '../../http/body.ts'
import type { ResponseHead } from '../../http/message.ts'
import { transformForBackend } from '../../request/transformation/backend.ts'
import type { BackendService, ServiceConfig } from '../forward/service.ts'
import type { Destination } from '../../net/upstream/destination.ts'
import type { CallPlan } from '../forward/call-plan.ts'
import { runtimeEndpoint, type RuntimeEndpoint } from './arn.ts'

/** The default with the lowest precedence: the credentials of the process. */
const DEFAULT_AUTH: BackendFull = { auth: { cloudA: {} } }

/** A backend for agents on Amazon Bedrock AgentCore. Forwards requests without interpreting their protocol, MCP or A2A (mcp.md §11). */
export function createAgentRuntime(config: ServiceConfig): BackendService {
  let { destination, runtime } = compile(config)
  return {
    handle: (exchange, plan) => invoke(exchange, plan, destination, runtime),
    update(next) {
      ;({ destination, runtime } = compile(next))
    },
    close() {},
  }
}

function compile({ backend, outer, destinations }: ServiceConfig): { destination: Destination | undefined; runtime: RuntimeEndpoint | string } {
  const reference = backend.cloudBackend?.agentRuntime
  const runtime = reference === undefined ? 'cloudBackend is empty: set agentCore' : runtimeEndpoint(reference.agentRuntimeRef, reference.qualifier)
  if (typeof runtime === 'string') return { destination: undefined, runtime }
  const part = {
    backend: backend.key,
    section: '',
    host: runtime.host,
    port: 443,
    inline: backend.policies,
    outer: { ...DEFAULT_AUTH, ...outer },
    isTlsDefault: true,
  }
  return { destination: destinations.forPart(part), runtime }
}

async function invoke(exchange: Exchange, plan: CallPlan, destination: Destination | undefined, runtime: RuntimeEndpoint | string): Promise<ResponseHead> {
  if (destination === undefined || typeof runtime === 'string') throw new ProxyError('FILTER_FAILED', { detail: typeof runtime === 'string' ? runtime : '' })
  const { request } = exchange
  const { transformation } = destination.settings
  // The ARN determines the target; the client's path and query are not forwarded.
  request.target = runtime.target
  request.authority = runtime.host
  if (transformation !== undefined) await transformForBackend(exchange, transformation, plan.maxBufferBytes)
  const body = await readAll(exchange, plan.maxBufferBytes)
  exchange.upstreamStartedAtMs = performance.now()
  const head = await withRetries(exchange, plan.retry, async (number) => {
    const headers = request.headers.clone()
    headers.remove('content-length')
    setRetryHeader(headers, number)
    const call = startCall(
      destination,
      {
        method: request.method,
        target: request.target,
        authority: runtime.host,
        headers,
        body: body === undefined ? undefined : new BufferBody(body),
        version: request.version,
        cloud: { signing: { region: runtime.region, service: 'bedrock-agentcore' } },
      },
      { exchange, timeoutMs: plan.backendRequestMs },
    )
    const response = await call.response
    exchange.endpoint = call.endpoint
    return response
  }).catch((error: unknown) => {
    throw toProxyFailure(error)
  })
  exchange.responseHeadAtMs = performance.now()
  return head
}

/** Reads the complete body, because the signature includes its hash. */
async function readAll(exchange: Exchange, maxBytes = MAX_BUFFER_BYTES): Promise<Buffer | undefined> {
  const { body } = exchange.request
  if (body === undefined) return undefined
  try {
    return (await readHeldBody(exchange, body, maxBytes)).bytes
  } catch (cause) {
    if (cause instanceof ProxyError) throw cause
    throw cause instanceof BodyTooLargeError
      ? new ProxyError('BODY_TOO_LARGE', { cause })
      : new ProxyError('PROCESSING_FAILED', { detail: 'the client closed the request body early', cause })
  }
}
