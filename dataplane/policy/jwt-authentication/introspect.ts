import { createHash } from 'node:crypto'
import { Secret } from '#api/cel/index.ts'
import { parseDuration } from '#api/duration.ts'
import type { JWTProvider } from '#gen/config/types.ts'
import { fetchDestination } from '../../net/callout/http.ts'
import { parseObject, tokenRequestHeaders } from '../../net/callout/token-endpoint.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { setBounded } from '../../runtime/bounded.ts'
import type { PolicyState } from '../state.ts'
import { exactClaims, jwtError, LEEWAY_SECONDS, type Claims, type VerifyToken } from './verify.ts'

const TIMEOUT_MS = 5000
const LIMIT_BYTES = 32 * 1024
const DEFAULT_CACHE = '30s'
/** A rejected token may become valid: servers replicate. */
const REJECTED_MS = 5000
const MAX_CACHED = 10_000
const MAX_PENDING = 256
/** One client cannot take all calls. */
const MAX_PENDING_PER_CLIENT = 32
/** Syntax of bearer tokens (RFC 6750 §2.1). Others are rejected without a call. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/
/** What servers call tokens that are active, and no access tokens: refresh tokens and ID tokens of Keycloak and Ory Hydra. */
const isOther = ({ token_use: use, typ }: Readonly<Record<string, unknown>>): boolean =>
  (use !== undefined && use !== 'access_token' && use !== 'access') || (typeof typ === 'string' && /^(?:id|refresh|offline)$/i.test(typ))

interface Known {
  readonly claims: Claims
  readonly untilMs: number
}

type State = Pick<PolicyState, 'destinations' | 'epochMs'>

/**
 * Asks an authorization server about tokens (RFC 7662). Tokens that are active are cached until `exp`, at most for `cacheDuration`, and others for 5 s, apart
 * from each other, so that guesses evict no user. One call for all requests with one token. Failures are not cached: the circuit breaker of the destination
 * limits calls to a server that fails.
 */
export function createIntrospector(provider: JWTProvider, client: Readonly<Record<string, string>> | undefined, { destinations, epochMs }: State): VerifyToken {
  const { introspection } = provider
  const cacheMs = parseDuration(introspection?.cacheDuration ?? DEFAULT_CACHE) ?? 0
  const active = new Map<string, Known>()
  /** By digest: guesses are not kept, and may be long. */
  const rejected = new Map<string, { readonly detail: string | undefined; readonly untilMs: number }>()
  const pending = new Map<string, Promise<Claims>>()
  const clients = new Map<string, number>()

  const ask = async (token: string): Promise<Claims> => {
    const [id, secret] = [client?.['clientId'] ?? client?.['clientID'], client?.['clientSecret']]
    if (introspection === undefined || id === undefined || secret === undefined) throw unavailable('the Secret of the client is missing')
    const inBody = introspection.clientAuthentication === 'Body'
    const body = new URLSearchParams({ token, token_type_hint: 'access_token', ...(inBody && { client_id: id, client_secret: secret }) })
    const callout = { method: 'POST', target: introspection.path, headers: tokenRequestHeaders(inBody ? undefined : { id, secret }), body: body.toString() }
    const options = { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES, isGuarded: true }
    const response = await fetchDestination(destinations.forPolicy(introspection.backendRef), callout, options).catch((error: unknown) => {
      throw unavailable('the introspection endpoint does not respond', error)
    })
    const answer = response.status === 200 ? parseObject(response.body) : undefined
    if (typeof answer?.['active'] !== 'boolean')
      throw unavailable(`the introspection endpoint responded ${response.status}${response.status === 200 ? ' without the member "active"' : ''}`)
    try {
      checkAnswer(answer, provider, epochMs() / 1000)
    } catch (error) {
      if (error instanceof ProxyError) setBounded(rejected, digest(token), { detail: error.detail, untilMs: epochMs() + REJECTED_MS }, MAX_CACHED)
      throw error
    }
    const { active: _, ...members } = exactClaims(response.body.toString(), answer)
    const claims = Object.freeze({ iss: provider.issuer, ...members, rawToken: new Secret(token) })
    const untilMs = Math.min(epochMs() + cacheMs, typeof answer['exp'] === 'number' ? answer['exp'] * 1000 : Infinity)
    if (untilMs > epochMs()) setBounded(active, token, { claims, untilMs }, MAX_CACHED)
    return claims
  }

  const start = (token: string, from: string): Promise<Claims> => {
    const own = clients.get(from) ?? 0
    if (pending.size >= MAX_PENDING || own >= MAX_PENDING_PER_CLIENT)
      throw unavailable(`too many tokens to introspect${own >= MAX_PENDING_PER_CLIENT ? ' from one client' : ''}`)
    clients.set(from, own + 1)
    const asking = ask(token).finally(() => {
      pending.delete(token)
      const left = (clients.get(from) ?? 1) - 1
      if (left > 0) clients.set(from, left)
      else clients.delete(from)
    })
    pending.set(token, asking)
    return asking
  }

  return (slice, from = '') => {
    if (!TOKEN.test(slice)) throw jwtError('malformed token')
    const nowMs = epochMs()
    const known = active.get(slice)
    if (known !== undefined && known.untilMs > nowMs) return known.claims
    const before = rejected.size === 0 ? undefined : rejected.get(digest(slice))
    if (before !== undefined && before.untilMs > nowMs) throw jwtError(before.detail ?? '')
    // A copy, because the text may be a slice that keeps a complete request head in memory.
    return pending.get(slice) ?? start(Buffer.from(slice).toString(), from)
  }
}

const digest = (token: string): string => createHash('sha256').update(token).digest('base64')

const unavailable = (detail: string, cause?: unknown): ProxyError => new ProxyError('JWT_UNAVAILABLE', { detail, cause })

/** @throws ProxyError JWT for a token that is not active, not an access token, or not for this provider's audiences */
function checkAnswer(answer: Readonly<Record<string, unknown>>, { issuer, audiences }: JWTProvider, nowSeconds: number): void {
  if (answer['active'] !== true) throw jwtError('token not active')
  const { iss = issuer, aud, exp, nbf, token_type: type = 'Bearer', cnf } = answer
  if (iss !== issuer) throw jwtError('InvalidIssuer')
  if (audiences !== undefined && aud === undefined) throw jwtError('missing claim aud')
  if (audiences !== undefined && ![aud].flat().some((value) => typeof value === 'string' && audiences.includes(value))) throw jwtError('InvalidAudience')
  if (exp !== undefined && !Number.isFinite(exp)) throw jwtError('invalid claim exp')
  if (nbf !== undefined && !Number.isFinite(nbf)) throw jwtError('invalid claim nbf')
  if (typeof exp === 'number' && exp <= nowSeconds - LEEWAY_SECONDS) throw jwtError('ExpiredSignature')
  if (typeof nbf === 'number' && nbf > nowSeconds + LEEWAY_SECONDS) throw jwtError('ImmatureSignature')
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer' || cnf !== undefined) throw jwtError('token is bound to a key')
  if (isOther(answer)) throw jwtError('not an access token')
}
