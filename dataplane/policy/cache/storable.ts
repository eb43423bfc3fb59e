import type { HeaderList } from '../../http/headers.ts'
import type { ResponseHead } from '../../http/message.ts'
import { directivesOf, parseHttpDate, secondsOf, type Directives } from './directives.ts'

/** Final status codes whose responses are stored, if the upstream says for how long. */
const statuses: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 410])
const MAX_VARY_NAMES = 16

/** How long a stored response may be used. */
export interface Freshness {
  /** Milliseconds; 0: it is used after revalidation only. */
  readonly lifetimeMs: number
  /** Age at receipt, in milliseconds. */
  readonly initialAgeMs: number
}

/** How to store a response. */
export interface Storable {
  readonly freshness: Freshness
  /** Names of the request headers that select the response, in lower case and sorted. */
  readonly vary: readonly string[]
}

/** When a response was requested and received, in milliseconds since 1970. */
export interface Times {
  readonly requestedAtMs: number
  readonly receivedAtMs: number
}

/**
 * How to store a response in a shared cache (RFC 9111 §3); undefined: not at all. Without explicit freshness nothing is stored.
 * @param isPersonal the request carries or had credentials: the response must be declared as shared
 */
export function storableOf(
  { status, headers, upgraded }: Pick<ResponseHead, 'status' | 'headers' | 'upgraded'>,
  isPersonal: boolean,
  times: Times,
): Storable | undefined {
  const directives = directivesOf(headers)
  if (upgraded !== undefined || !statuses.has(status) || directives === undefined) return undefined
  if (directives.has('no-store') || directives.has('private')) return undefined
  if (headers.has('set-cookie') || headers.has('set-cookie2') || headers.has('content-range') || headers.has('trailer')) return undefined
  if (isPersonal && !directives.has('public') && !directives.has('s-maxage') && !directives.has('must-revalidate')) return undefined
  const vary = varyOf(headers)
  const freshness = freshnessOf(headers, directives, times)
  if (vary === undefined || freshness === undefined) return undefined
  return freshness.lifetimeMs > freshness.initialAgeMs || hasValidator(headers) ? { freshness, vary } : undefined
}

/** Whether an upstream can be asked if a response is still current. */
export function hasValidator(headers: HeaderList): boolean {
  return headers.has('etag') || parseHttpDate(headers.get('last-modified')) !== undefined
}

function varyOf(headers: HeaderList): readonly string[] | undefined {
  const names = headers
    .getAll('vary')
    .join(',')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '')
  // Upstreams forget it, and a client must not get a coding that it does not accept.
  if (headers.has('content-encoding')) names.push('accept-encoding')
  const unique = [...new Set(names)].toSorted()
  return unique.includes('*') || unique.length > MAX_VARY_NAMES ? undefined : unique
}

function freshnessOf(headers: HeaderList, directives: Directives, { requestedAtMs, receivedAtMs }: Times): Freshness | undefined {
  const dateMs = parseHttpDate(headers.get('date')) ?? receivedAtMs
  const lifetimeMs = lifetimeOf(headers, directives, dateMs)
  if (lifetimeMs === undefined) return undefined
  const age = headers.get('age') ?? '0'
  // An age that cannot be read may be any.
  const ageMs = /^\d{1,10}$/.test(age) && headers.getAll('age').length <= 1 ? Number(age) * 1000 : Infinity
  const initialAgeMs = Math.max(0, receivedAtMs - dateMs, ageMs + Math.max(0, receivedAtMs - requestedAtMs))
  return { lifetimeMs, initialAgeMs }
}

function lifetimeOf(headers: HeaderList, directives: Directives, dateMs: number): number | undefined {
  if (directives.has('no-cache')) return 0
  const seconds = secondsOf(directives, 's-maxage') ?? secondsOf(directives, 'max-age')
  if (seconds !== undefined) return seconds * 1000
  const expires = headers.getAll('expires')
  if (expires.length === 0) return undefined
  // An invalid date, such as 0, is in the past.
  const expiresMs = expires.length === 1 ? parseHttpDate(expires[0]) : undefined
  return Math.max(0, (expiresMs ?? dateMs) - dateMs)
}
