import type { MiddlewareHandler } from 'hono'
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { HostPort } from './listen.ts'

/**
 * Rejects requests of web pages. With DNS rebinding the browser still sends the attacker's name as Host, and cross-site forms carry
 * Origin or Sec-Fetch-Site. Command-line clients send neither.
 */
export function guardBrowsers(listening: () => HostPort): MiddlewareHandler {
  return async (c, next) => {
    const host = hostOfAuthority(c.req.header('host') ?? '')
    if (!isOwnHost(host, listening().host)) return c.text(`host ${JSON.stringify(host)} is not served here: use a loopback address\n`, 403)
    const origin = c.req.header('origin')
    if (origin !== undefined && origin !== `http://${c.req.header('host')}`) return c.text('cross-origin request refused\n', 403)
    const site = c.req.header('sec-fetch-site')
    const isOwn = site === undefined || site === 'same-origin' || site === 'none'
    // Links on other sites may lead here, except into a frame.
    const isLink = c.req.method === 'GET' && c.req.header('sec-fetch-mode') === 'navigate' && c.req.header('sec-fetch-dest') === 'document'
    if (!isOwn && !isLink) return c.text('cross-site request refused\n', 403)
    return next()
  }
}

function isOwnHost(host: string, listening: string): boolean {
  if (host === 'localhost' || host === '::1' || host === listening) return true
  if (isIP(host) === 4 && host.startsWith('127.')) return true
  // An endpoint on all addresses may be called by any of them; a rebound name is never an IP literal.
  return (listening === '0.0.0.0' || listening === '::') && isIP(host) !== 0
}

function hostOfAuthority(authority: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(authority)
  return (match?.[1] ?? match?.[2] ?? '').toLowerCase()
}

/** What a request to the admin endpoint must carry. */
export interface AdminToken {
  readonly value: string
  /** How to read it, for clients without it. */
  readonly hint: string
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Rejects requests without the token, whatever their path. */
export function requireToken({ value, hint }: AdminToken): MiddlewareHandler {
  const expected = sha256(value)
  const text = `the admin endpoint needs a token: send authorization: Bearer TOKEN; ${hint}\n`
  return async (c, next) => {
    const [, given] = /^bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
    // Hashes have one length, and their comparison reveals nothing of the token.
    if (given === undefined || !timingSafeEqual(sha256(given), expected)) return c.text(text, 401, { 'www-authenticate': 'Bearer' })
    return next()
  }
}
