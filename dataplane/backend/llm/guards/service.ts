import type { BackendFull, BackendSimple } from '#gen/config/types.ts'
import { fetchDestination, type Callout, type CalloutResponse } from '../../../net/callout/http.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { ServiceConfig } from '../../forward/service.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { beginCall } from '../../../observe/telemetry/metrics/call.ts'
import type { Destination } from '../../../net/upstream/destination.ts'

const TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024
/** Items of a list to print before other events may be processed. */
const ITEMS_PER_SLICE = 256

/** The config and the destinations that guards call. */
export type GuardConfig = Pick<ServiceConfig, 'destinations' | 'state'>

/** A vendor's service, at its public host or at the URL in an environment variable of its SDK. */
interface VendorHost {
  readonly host: string
  /** Environment variable with a URL to use instead of `host`: for tests and private endpoints. */
  readonly variable: string
  readonly policies: BackendSimple | undefined
  /** Credentials if `policies` has none. */
  readonly auth?: BackendFull['auth']
}

/** The destination of a vendor's service. */
export function vendorDestination({ destinations }: GuardConfig, { host, variable, policies, auth }: VendorHost): Destination {
  const configured = URL.parse(process.env[variable] ?? '')
  const url = configured ?? new URL(`https://${host}`)
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  return destinations.forHost(url.hostname, port, isTls, { ...(auth && { auth }), ...policies }, configured !== null)
}

/** Posts JSON to a guard service and returns the JSON of a 2xx response. Otherwise rejects with a ProxyError. */
export async function postJson(
  { state }: GuardConfig,
  exchange: Exchange,
  destination: Destination,
  call: Pick<Callout, 'target' | 'cloud'> & { readonly body: unknown; readonly headers?: HeaderList },
): Promise<unknown> {
  const { target, cloud, body, headers = new HeaderList() } = call
  const printed = await runWhileConnected(printInSlices(body), exchange)
  headers.set('content-type', 'application/json')
  headers.set('accept', 'application/json')
  const span = beginCall(state.registry, exchange, 'Policy', 'Guardrail', { method: 'POST', host: destination.name, path: target })
  if (span.traceparent !== undefined) headers.set('traceparent', span.traceparent)
  let response: CalloutResponse
  try {
    response = await fetchDestination(
      destination,
      { method: 'POST', target, headers, body: printed, ...(cloud && { cloud }) },
      { timeoutMs: TIMEOUT_MS, limitBytes: MAX_RESPONSE_BYTES, exchange, isGuarded: true },
    )
  } catch (cause) {
    span.end({ error: cause as Error })
    if (cause instanceof ProxyError) throw cause
    throw new ProxyError('GUARD_FAILED', { cause })
  }
  span.end({ status: response.status })
  if (response.status < 200 || response.status > 299)
    throw new ProxyError('GUARD_FAILED', { cause: new Error(`${destination.name} returned status ${response.status}`) })
  try {
    return JSON.parse(response.body.toString())
  } catch (cause) {
    throw new ProxyError('GUARD_FAILED', { cause })
  }
}

/** Prints JSON; long lists, such as those of messages, in slices. */
export function* printInSlices(value: unknown): Cooperative<string> {
  if (Array.isArray(value)) {
    const pieces: string[] = []
    for (let at = 0; at < value.length; at += ITEMS_PER_SLICE) {
      if (at > 0) yield
      pieces.push(JSON.stringify(value.slice(at, at + ITEMS_PER_SLICE)).slice(1, -1))
    }
    return `[${pieces.join(',')}]`
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members: string[] = []
  for (const [key, inner] of Object.entries(value)) if (inner !== undefined) members.push(`${JSON.stringify(key)}:${yield* printInSlices(inner)}`)
  return `{${members.join(',')}}`
}

/** A member of a value; undefined if the value is not an object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}

/** The items of a value; empty if the value is not a list. */
export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])
