import { createLocalJWKSet, errors, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose'
import type { OIDC, OIDCEndpoint } from '#gen/config/types.ts'
import { HeaderList } from '../../http/headers.ts'
import { fetchDestination } from '../../net/callout/http.ts'
import { parseObject, tokenRequestHeaders } from '../../net/callout/token-endpoint.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { PolicyState } from '../state.ts'

const TIMEOUT_MS = 5000
const LIMIT_BYTES = 512 * 1024
const METADATA_MS = 3_600_000
/** Time between attempts after a failure, and between reads of the keys for a token with an unknown one. */
const COOL_DOWN_MS = 10_000
const LEEWAY_SECONDS = 60
/** Signatures only: a shared secret is known to the client, and `none` to everyone. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
const MAX_TOKEN_CHARACTERS = 16 * 1024
/** ID tokens hold groups, are not sent with requests, and are dropped after the login unless they are short. */
const MAX_ID_TOKEN_CHARACTERS = 64 * 1024

/** What the gateway uses of a discovery document (OpenID Connect Discovery 1.0). */
export interface Metadata {
  readonly authorization: string
  readonly endSession: string | undefined
  /** The provider names itself in its responses (RFC 9207). */
  readonly sendsIssuer: boolean
  readonly token: Required<OIDCEndpoint>
  readonly keys: Required<OIDCEndpoint>
}

/** A token response that was checked. */
export interface Tokens {
  readonly claims: JWTPayload
  readonly idToken: string
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly expiresInSeconds: number | undefined
}

/** The provider says that a grant is not valid (RFC 6749 §5.2): no other attempt helps. */
export class RejectedGrantError extends Error {}

const unavailable = (detail: string, cause?: unknown): ProxyError => new ProxyError('LOGIN_UNAVAILABLE', { detail, cause })
const rejected = (detail: string, cause?: unknown): ProxyError => new ProxyError('LOGIN_REJECTED', { detail, cause })

/** Reads documents and tokens of one OpenID provider. */
export class Provider {
  readonly #config: OIDC
  readonly #secret: string | undefined
  readonly #state: Pick<PolicyState, 'destinations' | 'epochMs'>
  #metadata: Promise<Metadata> | undefined
  #metadataUntilMs = 0
  #keys: Promise<ReturnType<typeof createLocalJWKSet>> | undefined
  #keysReadAtMs = 0

  constructor(config: OIDC, secret: string | undefined, state: Pick<PolicyState, 'destinations' | 'epochMs'>) {
    this.#config = config
    this.#secret = secret
    this.#state = state
  }

  /** Rejects with LOGIN_UNAVAILABLE. One reader at a time; a failure is kept for the cool-down. */
  metadata(): Promise<Metadata> {
    const nowMs = this.#state.epochMs()
    if (this.#metadata !== undefined && nowMs < this.#metadataUntilMs) return this.#metadata
    this.#metadataUntilMs = nowMs + METADATA_MS
    const reading = this.#discover()
    reading.catch(() => (this.#metadataUntilMs = this.#state.epochMs() + COOL_DOWN_MS))
    this.#metadata = reading
    return reading
  }

  async #discover(): Promise<Metadata> {
    const { issuer, backendRef, endpoints = {} } = this.#config
    const { authorization, token, keys, endSession } = endpoints
    const own = { authorization, endSession, token: token && { backendRef, ...token }, keys: keys && { backendRef, ...keys } }
    if (own.authorization !== undefined && own.token !== undefined && own.keys !== undefined)
      return { ...own, authorization: own.authorization, token: own.token, keys: own.keys, sendsIssuer: false }
    const url = new URL(issuer)
    const document = await this.#read(backendRef, `${url.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`, 'discovery document')
    // Another issuer's document would send codes to its token endpoint (OpenID Connect Discovery 1.0, validation).
    if (document['issuer'] !== issuer) throw unavailable(`the discovery document is of another issuer than ${issuer}`)
    const endpointOf = (field: string, name: string): Required<OIDCEndpoint> => {
      const found = URL.parse(textOf(document[field]))
      if (found === null) throw unavailable(`the discovery document has no ${field}; set endpoints.${name}`)
      if (found.host !== url.host) throw unavailable(`${field} is on ${found.host}; set endpoints.${name} with its own backendRef`)
      return { backendRef, path: found.pathname + found.search }
    }
    const browserUrl = (field: string): string | undefined => {
      const found = URL.parse(textOf(document[field]))
      return found !== null && (found.protocol === 'https:' || found.protocol === url.protocol) && found.username === '' ? found.href : undefined
    }
    const login = own.authorization ?? browserUrl('authorization_endpoint')
    if (login === undefined) throw unavailable('the discovery document has no authorization_endpoint that browsers can be sent to')
    return {
      authorization: login,
      endSession: endSession ?? browserUrl('end_session_endpoint'),
      sendsIssuer: document['authorization_response_iss_parameter_supported'] === true,
      token: own.token ?? endpointOf('token_endpoint', 'token'),
      keys: own.keys ?? endpointOf('jwks_uri', 'keys'),
    }
  }

  /** Redeems a code or a refresh token. Rejects with a RejectedGrantError, LOGIN_REJECTED or LOGIN_UNAVAILABLE. `nonce`: that of a login. */
  async redeem(grant: Readonly<Record<string, string>>, nonce: string | undefined): Promise<Tokens> {
    const { clientId, clientAuthentication = 'Basic' } = this.#config
    const { token } = await this.metadata()
    const body = new URLSearchParams(grant)
    if (this.#secret === undefined || clientAuthentication === 'Body') body.set('client_id', clientId)
    if (this.#secret !== undefined && clientAuthentication === 'Body') body.set('client_secret', this.#secret)
    const client = this.#secret !== undefined && clientAuthentication === 'Basic' ? { id: clientId, secret: this.#secret } : undefined
    const headers = tokenRequestHeaders(client)
    const answer = await this.#call(token.backendRef, { method: 'POST', target: token.path, headers, body: body.toString() }, 'token endpoint')
    const reply = parseObject(answer.body)
    if (answer.status !== 200) {
      const error = safeCode(reply?.['error'])
      if (answer.status === 400 && error === 'invalid_grant') throw new RejectedGrantError('invalid_grant')
      throw unavailable(`the token endpoint responded ${answer.status}${error === undefined ? '' : ` ${error}`}`)
    }
    const idToken = textOf(reply?.['id_token'])
    const accessToken = textOf(reply?.['access_token'])
    if (!isCredential(accessToken)) throw unavailable('the token endpoint returned no access token')
    // A refresh may return no new ID token (OpenID Connect Core 1.0, refresh response).
    if (idToken === '' && nonce !== undefined) throw unavailable('the token endpoint returned no ID token')
    const refreshToken = textOf(reply?.['refresh_token'])
    const seconds = Number(reply?.['expires_in'])
    return {
      claims: idToken === '' ? {} : await this.#verify(idToken, nonce),
      idToken,
      accessToken,
      refreshToken: isCredential(refreshToken) ? refreshToken : undefined,
      expiresInSeconds: Number.isFinite(seconds) && seconds > 0 ? Math.floor(seconds) : undefined,
    }
  }

  /** Checks an ID token (OpenID Connect Core 1.0, ID token validation). */
  async #verify(idToken: string, nonce: string | undefined): Promise<JWTPayload> {
    if (idToken.length > MAX_ID_TOKEN_CHARACTERS) throw rejected('the ID token is too long')
    const { issuer, clientId } = this.#config
    const check = async (): Promise<JWTPayload> => {
      const options = {
        issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        requiredClaims: ['exp', 'iat', 'sub'],
        clockTolerance: LEEWAY_SECONDS,
        currentDate: new Date(this.#state.epochMs()),
      }
      return (await jwtVerify(idToken, await this.#keySet(), options)).payload
    }
    const claims = await check()
      .catch((error: unknown) => {
        // The provider may have new keys.
        if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#forgetKeys()) throw error
        return check()
      })
      .catch((error: unknown) => {
        throw error instanceof ProxyError ? error : rejected('the ID token is not valid', error)
      })
    const audiences = [claims.aud ?? []].flat()
    const party = claims['azp']
    if ((audiences.length > 1 && party === undefined) || (party !== undefined && party !== clientId)) throw rejected('the ID token is for another client')
    if (nonce !== undefined && claims['nonce'] !== nonce) throw rejected('the ID token is of another login')
    return claims
  }

  #keySet(): Promise<ReturnType<typeof createLocalJWKSet>> {
    const nowMs = this.#state.epochMs()
    if (this.#keys !== undefined && nowMs < this.#keysReadAtMs + METADATA_MS) return this.#keys
    this.#keysReadAtMs = nowMs
    const reading = this.metadata().then(async ({ keys }) => {
      const set = await this.#read(keys.backendRef, keys.path, 'key set')
      try {
        return createLocalJWKSet(set as unknown as JSONWebKeySet)
      } catch (error) {
        throw unavailable('the key set is not valid', error)
      }
    })
    reading.catch(() => (this.#keys = undefined))
    this.#keys = reading
    return reading
  }

  #forgetKeys(): boolean {
    if (this.#state.epochMs() < this.#keysReadAtMs + COOL_DOWN_MS) return false
    this.#keys = undefined
    return true
  }

  async #read(backendRef: OIDC['backendRef'], target: string, what: string): Promise<Readonly<Record<string, unknown>>> {
    const { status, body } = await this.#call(backendRef, { method: 'GET', target, headers: new HeaderList(['accept', 'application/json']) }, what)
    const document = status === 200 ? parseObject(body) : undefined
    if (document === undefined) throw unavailable(`the ${what} of the provider responded ${status}${status === 200 ? ' without a JSON object' : ''}`)
    return document
  }

  async #call(ref: OIDC['backendRef'], callout: Parameters<typeof fetchDestination>[1], what: string): ReturnType<typeof fetchDestination> {
    const destination = this.#state.destinations.forPolicy(ref)
    try {
      return await fetchDestination(destination, callout, { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES, isGuarded: true })
    } catch (error) {
      throw unavailable(`the ${what} of the provider cannot be read`, error)
    }
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const isCredential = (text: string): boolean => text.length > 0 && text.length <= MAX_TOKEN_CHARACTERS && /^[!-~]+$/.test(text)
/** An error code of a provider (RFC 6749 §4.1.2.1) that may stand in logs and pages; undefined if it is none. */
export const safeCode = (value: unknown): string | undefined => (typeof value === 'string' && /^[a-z0-9_.-]{1,64}$/i.test(value) ? value : undefined)
