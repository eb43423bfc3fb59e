import { BodyTooLargeError } from '../../http/body.ts'
import { encodeFrame, FrameReader } from '../callout/frames.ts'
import { fetchDestination, type Callout } from '../callout/http.ts'
import type { EndpointState } from '../upstream/balancer/balancer.ts'
import type { HealthCheck, Probe } from '../upstream/balancer/check.ts'
import type { Destination } from '../upstream/destination.ts'
import { connectTcp } from '../upstream/tcp.ts'
import { UpstreamError } from '../upstream/types.ts'

const LIMIT_BYTES = 64 * 1024
const SERVING = 1

/** Checks an endpoint once. Resolves with the problem, for logs, or with undefined if it is healthy. Rejects if that could not be found out. */
export async function probeEndpoint(destination: Destination, endpoint: EndpointState, { probe, timeoutMs }: HealthCheck): Promise<string | undefined> {
  try {
    if (probe.type !== 'tcp') return await probeByRequest(destination, endpoint, probe, timeoutMs)
    const socket = await connectTcp(destination.transportTo(endpoint), timeoutMs).socket
    socket.destroy()
    return undefined
  } catch (error) {
    // A limit of this process says nothing about the endpoint.
    if (error instanceof UpstreamError ? error.failure === 'limit' : !(error instanceof BodyTooLargeError)) throw error
    return (error as Error).message
  }
}

async function probeByRequest(
  destination: Destination,
  endpoint: EndpointState,
  probe: Exclude<Probe, { readonly type: 'tcp' }>,
  timeoutMs: number,
): Promise<string | undefined> {
  const callout = probe.type === 'http' ? { method: 'GET', target: probe.path, authority: probe.hostname } : grpcCheck(probe.service)
  const { status, headers, body } = await fetchDestination(destination, callout, { timeoutMs, pinned: endpoint, isCheck: true, limitBytes: LIMIT_BYTES })
  if (probe.type === 'http') {
    if (!probe.statuses.has(status)) return `status ${status}`
    return probe.text === undefined || body.includes(probe.text) ? undefined : 'the body lacks the expected text'
  }
  const grpcStatus = headers.get('grpc-status') ?? '0'
  if (status !== 200 || grpcStatus !== '0') return status === 200 ? `grpc-status ${grpcStatus}` : `status ${status}`
  return isServing(body) ? undefined : 'not serving'
}

/** HealthCheckRequest of grpc.health.v1: field 1 is the service. */
function grpcCheck(service: string): Callout {
  const name = Buffer.from(service)
  // The length is a varint of at most two bytes.
  const length = name.length < 128 ? [name.length] : [(name.length & 127) | 128, name.length >> 7]
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, ...length]), name])
  return { method: 'POST', target: '/grpc.health.v1.Health/Check', isGrpc: true, body: encodeFrame(message) }
}

/** HealthCheckResponse: field 1 is the status. */
function isServing(body: Buffer): boolean {
  const reader = new FrameReader(LIMIT_BYTES)
  reader.push(body)
  const message = body.length === 0 || body[0] !== 0 ? undefined : reader.next()
  return message?.[0] === 0x08 && message[1] === SERVING
}
