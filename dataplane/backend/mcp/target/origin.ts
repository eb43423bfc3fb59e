import { allowedOrigin } from '../../../request/exchange/allowed-origin.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { compileOrigins } from '../../../policy/cors/origins.ts'

/** Whether a request comes from a page of another site (mcp.md §3.1). */
export type IsForeignOrigin = (exchange: Exchange) => boolean

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Requests without Origin come from no page. Otherwise the origin is foreign, except that of the Host, those of this machine if the Host is this machine, and
 * those that `allowed` or a CORS policy of the route allows. On a loopback connection, other names than those of loopback may be rebound (DNS rebinding), so
 * that they make no origin the gateway's own.
 */
export function compileForeignOrigin(allowed: readonly string[] = []): IsForeignOrigin {
  const isAllowed = compileOrigins(allowed)
  return (exchange) => {
    const [origin, ...others] = exchange.request.headers.getAll('origin')
    if (origin === undefined) return false
    if (others.length > 0) return true
    return allowedOrigin.get(exchange) === undefined && !isAllowed(origin) && !isOwn(exchange, origin)
  }
}

function isOwn({ receivedAuthority, connection: { localAddress } }: Exchange, text: string): boolean {
  const origin = /^https?:\/\/[^/?#@\\]+$/i.test(text) ? URL.parse(text) : null
  // The port that an authority omits depends on the scheme, which a proxy in front may have changed.
  const own = origin === null ? null : URL.parse(`${origin.protocol}//${receivedAuthority}`)
  if (origin === null || own === null) return false
  const isLocalName = LOOPBACK.test(own.hostname)
  if (isLocalName && LOOPBACK.test(origin.hostname)) return true
  return origin.host === own.host && (isLocalName || !isLoopbackAddress(localAddress))
}

const isLoopbackAddress = (address: string): boolean => address === '::1' || /^(::ffff:)?127\./.test(address)
