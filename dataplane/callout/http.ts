import type { Exchange } from '../exchange.ts'
import { BufferBody, readBody, type Body } from '../http/body.ts'
import { HeaderList } from '../http/headers.ts'
import type { HttpVersion, RequestHead, ResponseHead } from '../http/message.ts'
import { ObservedBody } from '../http/observe.ts'
import { authenticate } from '../upstream/auth.ts'
import type { Destination } from '../upstream/destination.ts'
import { UpstreamError } from '../upstream/types.ts'

/** A request of the gateway's own: to an authorization server, a guard, an LLM provider, an MCP server. */
export interface Callout {
  readonly method: string
  /** Path and query, starting with `/`. */
  readonly target: string
  /** Default: the destination's own name and port. */
  readonly authority?: string | undefined
  /** Without host, content-length and hop-by-hop headers. Default: none. */
  readonly headers?: HeaderList
  readonly body?: Body | Buffer | string | undefined
  /** What is preferred where neither a policy, nor appProtocol, nor TLS decides. Default HTTP/1.1. */
  readonly version?: HttpVersion
}

export interface CalloutOptions {
  /** Until the response head; with `covers: 'body'` until the end of the body. Undefined: the destination's own limit, if any. */
  readonly timeoutMs?: number | undefined
  readonly covers?: 'head' | 'body'
  /** The exchange that it is made for: when its client goes, so does the call; passthrough credentials come from it. */
  readonly exchange?: Exchange | undefined
}

/** The whole answer to a call. */
export interface CalloutAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Buffer
}

/**
 * Calls a destination through our own upstream side: its TLS, credentials, pools, balancing and health apply. Resolves with the
 * response head, its body not started. Rejects with an UpstreamError: also when the destination is not to be had (`connect`) or the
 * time is up (`connect-timeout`). Texts name addresses, never headers.
 */
export async function callDestination(
  destination: Destination,
  callout: Callout,
  { timeoutMs, covers = 'head', exchange }: CalloutOptions = {},
): Promise<ResponseHead> {
  const { settings, error } = destination
  if (error !== undefined) throw new UpstreamError('connect', `${destination.name} does not resolve: ${error}`)
  if (settings.broken !== undefined) throw new UpstreamError('connect', `${destination.name} cannot be called: ${settings.broken}`)
  if (settings.auth?.kind === 'broken') throw new UpstreamError('connect', `${destination.name} cannot be called: ${settings.auth.reason}`)
  const request = requestOf(callout, destination)
  const caller = { request, connection: { tls: undefined } }
  const endpoint = destination.pick(caller)
  if (endpoint === undefined) throw new UpstreamError('connect', `${destination.name} has no endpoints`)
  if (request.authority === '') request.authority = endpoint.label
  if (settings.auth !== undefined) authenticate(request.headers, settings.auth, exchange)
  const startedAtMs = performance.now()
  endpoint.pending++
  const call = destination.poolFor(endpoint, caller).call(request, settings)
  exchange?.onAbort((reason) => call.cancel(reason))
  let isLate = false
  const limitMs = Math.min(timeoutMs ?? Infinity, settings.requestMs ?? Infinity)
  const late = (): UpstreamError => new UpstreamError('connect-timeout', `${destination.name} took longer than ${limitMs} ms`)
  let observed: ObservedBody | undefined
  const timer =
    limitMs === Infinity
      ? undefined
      : setTimeout(() => {
          isLate = true
          call.cancel(late())
          observed?.fail(late())
        }, limitMs)
  const finish = (): void => {
    clearTimeout(timer)
    endpoint.pending--
  }
  try {
    const response = await call.response
    destination.record(endpoint, response.status < 500, (performance.now() - startedAtMs) / 1000)
    if (covers === 'head') clearTimeout(timer)
    if (response.body === undefined) finish()
    else response.body = observed = new ObservedBody(response.body, { onClose: finish })
    return response
  } catch (failure) {
    finish()
    if (isLate || !(failure instanceof UpstreamError && failure.failure === 'cancelled')) destination.record(endpoint, false, 0)
    throw isLate ? late() : failure
  }
}

/** The same with the whole body, of at most `limitBytes`; the time covers the body. Rejects with BodyTooLargeError too. */
export async function fetchDestination(
  destination: Destination,
  callout: Callout,
  { limitBytes, ...options }: Omit<CalloutOptions, 'covers'> & { readonly limitBytes: number },
): Promise<CalloutAnswer> {
  const { status, headers, body } = await callDestination(destination, callout, { ...options, covers: 'body' })
  const { bytes } = await readBody(body, limitBytes)
  return { status, headers, body: bytes }
}

function requestOf({ method, target, authority, headers = new HeaderList(), body, version = 'HTTP/1.1' }: Callout, destination: Destination): RequestHead {
  return {
    method,
    target,
    scheme: destination.settings.tls === undefined ? 'http' : 'https',
    authority: authority ?? destination.authorityFor(true) ?? '',
    version,
    headers,
    body: typeof body === 'string' || Buffer.isBuffer(body) ? new BufferBody(body) : body,
    upgrade: undefined,
    acceptsTrailers: false,
  }
}
