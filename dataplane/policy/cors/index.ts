import type { CORS } from '#gen/config/types.ts'
import type { Policy } from '../../exchange/context.ts'
import { allowedOrigin } from '../../exchange/allowed-origin.ts'
import type { HeaderList } from '../../http/headers.ts'
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
  const exposed = config.exposeHeaders?.join(',')
  const maxAge = String(config.maxAge ?? 5)

  return async (c, next) => {
    const { exchange } = c.var
    const { method, headers } = exchange.request
    const origin = headers.get('origin')
    if (!origin) return next()
    const requestedMethod = headers.get('access-control-request-method')
    if (!isAllowed(origin)) {
      if (method === 'OPTIONS' && requestedMethod) return c.body(null, 200)
      return next()
    }
    if (method === 'OPTIONS') {
      return c.body(null, 200, {
        'access-control-allow-origin': origin,
        ...optional('access-control-allow-methods', methods(requestedMethod)),
        ...optional('access-control-allow-headers', allowHeaders(normalizeList(headers.get('access-control-request-headers')))),
        'access-control-max-age': maxAge,
        ...optional('access-control-allow-credentials', credentials ? 'true' : undefined),
        ...optional('access-control-expose-headers', exposed),
        vary: 'Origin',
      })
    }
    allowedOrigin.set(exchange, true)
    await next()
    const response = exchange.response?.headers
    if (response === undefined) return
    response.set('access-control-allow-origin', origin)
    // The gateway decides about the origin, so the upstream's permission to send credentials is dropped.
    if (credentials) response.set('access-control-allow-credentials', 'true')
    else response.remove('access-control-allow-credentials')
    if (exposed) response.set('access-control-expose-headers', exposed)
    addVary(response)
  }
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

/** Allow-Origin depends on the request, so caches must store responses per origin. */
function addVary(headers: HeaderList): void {
  const names = headers.getAll('vary').flatMap((value) => value.split(','))
  if (!names.some((name) => name.trim() === '*' || name.trim().toLowerCase() === 'origin')) headers.append('vary', 'Origin')
}
