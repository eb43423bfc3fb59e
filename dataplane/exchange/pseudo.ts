import type { RequestHead } from '../http/message.ts'
import { isAuthority, isOriginForm, isToken } from '../http/syntax.ts'

/** False when the value is not one: the request stays as it was. */
export function setPseudoHeader(request: RequestHead, name: string, value: string): boolean {
  switch (name) {
    case ':method':
      // CONNECT would make a tunnel of it.
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
