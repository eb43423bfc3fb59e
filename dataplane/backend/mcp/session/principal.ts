import { createHash } from 'node:crypto'
import { clientNetwork } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import type { SlotHolder } from '../../../request/exchange/slot.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { isSensitiveHeader } from '../../../observe/telemetry/redact.ts'

/**
 * Identifies the user of a request, to bind sessions to it (mcp.md §5.1): a digest of issuer and subject of the token, else of the name of
 * basic authentication, else of the API key. Undefined if no policy authenticated the request by one of them.
 */
export function principalOf(exchange: SlotHolder): string | undefined {
  const claims = variables.jwt.get(exchange)
  if (claims !== undefined) return digest('jwt', textOf(claims['iss']), textOf(claims['sub']))
  const basic = variables.basicAuth.get(exchange)
  if (basic !== undefined) return digest('basic', basic.username)
  const key = variables.apiKey.get(exchange)?.key
  return key && digest('key', key.reveal())
}

/**
 * What a retry of an anonymous client must have in common with the call that waits: a digest of the headers with credentials, which targets check. Users that
 * the gateway authenticated may renew their tokens.
 */
export function credentialsOf(exchange: Exchange): string {
  if (principalOf(exchange) !== undefined) return ''
  const { raw } = exchange.request.headers
  const lines: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? ''
    if (isSensitiveHeader(name)) lines.push(`${name}:${raw[i + 1] ?? ''}`)
  }
  return digest('credentials', ...lines.toSorted())
}

/** Whom limits of one client are counted for: the user, else the address. */
export const clientOf = (exchange: Exchange): string => principalOf(exchange) ?? clientNetwork(exchange.connection.remoteAddress)

/** Issuer and subject are strings (RFC 7519 §4.1); some issuers send numbers. */
const textOf = (claim: unknown): string => (typeof claim === 'string' ? claim : typeof claim === 'number' || typeof claim === 'bigint' ? String(claim) : '')

/** 132 bits of a digest: unambiguous, and short in session ids. */
const digest = (...parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22)
