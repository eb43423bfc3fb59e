import type { RequestHead } from '../../http/message.ts'
import { isAuthority, isOriginForm, isToken } from '../../http/syntax.ts'

/** Sets a pseudo-header (RFC 9113 §8.3.1). Returns false, and changes nothing, if the value is invalid. */
export function setPseudoHeader(request: RequestHead, name: string, value: string): boolean {
  switch (name) {
    case ':method':
      // CONNECT would turn the request into a tunnel.
      if (!isToken(value) || value === 'CONNECT') return false
      request.method = value
      return true
    case ':scheme':
      if (value !== 'http' && value !== 'https') return false
      request.scheme = value
      return true
    case ':authority':
      if (!isAuthority(value)) return false
      request.authority = value
      return true
    case ':path':
      if (!isOriginForm(value)) return false
      request.target = value
      return true
    default:
      return false
  }
}
