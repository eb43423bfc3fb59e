import { errorTable } from '#api/errors.ts'
import type { BackendRef } from '#gen/config/types.ts'
import type { RequestHead } from '../../http/message.ts'
import { HeaderList } from '../../http/headers.ts'
import type { Destination } from '../upstream/destination.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import { returnsOnce } from '../upstream/loop.ts'
import { UpstreamError, type Tunnel, type UpstreamCall } from '../upstream/types.ts'

/** Resolves a tunnel's reference in the current config. */
export type FindDestination = (ref: BackendRef) => Destination

/**
 * Compiles the `tunnel` section of a backend policy. The proxy is resolved for each connection, so that it may change. Backend
 * policies on the proxy set its TLS, timeouts, and credential, which is sent in Proxy-Authorization.
 */
export function compileTunnel(ref: BackendRef, find: FindDestination): Tunnel {
  return { key: JSON.stringify(ref), connect: (authority) => connectThrough(find(ref), authority) }
}

function connectThrough(proxy: Destination, authority: string): UpstreamCall {
  const { error, settings } = proxy
  const problem = error === undefined ? (settings.broken ?? brokenAuth(proxy) ?? nested(proxy)) : errorTable[error].text
  if (problem !== undefined) throw failure(proxy, problem)
  const request = connectRequest(authority, settings.auth?.kind === 'bearer' ? settings.auth.token : undefined)
  const caller = { request, connection: { tls: undefined } }
  const endpoint = proxy.pick(caller)
  if (endpoint === undefined) throw failure(proxy, errorTable.NO_HEALTHY_BACKENDS.text, new Error(proxy.explainNoEndpoint(authority)))
  const startedAtMs = performance.now()
  endpoint.pending++
  const call = proxy.poolFor(endpoint, caller).call(request, settings)
  void recordCall(call, proxy, endpoint, startedAtMs)
  return call
}

const failure = (proxy: Destination, why: string, cause?: Error): UpstreamError =>
  new UpstreamError('connect', `no tunnel through ${proxy.name}: ${why}`, cause)

function brokenAuth({ settings: { auth } }: Destination): string | undefined {
  if (auth?.kind === 'oauth') return 'OAuth and signed tokens are not supported for the proxy of a tunnel'
  return auth?.kind === 'broken' ? (auth.cause ?? auth.reason) : undefined
}

/** Rejects chains of proxies, which could form a cycle. */
function nested({ settings }: Destination): string | undefined {
  return settings.tunnel === undefined ? undefined : 'it is behind a tunnel itself, which is not supported'
}

function connectRequest(authority: string, token: string | undefined): RequestHead {
  const headers = new HeaderList(token === undefined ? [] : ['proxy-authorization', `Bearer ${token}`])
  const head = { method: 'CONNECT', target: '', scheme: 'http', authority, version: 'HTTP/1.1', upgrade: undefined, acceptsTrailers: false } as const
  // A connection serves the requests of many clients.
  return { ...head, headers, body: undefined, loop: returnsOnce() }
}

/** Records the health of the proxy itself: 502 and 504 are about the target. */
async function recordCall(call: UpstreamCall, proxy: Destination, endpoint: EndpointState, startedAtMs: number): Promise<void> {
  try {
    const { status } = await call.response
    proxy.record(endpoint, status < 500 || status === 502 || status === 504, (performance.now() - startedAtMs) / 1000)
  } catch (error) {
    if (!(error instanceof UpstreamError && error.failure === 'cancelled')) proxy.record(endpoint, false, 0)
  } finally {
    endpoint.pending--
  }
}
