import type { BackendFull, BackendSimple } from '#gen/config/types.ts'
import { fetchDestination, type Callout, type CalloutAnswer } from '../../callout/http.ts'
import { ProxyError } from '../../exchange/error.ts'
import { HeaderList } from '../../http/headers.ts'
import type { Exchange } from '../../exchange/exchange.ts'
import type { ServiceConfig } from '../../forward/service.ts'
import { beginCall } from '../../telemetry/metrics/call.ts'
import type { Destination } from '../../upstream/destination.ts'

const TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024

/** Makes what guards call: config on one side, the way out on the other. */
export type GuardConfig = Pick<ServiceConfig, 'destinations' | 'state'>

/** A service of a vendor: at its own host, or where a variable of its SDKs says. */
interface VendorHost {
  readonly host: string
  /** URL in the environment that takes its place: tests, private endpoints. */
  readonly variable: string
  readonly policies: BackendSimple | undefined
  /** Credentials where `policies` has none. */
  readonly auth?: BackendFull['auth']
}

export function vendorDestination({ destinations }: GuardConfig, { host, variable, policies, auth }: VendorHost): Destination {
  const url = URL.parse(process.env[variable] ?? '') ?? new URL(`https://${host}`)
  const isTls = url.protocol === 'https:'
  return destinations.forHost(url.hostname, url.port === '' ? (isTls ? 443 : 80) : Number(url.port), isTls, { ...(auth && { auth }), ...policies })
}

/** Asks a service with JSON; gives what a 2xx answer says. Everything else is the ProxyError of a guard that cannot be asked. */
export async function postJson(
  { state }: GuardConfig,
  exchange: Exchange,
  destination: Destination,
  call: Pick<Callout, 'target' | 'cloud'> & { readonly body: unknown; readonly headers?: HeaderList },
): Promise<unknown> {
  const { target, cloud, body, headers = new HeaderList() } = call
  headers.set('content-type', 'application/json')
  headers.set('accept', 'application/json')
  const span = beginCall(state.registry, exchange, 'Policy', 'Guardrail', { method: 'POST', host: destination.name, path: target })
  if (span.traceparent !== undefined) headers.set('traceparent', span.traceparent)
  let answer: CalloutAnswer
  try {
    answer = await fetchDestination(
      destination,
      { method: 'POST', target, headers, body: JSON.stringify(body), ...(cloud && { cloud }) },
      { timeoutMs: TIMEOUT_MS, limitBytes: MAX_RESPONSE_BYTES, exchange, isGuarded: true },
    )
  } catch (cause) {
    span.end({ error: cause as Error })
    if (cause instanceof ProxyError) throw cause
    throw new ProxyError('GUARD_FAILED', { cause })
  }
  span.end({ status: answer.status })
  if (answer.status < 200 || answer.status > 299) throw new ProxyError('GUARD_FAILED', { cause: new Error(`${destination.name} answered ${answer.status}`) })
  try {
    return JSON.parse(answer.body.toString())
  } catch (cause) {
    throw new ProxyError('GUARD_FAILED', { cause })
  }
}

/** A member of what may be an object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
}

/** Items of what may be a list. */
export const itemsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [])
