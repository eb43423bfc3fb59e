import type { Exchange } from './exchange.ts'

/**
 * Scheme and host of the URL that the client sent its request to, such as `https://shop.example.com`. The scheme may come from X-Forwarded-Proto, which the
 * listener has replaced if no trusted proxy set it; X-Forwarded-Host is not used.
 */
export function clientOrigin({ request, receivedAuthority, connection }: Exchange): string {
  const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
  const scheme = forwarded === 'http' || forwarded === 'https' ? forwarded : connection.tls === undefined ? 'http' : 'https'
  return `${scheme}://${receivedAuthority}`
}
