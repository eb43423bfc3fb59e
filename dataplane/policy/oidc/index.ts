import { createHash, randomBytes } from 'node:crypto'
import { evalBool, Secret } from '#api/cel/index.ts'
import { parseDuration } from '#api/duration.ts'
import type { JWTAuthentication, OIDC } from '#gen/config/types.ts'
import { pathOf } from '../../http/message.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import type { Policy, PolicyContext } from '../../request/exchange/context.ts'
import { clientOrigin } from '../../request/exchange/client-origin.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { variables } from '../../request/exchange/variables.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { setBounded } from '../../runtime/bounded.ts'
import type { PolicyState } from '../state.ts'
import { deleteSession, formatCookie, joinSession, loginName, MAX_SESSION_CHARACTERS, splitSession, takeCookies, type CookieStyle } from './cookies.ts'
import { continuePage, isPage, loginErrors, page, pageHeaders } from './pages.ts'
import { Provider, RejectedGrantError, safeCode, type Tokens } from './provider.ts'
import { policyId, Sealer, type Session } from './session.ts'

const DEFAULT_LIFETIME = '12h'
/** Time for a person to log in. */
const LOGIN_SECONDS = 900
/** Tabs that log in at the same time; the oldest gives way. */
const MAX_LOGINS = 5
/** Tokens are renewed before they expire: the backend may check them later. */
const MARGIN_SECONDS = 30
/** How long requests with the cookies before a renewal get its result: most providers accept a refresh token once. */
const RENEWED_MS = 60_000
const MAX_RENEWALS = 1000
/** Claims that belong to the response that they came with. */
const PROTOCOL_CLAIMS: ReadonlySet<string> = new Set(['nonce', 'at_hash', 'c_hash', 's_hash'])

/** The cookies of one request, and what their policy is called in this browser. */
interface Visit {
  readonly exchange: Exchange
  readonly cookies: ReadonlyMap<string, string>
  readonly style: CookieStyle
  /** Scheme and host that the browser uses. */
  readonly origin: string
}

/**
 * Logs people in with OpenID Connect (traffic.md §8.18). A browser without a session is sent to the provider and returns with a code to `callbackPath`; the
 * session is in its cookies, encrypted with SESSION_KEY, so that every replica can read it. Later policies see the claims as `jwt`. Requests that do not
 * navigate get 401. `logoutPath` ends the session. Without a usable Secret or key, nobody is logged in.
 *
 * @param tokens `jwtAuthentication` of the route: a request with a valid token of one of its issuers needs no session.
 * @throws ProxyError LOGIN (401) without a session, LOGIN_REJECTED (403) for a login that is not valid, LOGIN_UNAVAILABLE (503) if the provider fails.
 * @example
 * traffic:
 *   oidc:
 *     issuer: https://login.example.com/realms/staff
 *     backendRef: { group: proxy.dev, kind: ProxyBackend, name: login }
 *     clientId: gateway
 *     secretRef: { name: login-client }
 */
export function compileOidc(config: OIDC, state: PolicyState, tokens?: JWTAuthentication): Policy {
  const secret = config.secretRef?.secret === undefined ? undefined : state.secrets.get(config.secretRef.secret)
  const policy = state.kept.get(config, [secret], () => new LoginPolicy(config, secret?.data?.['clientSecret'], state))
  // Destinations live as long as the config that asks for them.
  for (const ref of [config.backendRef, config.endpoints?.token?.backendRef, config.endpoints?.keys?.backendRef])
    if (ref !== undefined) state.destinations.forPolicy(ref)
  const issuers = new Set(tokens?.providers.map(({ issuer }) => issuer))
  return async (c, next) => {
    const { exchange } = c.var
    const issuer = tokens === undefined ? undefined : variables.jwt.get(exchange)?.['iss']
    const isAccepted = typeof issuer === 'string' && issuers.has(issuer)
    return policy.handle(c, next, isAccepted)
  }
}

class LoginPolicy {
  readonly #config: OIDC
  readonly #state: PolicyState
  readonly #provider: Provider
  readonly #sealer: Sealer
  readonly #id: string
  /** Why nobody can log in; undefined: all is configured. */
  readonly #fault: string | undefined
  readonly #login: ReturnType<typeof compileExpression> | undefined
  readonly #renewals = new Map<string, { readonly session: Promise<Session>; readonly untilMs: number }>()

