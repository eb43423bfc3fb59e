import { decodeProtectedHeader, errors, jwtVerify } from 'jose'
import { parseStored, Secret } from '#api/cel/index.ts'
import { isBase64Url } from '#api/credentials/key-set.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import { setBounded } from '../../runtime/bounded.ts'
import { bearerChallenge } from '../credentials.ts'
import { readKeys, type TokenProvider } from './keys.ts'

/** The variable `jwt` of expressions: the claims, and the token as a secret. */
export type Claims = Readonly<Record<string, unknown>> & { readonly rawToken: Secret }

interface CachedToken {
  readonly claims: Claims
  readonly expiresAtSeconds: number
}

/** Returns the claims of a valid token. Throws ProxyError JWT otherwise. `client`: its address, for limits. */
export type VerifyToken = (token: string, client?: string) => Claims | Promise<Claims>

/** Tolerated difference between the clocks of issuer and gateway (traffic.md §8.3). */
export const LEEWAY_SECONDS = 60
/** Longer tokens are rejected unparsed: no issuer creates such tokens. */
const MAX_TOKEN_LENGTH = 16 * 1024
const MAX_CACHED = 10_000

/**
 * Creates the verifier of one policy. Each signature is verified once. The cache is keyed by the complete token, holds verified tokens only,
 * and drops them when they expire. It ends with the keys, because a verifier is created for one set of keys. Map keys are strings and not
 * digests: the hash of a Map is seeded and costs a tenth of a digest.
 *
 * @param introspect checks tokens of no key set; undefined: they are rejected
 */
export function createVerifier({ providers }: { readonly providers: readonly TokenProvider[] }, epochMs: () => number, introspect?: VerifyToken): VerifyToken {
  const keys = readKeys(providers)
  const verified = new Map<string, CachedToken>()

  const verify = async (slice: string, nowMs: number): Promise<Claims> => {
    // A copy, because the text may be a slice that keeps a complete request head in memory.
    const token = Buffer.from(slice).toString()
    if (!isCompact(token)) throw jwtError('malformed token')
    const kid = readKid(token)
    const key = keys.get(kid)
    if (key === undefined) throw jwtError('unknown key')
    const { payload } = await jwtVerify(token, key.key, {
      algorithms: [...key.algorithms],
      ...(key.issuer === undefined ? {} : { issuer: key.issuer }),
      ...(key.audiences === undefined ? {} : { audience: [...key.audiences] }),
      requiredClaims: ['exp'],
      clockTolerance: LEEWAY_SECONDS,
      currentDate: new Date(nowMs),
    }).catch((error: unknown) => {
      throw jwtError(describe(error), error)
    })
    const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
    const claims = Object.freeze({ ...exactClaims(text, payload), rawToken: new Secret(token) })
    setBounded(verified, token, { claims, expiresAtSeconds: payload.exp ?? 0 }, MAX_CACHED)
    return claims
  }

  return (token, client) => {
    if (token.length > MAX_TOKEN_LENGTH) throw jwtError('token too long')
    const nowMs = epochMs()
    const known = verified.get(token)
    if (known === undefined) return introspect !== undefined && !isOfKey(token, keys) ? introspect(token, client) : verify(token, nowMs)
    if (known.expiresAtSeconds > Math.floor(nowMs / 1000) - LEEWAY_SECONDS) return known.claims
    verified.delete(token)
    throw jwtError('ExpiredSignature')
  }
}

/** The claims of a JSON text with integers of 64 bits; `payload` has doubles. */
export function exactClaims(text: string, payload: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return /\d{16}/.test(text) ? ((parseStored(text) as Readonly<Record<string, unknown>> | undefined) ?? payload) : payload
}

/**
 * Whether a token has three parts of base64url (RFC 7515 §7.1): a decoder that skips padding and white space would accept many texts of one token, so that
 * lists of revoked tokens would not hold. The signature is empty for the algorithm `none`.
 */
function isCompact(token: string): boolean {
  const parts = token.split('.')
  return parts.length === 3 && parts.every((part, index) => isBase64Url(part) || (part === '' && index === 2))
}

/** Whether a key is to verify the token: then its signature decides, and nobody is asked about it. */
function isOfKey(token: string, keys: ReadonlyMap<string, unknown>): boolean {
  if (keys.size === 0 || !isCompact(token)) return false
  try {
    return keys.has(readKid(token))
  } catch {
    return false
  }
}

/** The 401 of an invalid token. `detail` is the reason in one word or sentence. */
export function jwtError(detail: string, cause?: unknown): ProxyError {
  return new ProxyError('JWT', { detail, cause, headers: bearerChallenge('invalid_token') })
}

/** The 401 of a request without a token. */
export function noToken(): ProxyError {
  return new ProxyError('JWT', { detail: 'no bearer token found', headers: bearerChallenge() })
}

function readKid(token: string): string {
  let kid: unknown
  try {
    kid = decodeProtectedHeader(token).kid
  } catch (error) {
    throw jwtError('malformed token', error)
  }
  if (typeof kid !== 'string' || kid === '') throw jwtError('token has no kid')
  return kid
}

const claimErrors: Readonly<Record<string, string>> = { iss: 'InvalidIssuer', aud: 'InvalidAudience', nbf: 'ImmatureSignature' }

/** The reason in one word, without any part of the token. */
function describe(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'ExpiredSignature'
  if (error instanceof errors.JWTClaimValidationFailed)
    return error.reason === 'missing' ? `missing claim ${error.claim}` : (claimErrors[error.claim] ?? `invalid claim ${error.claim}`)
  if (error instanceof errors.JOSEAlgNotAllowed) return 'InvalidAlgorithm'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'InvalidSignature'
  return 'InvalidToken'
}
