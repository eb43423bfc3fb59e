import type { HeaderList } from '../../http/headers.ts'

/** Names of the cookies of all policies; the rest is the id of the policy, and of the login or the part. */
const FAMILY = /^(?:__Host-|__Secure-)?proxy-(?:session|login)-/
/** Browsers drop a cookie of more than 4,096 bytes with its attributes. */
const PART_CHARACTERS = 3600
/** A request head has at most 16 KiB (traffic.md §10); other headers have a quarter of it. */
export const MAX_SESSION_CHARACTERS = 12 * 1024
const MAX_PARTS = Math.ceil(MAX_SESSION_CHARACTERS / PART_CHARACTERS)

/** Attributes of the cookies of one policy. */
export interface CookieStyle {
  readonly isSecure: boolean
  readonly domain: string | undefined
  readonly sameSite: 'Lax' | 'Strict' | 'None'
}

/** Takes the cookies of the gateway out of the request: upstreams have no use for them. Of two with one name, the first counts. */
export function takeCookies(headers: HeaderList): ReadonlyMap<string, string> {
  const taken = new Map<string, string>()
  const lines = headers.getAll('cookie')
  if (!lines.some((line) => line.includes('proxy-'))) return taken
  const kept = lines
    .flatMap((line) => line.split(';'))
    .filter((pair) => {
      const text = pair.trim()
      if (!FAMILY.test(text)) return text !== ''
      const equals = text.indexOf('=')
      const name = text.slice(0, equals)
      if (equals !== -1 && !taken.has(name)) taken.set(name, text.slice(equals + 1))
      return false
    })
  if (taken.size === 0) return taken
  if (kept.length === 0) headers.remove('cookie')
  else headers.set('cookie', kept.map((pair) => pair.trim()).join('; '))
  return taken
}

/**
 * Prefix that browsers enforce (draft of RFC 6265bis): neither a subdomain nor a page without TLS can set such a cookie. Only cookies with a domain of their
 * own cannot have `__Host-`.
 */
const guardOf = ({ isSecure, domain }: CookieStyle): string => (!isSecure ? '' : domain === undefined ? '__Host-' : '__Secure-')

const sessionName = (style: CookieStyle, id: string, part: number): string => `${guardOf(style)}proxy-session-${id}${part === 0 ? '' : `.${part}`}`
export const loginName = (style: CookieStyle, id: string, login: string): string => `${guardOf(style)}proxy-login-${id}-${login}`

/** A `set-cookie` value. `maxAgeSeconds` 0 deletes the cookie, with the attributes that it was set with. */
export function formatCookie(style: CookieStyle, name: string, value: string, maxAgeSeconds: number, sameSite = style.sameSite): string {
  const domain = style.domain === undefined ? '' : `; Domain=${style.domain}`
  return `${name}=${value}; Path=/${domain}; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${style.isSecure ? '; Secure' : ''}`
}

/** Sealed text from its parts; undefined if there is none or one is missing. The first part begins with their number. */
export function joinSession(cookies: ReadonlyMap<string, string>, style: CookieStyle, id: string): string | undefined {
  const first = cookies.get(sessionName(style, id, 0))
  const count = first === undefined ? 0 : Number(first[0])
  if (first === undefined || first[1] !== '.' || !(count >= 1 && count <= MAX_PARTS)) return undefined
  let text = first.slice(2)
  for (let part = 1; part < count; part++) {
    const more = cookies.get(sessionName(style, id, part))
    if (more === undefined) return undefined
    text += more
  }
  return text.length <= MAX_SESSION_CHARACTERS ? text : undefined
}

/** `set-cookie` values that store a sealed session, and delete the parts of a longer one before it. */
export function splitSession(sealed: string, style: CookieStyle, id: string, maxAgeSeconds: number, before: ReadonlyMap<string, string>): string[] {
  const count = Math.ceil(sealed.length / PART_CHARACTERS)
  const parts = Array.from({ length: count }, (_, part) => {
    const text = sealed.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS)
    return formatCookie(style, sessionName(style, id, part), part === 0 ? `${count}.${text}` : text, maxAgeSeconds)
  })
  return [...parts, ...deleteSession(style, id, before, count)]
}

/** `set-cookie` values that delete the parts of a session, from part `from` on. */
export function deleteSession(style: CookieStyle, id: string, before: ReadonlyMap<string, string>, from = 0): string[] {
  return Array.from({ length: MAX_PARTS }, (_, part) => part)
    .filter((part) => part >= from && before.has(sessionName(style, id, part)))
    .map((part) => formatCookie(style, sessionName(style, id, part), '', 0))
}