  constructor(config: OIDC, secret: string | undefined, state: PolicyState) {
    this.#config = config
    this.#state = state
    this.#id = policyId(config.issuer, config.clientId)
    this.#provider = new Provider(config, secret, state)
    this.#sealer = new Sealer(state.loginKeys, this.#id)
    this.#login = config.login === undefined ? undefined : compileExpression(config.login, 'request')
    this.#fault =
      state.loginKeys.length === 0
        ? 'there is no key for sessions'
        : config.secretRef !== undefined && secret === undefined
          ? 'the Secret of the client is missing'
          : undefined
  }

  async handle(c: PolicyContext, next: () => Promise<void>, isAccepted: boolean): Promise<Response | void> {
    const { exchange } = c.var
    const cookies = takeCookies(exchange.request.headers)
    const origin = this.#config.publicUrl ?? clientOrigin(exchange)
    const style = { isSecure: origin.startsWith('https:'), domain: this.#config.cookieDomain, sameSite: this.#config.sameSite ?? 'Lax' } as const
    const visit: Visit = { exchange, cookies, style, origin }
    try {
      if (this.#fault !== undefined) throw new ProxyError('LOGIN_UNAVAILABLE', { detail: this.#fault })
      const path = pathOf(exchange.request.target)
      if (path === (this.#config.callbackPath ?? '/oauth2/callback')) return await this.#finish(c, visit)
      if (path === (this.#config.logoutPath ?? '/oauth2/logout')) return await this.#logout(c, visit)
      if (isAccepted) return await next()
      const { session, renewed } = await this.#sessionOf(visit)
      if (session === undefined) return await this.#begin(c, visit)
      this.#accept(exchange, session)
      if (renewed === undefined) return await next()
      await next()
      for (const cookie of renewed) exchange.response?.headers.append('set-cookie', cookie)
    } catch (error) {
      if (error instanceof ProxyError && error.code.startsWith('LOGIN')) exchange.errorFormat = loginErrors
      throw error
    }
  }

  /** The session of the request, and cookies for a renewed one. */
  async #sessionOf({ cookies, style }: Visit): Promise<{ readonly session?: Session | undefined; readonly renewed?: readonly string[] }> {
    const text = joinSession(cookies, style, this.#id)
    const session = text === undefined ? undefined : this.#sealer.session(text)
    const now = this.#nowSeconds()
    if (session === undefined || session.endsAt <= now) return {}
    if (session.renewsAt - MARGIN_SECONDS > now) return { session }
    const isLive = session.renewsAt > now
    if (session.refreshToken === undefined) return isLive ? { session } : {}
    try {
      const next = await this.#renew(session, session.refreshToken)
      return { session: next, renewed: this.#cookiesOf(next, style, cookies) }
    } catch (error) {
      if (isLive) return { session }
      if (error instanceof RejectedGrantError || (error instanceof ProxyError && error.code === 'LOGIN_REJECTED')) return {}
      throw error
    }
  }

  /** One renewal for all requests with the same refresh token. */
  #renew(session: Session, refreshToken: string): Promise<Session> {
    const key = createHash('sha256').update(refreshToken).digest('base64')
    const nowMs = this.#state.epochMs()
    const known = this.#renewals.get(key)
    if (known !== undefined && known.untilMs > nowMs) return known.session
    const renewing = this.#provider.redeem({ grant_type: 'refresh_token', refresh_token: refreshToken }, undefined).then((tokens) => {
      if (tokens.idToken !== '' && tokens.claims.sub !== session.claims['sub'])
        throw new ProxyError('LOGIN_REJECTED', { detail: 'the tokens are of another user' })
      return this.#sessionFrom(tokens, session)
    })
    setBounded(this.#renewals, key, { session: renewing, untilMs: nowMs + RENEWED_MS }, MAX_RENEWALS)
    renewing.catch((error: unknown) => {
      // A provider that did not respond may do so next time.
      if (!(error instanceof RejectedGrantError)) this.#renewals.delete(key)
    })
    return renewing
  }

  #sessionFrom({ claims, idToken, accessToken, refreshToken, expiresInSeconds }: Tokens, before?: Session): Session {
    const { claims: chosen, forwardAccessToken, forwardIdToken, lifetime = DEFAULT_LIFETIME } = this.#config
    const now = this.#nowSeconds()
    const all = idToken === '' ? (before?.claims ?? {}) : claims
    const kept = Object.entries(all).filter(
      ([name]) => !PROTOCOL_CLAIMS.has(name) && (chosen === undefined || name === 'iss' || name === 'sub' || chosen.includes(name)),
    )
    const seconds = expiresInSeconds ?? (typeof claims.exp === 'number' ? claims.exp - now : 3600)
    return {
      claims: Object.fromEntries(kept),
      endsAt: before?.endsAt ?? now + Math.floor((parseDuration(lifetime) ?? 0) / 1000),
      renewsAt: now + Math.max(1, seconds),
      refreshToken: refreshToken ?? before?.refreshToken,
      ...(forwardAccessToken === true && { accessToken }),
      // Providers end the session that the hint names (OpenID Connect RP-Initiated Logout 1.0).
      idToken: forwardIdToken !== undefined || idToken.length <= 2048 ? idToken || before?.idToken : undefined,
    }
  }

  /** @throws ProxyError LOGIN_REJECTED if browsers could not return the session */
  #cookiesOf(session: Session, style: CookieStyle, before: ReadonlyMap<string, string>): string[] {
    let sealed = this.#sealer.sealSession(session)
    if (sealed.length > MAX_SESSION_CHARACTERS && this.#config.forwardIdToken === undefined)
      sealed = this.#sealer.sealSession({ ...session, idToken: undefined })
    if (sealed.length > MAX_SESSION_CHARACTERS)
      throw new ProxyError('LOGIN_REJECTED', {
        detail: `the session has ${sealed.length} characters, cookies can hold ${MAX_SESSION_CHARACTERS}; choose claims with oidc.claims`,
      })
    return splitSession(sealed, style, this.#id, session.endsAt - this.#nowSeconds(), before)
  }

  #accept(exchange: Exchange, { claims, accessToken, idToken }: Session): void {
    const { forwardAccessToken, forwardIdToken } = this.#config
    const token = accessToken ?? idToken
    variables.jwt.set(exchange, Object.freeze({ ...claims, ...(token !== undefined && { rawToken: new Secret(token) }) }))
    if (typeof claims['sub'] === 'string') setLogField(exchange, 'jwt.sub', claims['sub'])
    const { headers } = exchange.request
    if (forwardAccessToken === true && accessToken !== undefined) headers.set('authorization', `Bearer ${accessToken}`)
    if (forwardIdToken === undefined) return
    if (idToken === undefined) headers.remove(forwardIdToken.toLowerCase())
    else headers.set(forwardIdToken.toLowerCase(), idToken)
  }

  /** Sends the browser to the provider (OpenID Connect Core 1.0, authentication request). */
  async #begin(c: PolicyContext, { exchange, cookies, style, origin }: Visit): Promise<Response> {
    const { request } = exchange
    const mayStart = this.#login === undefined ? isPage(request) : request.method === 'GET' && evalBool(this.#login, new ExchangeView(exchange))
    if (!mayStart) throw new ProxyError('LOGIN')
    const { authorization } = await this.#provider.metadata()
    const { clientId, scopes = [], parameters = {}, callbackPath = '/oauth2/callback' } = this.#config
    const [login, nonce, verifier] = [random(8), random(32), random(48)]
    const state = `${login}.${random(32)}`
    const redirectUri = origin + callbackPath
    const sealed = this.#sealer.sealLogin({ state, nonce, verifier, redirectUri, target: request.target, endsAt: this.#nowSeconds() + LOGIN_SECONDS })
    const url = new URL(authorization)
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const fixed = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: ['openid', ...scopes.filter((scope) => scope !== 'openid')].join(' '),
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(fixed)) url.searchParams.set(name, value)
    // Browsers send older cookies first (RFC 6265 §5.4).
    const prefix = loginName(style, this.#id, '')
    const pending = [...cookies.keys()].filter((name) => name.startsWith(prefix))
    const given = pending.slice(0, Math.max(0, pending.length - MAX_LOGINS + 1)).map((name) => formatCookie(style, name, '', 0, 'Lax'))
    const own = formatCookie(style, loginName(style, this.#id, login), sealed, LOGIN_SECONDS, 'Lax')
    return c.body(null, 302, { location: url.href, 'cache-control': 'no-store', 'set-cookie': [...given, ...deleteSession(style, this.#id, cookies), own] })
  }

  /** The browser returns from the provider (OpenID Connect Core 1.0, authentication response). */
  async #finish(c: PolicyContext, { exchange, cookies, style }: Visit): Promise<Response> {
    const { request } = exchange
    if (request.method !== 'GET') throw new ProxyError('METHOD_NOT_ALLOWED')
    const query = new URLSearchParams(request.target.slice(pathOf(request.target).length + 1))
    const one = (name: string): string | undefined => (query.getAll(name).length === 1 ? (query.get(name) ?? undefined) : undefined)
    const state = one('state') ?? ''
    const name = loginName(style, this.#id, state.split('.', 1)[0] ?? '')
    const sealed = cookies.get(name)
    const login = sealed === undefined ? undefined : this.#sealer.login(sealed)
    // Another browser's login: nothing is used up.
    if (login === undefined || login.state !== state || login.endsAt <= this.#nowSeconds())
      throw new ProxyError('LOGIN_REJECTED', { detail: 'it was not started in this browser, or too long ago' })
    const used = formatCookie(style, name, '', 0, 'Lax')
    const refuse = (detail: string, cause?: unknown): ProxyError => new ProxyError('LOGIN_REJECTED', { detail, cause, headers: { 'set-cookie': used } })
    const { issuer } = this.#config
    const { sendsIssuer } = await this.#provider.metadata()
    // Before the code leaves: it may be one of another provider (RFC 9207).
    if (query.has('iss') ? one('iss') !== issuer : sendsIssuer) throw refuse('the response is of another provider')
    if (query.has('error')) throw refuse(`the provider responded ${safeCode(one('error')) ?? 'with an error'}`)
    const code = one('code')
    if (code === undefined || code === '') throw refuse('the response has no code')
    const grant = { grant_type: 'authorization_code', code, redirect_uri: login.redirectUri, code_verifier: login.verifier }
    const tokens = await this.#provider.redeem(grant, login.nonce).catch((error: unknown) => {
      if (error instanceof RejectedGrantError) throw refuse('the code is not valid', error)
      throw error instanceof ProxyError && error.code === 'LOGIN_REJECTED' ? refuse(error.detail ?? '', error) : error
    })
    const set = [...this.#cookiesOf(this.#sessionFrom(tokens), style, cookies), used]
    const { origin } = new URL(login.redirectUri)
    // 303: the request that returns is a GET. An absolute URL: a path may begin with two slashes.
    if (style.sameSite !== 'Strict') return c.body(null, 303, { location: origin + login.target, 'cache-control': 'no-store', 'set-cookie': set })
    return c.body(continuePage(origin + login.target), 200, { ...pageHeaders, 'set-cookie': set })
  }

  /** Ends the session here, and then at the provider (OpenID Connect RP-Initiated Logout 1.0). */
  async #logout(c: PolicyContext, { exchange, cookies, style, origin }: Visit): Promise<Response> {
    const { request } = exchange
    if (request.method !== 'GET' && request.method !== 'POST') throw new ProxyError('METHOD_NOT_ALLOWED')
    // Another site must not be able to log people out.
    const site = request.headers.get('sec-fetch-site')
    const from = request.headers.get('origin')
    if (site === undefined ? from !== undefined && from !== origin : site !== 'same-origin' && site !== 'none') throw new ProxyError('CSRF')
    const text = joinSession(cookies, style, this.#id)
    const session = text === undefined ? undefined : this.#sealer.session(text)
    const deleted = deleteSession(style, this.#id, cookies)
    const { endSession } = await this.#provider.metadata().catch(() => ({ endSession: undefined }))
    const headers = { 'cache-control': 'no-store', 'set-cookie': deleted }
    if (endSession === undefined)
      return c.body(page('Logged out', 'You are logged out.', { href: '/', text: 'Start again' }), 200, { ...pageHeaders, ...headers })
    const url = new URL(endSession)
    const { clientId, afterLogoutPath } = this.#config
    url.searchParams.set('client_id', clientId)
    if (session?.idToken !== undefined) url.searchParams.set('id_token_hint', session.idToken)
    if (afterLogoutPath !== undefined) url.searchParams.set('post_logout_redirect_uri', origin + afterLogoutPath)
    return c.body(null, 303, { ...headers, location: url.href })
  }

  #nowSeconds(): number {
    return Math.floor(this.#state.epochMs() / 1000)
  }
}

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')
