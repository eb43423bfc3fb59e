import type { CORS } from '#gen/config/types.ts'
import type { Policy } from '../../request/exchange/context.ts'
import { allowedOrigin } from '../../request/exchange/allowed-origin.ts'
import { addVary, type HeaderList } from '../../http/headers.ts'
import { compileOrigins } from './origins.ts'

/**
 * Cross-origin resource sharing (traffic.md §8.1). Responds to OPTIONS of allowed origins and to preflights of all others, and sets the
 * CORS headers on every other response for an allowed origin, errors included. Methods and headers of a preflight are listed or echoed;
 * enforcing them is up to the browser. `allowOrigins` are `*` or `scheme://host[:port]`, with `*` for any text in the host.
 *
 * @example
 * traffic:
 *   cors:
 *     allowOrigins: ['https://*.example.com']
 *     allowMethods: [GET, POST]
 *     allowHeaders: [content-type, authorization]
 *     allowCredentials: true
 *     maxAge: 600
 */
export function compileCors(config: CORS): Policy {
  const isAllowed = compileOrigins(config.allowOrigins ?? [])
  const credentials = config.allowCredentials === true
  const methods = listHeader(config.allowMethods, credentials)
  const allowHeaders = listHeader(config.allowHeaders, credentials)
  // For requests with credentials, `*` is the name of a header (Fetch, CORS protocol and credentials).
  const exposesAll = credentials && config.exposeHeaders?.includes('*') === true
  const exposed = exposesAll ? undefined : config.exposeHeaders?.join(',')
  const maxAge = String(config.maxAge ?? 5)

  return async (c, next) => {
    const { exchange } = c.var
    const { method, headers } = exchange.request
    const origin = headers.get('origin')
    const isOptions = method === 'OPTIONS'
    const isPermitted = origin ? isAllowed(origin) : false
    if (isOptions && origin) {
      const requestedMethod = headers.get('access-control-request-method')
      if (isPermitted) {
        return c.body(null, 200, {
          'access-control-allow-origin': origin,
          ...optional('access-control-allow-methods', methods(requestedMethod)),
          ...optional('access-control-allow-headers', allowHeaders(normalizeList(headers.get('access-control-request-headers')))),
          'access-control-max-age': maxAge,
          ...optional('access-control-allow-credentials', credentials ? 'true' : undefined),
          ...optional('access-control-expose-headers', exposed),
          vary: PREFLIGHT_VARY.join(', '),
        })
      }
      if (requestedMethod) return c.body(null, 200, { vary: PREFLIGHT_VARY.join(', ') })
    }
    if (isPermitted) allowedOrigin.set(exchange, true)
    await next()
    const response = exchange.response?.headers
    if (response === undefined) return undefined
    // What the gateway itself grants, such as metadata of MCP authorization for all origins, stays.
    if (exchange.error === undefined && !exchange.isLocalAnswer) removeGrants(response, isPermitted, credentials)
    if (origin && isPermitted) {
      response.set('access-control-allow-origin', origin)
      if (credentials) response.set('access-control-allow-credentials', 'true')
      else response.remove('access-control-allow-credentials')
      if (exposesAll) exposeAll(response)
      else if (exposed) response.set(EXPOSE, exposed)
    }
    addVary(response, isOptions ? PREFLIGHT_VARY : VARY)
    return undefined
  }
}

/** The request headers that responses depend on, and those that responses to OPTIONS depend on. */
const VARY = ['Origin'] as const
const PREFLIGHT_VARY = ['Origin', 'Access-Control-Request-Method', 'Access-Control-Request-Headers'] as const

/** Response headers that scripts can always read, or never (Fetch, CORS-safelisted and forbidden response-header names). */
const NOT_LISTED = new Set('cache-control content-language content-length content-type expires last-modified pragma set-cookie set-cookie2'.split(' '))

const EXPOSE = 'access-control-expose-headers'

/**
 * The gateway decides about origins: of what the upstream grants, only the names that it exposes to a permitted origin are left, without `*` for requests with
 * credentials. What policies of the route set or add stays.
 */
function removeGrants(headers: HeaderList, isPermitted: boolean, credentials: boolean): void {
  const { raw } = headers
  const names = new Set<string>()
  for (let i = 0; i < raw.length; i += 2) if (raw[i]?.startsWith('access-control-') === true) names.add(raw[i] ?? '')
  if (names.size === 0) return
  const exposed = isPermitted ? headers.getAll(EXPOSE).flatMap((value) => value.split(',').map((name) => name.trim())) : []
  for (const name of names) {
    const own = headers.ownValues(name)
    headers.remove(name)
    for (const value of own) headers.append(name, value)
  }
  const kept = credentials ? exposed.filter((name) => name !== '*') : exposed
  if (kept.length > 0) headers.set(EXPOSE, kept.join(','))
}

/** Lists the headers of a response, as `*` would expose them. */
function exposeAll(headers: HeaderList): void {
  const names = new Set<string>()
  for (const [name] of headers) if (!NOT_LISTED.has(name) && !name.startsWith('access-control-')) names.add(name)
  if (names.size === 0) headers.remove(EXPOSE)
  else headers.set(EXPOSE, [...names].join(','))
}

/** Value of a list header: the list or, for `*`, the requested value. `*` itself has no effect for requests with credentials. */
function listHeader(list: readonly string[] | undefined, credentials: boolean): (requested: string | undefined) => string | undefined {
  if (!list?.includes('*')) return () => list?.join(',')
  return (requested) => requested || (credentials ? undefined : '*')
}

function normalizeList(value: string | undefined): string | undefined {
  return value
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .join(', ')
}

function optional(name: string, value: string | undefined): Record<string, string> {
  return value ? { [name]: value } : {}
}
