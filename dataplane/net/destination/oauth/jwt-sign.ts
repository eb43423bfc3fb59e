import { CompactSign } from 'jose'
import { CelError, Secret, toJsonText, type Program } from '#api/cel/index.ts'
import type { PrivateSigningKey } from '#api/credentials/signing-key.ts'
import { parseDuration } from '#api/duration.ts'
import type { JWTSign } from '#gen/config/types.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { setBounded } from '../../../runtime/bounded.ts'
import type { TokenSource } from '../../upstream/auth.ts'

const DEFAULT_LIFETIME = '5m'
/** Clocks of backends may be late. */
const BACKDATED_SECONDS = 10
/** Upstreams limit heads of requests; many to 8 KiB. */
const MAX_CLAIMS_CHARACTERS = 6 * 1024
const MAX_CACHED = 1000

interface Signed {
  readonly token: Promise<string>
  readonly untilMs: number
}

/** Compiles `auth.jwtSign` (traffic.md §13.1). Requests with equal claims have the same token until half of its lifetime; the oldest of 1,000 gives way. */
export function createSigner(config: JWTSign, { key, alg, id }: PrivateSigningKey, nowMs: () => number = Date.now): TokenSource {
  const lifetimeMs = parseDuration(config.lifetime ?? DEFAULT_LIFETIME) ?? 0
  const programs = Object.entries(config.claims ?? {}).map(([name, expression]) => [name, compileExpression(expression, 'request')] as const)
  const signed = new Map<string, Signed>()

  /** The claims of the gateway are last: of two with one name, parsers use the last. */
  const sign = (claims: string): Promise<string> => {
    const now = Math.floor(nowMs() / 1000)
    const times = { iat: now, nbf: now - BACKDATED_SECONDS, exp: now + Math.floor(lifetimeMs / 1000) }
    const own = JSON.stringify({ iss: config.issuer, aud: config.audiences, ...times }).slice(1)
    return new CompactSign(Buffer.from(`{${claims}${claims === '' ? '' : ','}${own}`)).setProtectedHeader({ alg, kid: id, typ: 'JWT' }).sign(key)
  }

  return {
    async tokenFor(exchange) {
      const text = claimsOf(programs, exchange)
      if (text.length > MAX_CLAIMS_CHARACTERS)
        throw new ProxyError('BACKEND_AUTH', { detail: `the claims of jwtSign have ${text.length} characters, at most ${MAX_CLAIMS_CHARACTERS} can be sent` })
      const known = signed.get(text)
      if (known !== undefined && known.untilMs > nowMs()) return known.token
      const token = sign(text).catch((error: unknown) => {
        signed.delete(text)
        throw new ProxyError('BACKEND_AUTH', { detail: 'the token cannot be signed', cause: error })
      })
      setBounded(signed, text, { token, untilMs: nowMs() + lifetimeMs / 2 }, MAX_CACHED)
      return token
    },
  }
}

/**
 * Members of the JSON object of claims.
 * @throws ProxyError BACKEND_SUBJECT if a claim has no value, because a token without it could be one of more rights; a secret is no value
 */
function claimsOf(programs: readonly (readonly [string, Program])[], exchange: Exchange | undefined): string {
  if (programs.length === 0) return ''
  const context = exchange && new ExchangeView(exchange)
  const members: string[] = []
  for (const [name, program] of programs) {
    const value = context && program.eval(context)
    const text = value === undefined || value instanceof CelError || value instanceof Secret ? undefined : toJsonText(value)
    if (text === undefined) throw new ProxyError('BACKEND_SUBJECT', { detail: `the claim ${name} has no value`, headers: { 'www-authenticate': 'Bearer' } })
    if (text !== 'null') members.push(`${JSON.stringify(name)}:${text}`)
  }
  return members.join(',')
}
