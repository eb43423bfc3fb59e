import { FrameReader } from '../../../net/callout/frames.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { BodyTooLargeError } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { headersFor } from '../message/headers.ts'
import type { Target } from '../target/target.ts'
import { callTarget, type CallContext, type TargetCall } from '../upstream/call.ts'

/** The server ended a call with a status other than OK, or without a usable response. */
export class GrpcStatusError extends Error {
  override readonly name = 'GrpcStatusError'
  /** As in grpc-status: 1 CANCELLED to 16 UNAUTHENTICATED. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface CallOptions extends Pick<TargetCall, 'message' | 'isRepeatable'> {
  /** Limit of the whole response, bytes. */
  readonly limitBytes: number
}

/** Sends frames to a method (`/package.Service/Method`) and returns the messages of the response. Rejects with a GrpcStatusError, or as `callTarget`. */
export type GrpcCaller = (path: string, frames: Buffer, options: CallOptions) => Promise<Buffer[]>

const INTERNAL = 13
const RESOURCE_EXHAUSTED = 8
const UNKNOWN = 2
const UNAVAILABLE = 14
/** Statuses of responses that are no gRPC (gRPC, HTTP to gRPC Status Code Mapping). */
const STATUS_OF_HTTP: ReadonlyMap<number, number> = new Map([
  [400, INTERNAL],
  [401, 16],
  [403, 7],
  [404, 12],
  ...[429, 502, 503, 504].map((status) => [status, UNAVAILABLE] as const),
])

/** Calls a target on behalf of the request of `context`, whose headers become metadata as they do for MCP servers. */
export const callerOf =
  (context: CallContext, target: Target): GrpcCaller =>
  async (path, frames, { limitBytes, ...call }) => {
    const headers = metadataOf(context)
    const { response } = await callTarget(context, target, { method: 'POST', path, headers, body: frames, ...call })
    const isGrpc = response.headers.get('content-type')?.startsWith('application/grpc') === true
    if (response.status !== 200 || !isGrpc) {
      response.body?.cancel()
      throw response.status === 200
        ? new GrpcStatusError(UNKNOWN, 'the response is not gRPC')
        : new GrpcStatusError(STATUS_OF_HTTP.get(response.status) ?? UNKNOWN, `the response has HTTP status ${response.status}`)
    }
    const { bytes, trailers } = await readHeldBody(context.exchange, response.body, limitBytes).catch((error: unknown) => {
      if (error instanceof BodyTooLargeError) throw new GrpcStatusError(RESOURCE_EXHAUSTED, `the response is larger than ${limitBytes} bytes`)
      throw error
    })
    checkStatus(trailers ?? (bytes.length === 0 ? response.headers : new HeaderList()))
    return readFrames(bytes, limitBytes)
  }

/** Headers of MCP and of the framing of the client's body are not metadata of the call. */
function metadataOf({ exchange }: CallContext): HeaderList {
  const headers = headersFor(exchange.request.headers, { sessionId: undefined, accept: '*/*', hasBody: false })
  const names = Array.from(headers, ([name]) => name)
  for (const name of names) if (name.startsWith('mcp-') || name.startsWith('grpc-') || name === 'accept' || name === 'accept-encoding') headers.remove(name)
  return headers
}

function checkStatus(trailers: HeaderList): void {
  const status = trailers.get('grpc-status')
  if (status === '0') return
  if (status === undefined || !/^\d{1,2}$/.test(status)) throw new GrpcStatusError(INTERNAL, 'the response ended without a grpc-status')
  throw new GrpcStatusError(Number(status), decodeMessage(trailers.get('grpc-message') ?? ''))
}

/** Percent-encoded, as far as the server did so. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function readFrames(bytes: Buffer, limitBytes: number): Buffer[] {
  const reader = new FrameReader(limitBytes)
  reader.push(bytes)
  const messages: Buffer[] = []
  try {
    for (let message = reader.next(); message !== undefined; message = reader.next()) messages.push(message)
  } catch (error) {
    throw new GrpcStatusError(INTERNAL, (error as Error).message)
  }
  if (!reader.isAtBoundary) throw new GrpcStatusError(INTERNAL, 'the last message is cut off')
  return messages
}
