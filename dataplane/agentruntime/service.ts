import type { BackendFull } from '#gen/config/types.ts'
import { toProxyFailure } from '../forward/failure.ts'
import { setRetryHeader, withRetries } from '../forward/retry.ts'
import { startCall } from '../callout/http.ts'
import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { MAX_BUFFER_BYTES } from '../expression/buffer.ts'
import { BodyTooLargeError, BufferBody, readBody } from '../http/body.ts'
import type { ResponseHead } from '../http/message.ts'
import { transformForBackend } from '../transformation/backend.ts'
import type { BackendService, ServiceConfig } from '../forward/service.ts'
import type { Destination } from '../upstream/destination.ts'
import type { CallPlan } from '../forward/call-plan.ts'
import { placeOf, type RuntimePlace } from './arn.ts'

/** The weakest of all policies: the credentials of the process. */
const DEFAULT_AUTH: BackendFull = { auth: { cloudA: {} } }

/** An agent hosted on Amazon Bedrock AgentCore: what it speaks, MCP or A2A, passes through unread (mcp.md §11). */
export function createAgentRuntime(config: ServiceConfig): BackendService {
  let { destination, place } = compile(config)
  return {
    handle: (exchange, plan) => invoke(exchange, plan, destination, place),
    update(next) {
      ;({ destination, place } = compile(next))
    },
    close() {},
  }
}

function compile({ backend, outer, destinations }: ServiceConfig): { destination: Destination | undefined; place: RuntimePlace | string } {
  const runtime = backend.cloudBackend?.agentRuntime
  const place = runtime === undefined ? 'cloudBackend is empty: set agentRuntime' : placeOf(runtime.agentRuntimeRef, runtime.qualifier)
  if (typeof place === 'string') return { destination: undefined, place }
  const part = {
    backend: backend.key,
    section: '',
    host: place.host,
    port: 443,
    inline: backend.policies,
    outer: { ...DEFAULT_AUTH, ...outer },
    isTlsDefault: true,
  }
  return { destination: destinations.forPart(part), place }
}

async function invoke(exchange: Exchange, plan: CallPlan, destination: Destination | undefined, place: RuntimePlace | string): Promise<ResponseHead> {
  if (destination === undefined || typeof place === 'string') throw new ProxyError('FILTER_FAILED', { detail: typeof place === 'string' ? place : '' })
  const { request } = exchange
  const { transformation } = destination.settings
  // The runtime is named by its ARN: what the client asked for is not passed on.
  request.target = place.target
  request.authority = place.host
  if (transformation !== undefined) await transformForBackend(exchange, transformation, plan.maxBufferBytes)
  const body = await readAll(exchange, plan.maxBufferBytes)
  exchange.upstreamStartedAtMs = performance.now()
  const response = await withRetries(exchange, plan.retry, async (number) => {
    const headers = request.headers.clone()
    headers.remove('content-length')
    setRetryHeader(headers, number)
    const call = startCall(
      destination,
      {
        method: request.method,
        target: request.target,
        authority: place.host,
        headers,
        body: body === undefined ? undefined : new BufferBody(body),
        version: request.version,
        cloud: { signing: { region: place.region, service: 'bedrock-agentcore' } },
      },
      { exchange, timeoutMs: plan.backendRequestMs },
    )
    const answer = await call.response
    exchange.endpoint = call.endpoint
    return answer
  }).catch((error: unknown) => {
    throw toProxyFailure(error)
  })
  exchange.responseHeadAtMs = performance.now()
  return response
}

/** What is signed is hashed, so it is in memory. */
async function readAll({ request: { body } }: Exchange, maxBytes = MAX_BUFFER_BYTES): Promise<Buffer | undefined> {
  if (body === undefined) return undefined
  try {
    return (await readBody(body, maxBytes)).bytes
  } catch (cause) {
    throw cause instanceof BodyTooLargeError
      ? new ProxyError('BODY_TOO_LARGE', { cause })
      : new ProxyError('PROCESSING_FAILED', { detail: 'the request body broke off', cause })
  }
}
