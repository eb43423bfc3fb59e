import type { CSRF } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'

/** Safe methods (RFC 9110 §9.2.1): forged requests with them change nothing. */
const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Rejects requests that a browser sends on behalf of another site (traffic.md §8.2). Modern browsers report the site in Sec-Fetch-Site,
 * which scripts cannot set; for older ones, Origin is checked. A request with neither header is not from a browser and is admitted.
 * `additionalOrigins` are admitted besides the site itself.
 *
 * @throws ProxyError CSRF (403), for each rejected request.
 * @example
 * traffic:
 *   csrf:
 *     additionalOrigins: ['https://forms.example.com']
 */
export function compileCsrf({ additionalOrigins = [] }: CSRF): Policy {
  const allowed = new Set(additionalOrigins)
  return withSides({
    request(exchange) {
      if (!safeMethods.has(exchange.request.method) && !isAllowed(exchange, allowed)) throw new ProxyError('CSRF')
    },
  })
}

function isAllowed(exchange: Exchange, allowed: ReadonlySet<string>): boolean {
  const { headers } = exchange.request
  const sites = headers.getAll('sec-fetch-site')
  const origins = headers.getAll('origin')
  // Browsers send each header once. It is unknown which of two the upstream would use.
  if (sites.length > 1 || origins.length > 1) return false
  const [site] = sites
  const [origin] = origins
  if (site === 'same-origin' || site === 'none') return true
  if (origin !== undefined && allowed.has(origin)) return true
  if (site !== undefined) return false
  return origin === undefined || origin === originOf(exchange)
}

/** The origin of the request's URL as browsers write it: lower case, without a default port. */
function originOf({ connection, receivedAuthority }: Exchange): string {
  const [scheme, defaultPort] = connection.tls === undefined ? ['http', ':80'] : ['https', ':443']
  const authority = receivedAuthority.toLowerCase()
  return `${scheme}://${authority.endsWith(defaultPort) ? authority.slice(0, -defaultPort.length) : authority}`
}
