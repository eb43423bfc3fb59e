import { createHash } from 'node:crypto'
import { HostText, Secret, type Program } from '#api/cel/index.ts'
import type { BackendRef, OAuthCredentials } from '#gen/config/types.ts'
import { fetchDestination } from '../../callout/http.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { variables } from '../../../request/exchange/variables.ts'
import { withinDeadline } from '../../../request/expression/buffer.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import type { TokenSource } from '../../upstream/auth.ts'
import type { Destination } from '../../upstream/destination.ts'
import { RejectedError, TokenCache, type AccessToken } from './token-cache.ts'
import { parseObject, tokenRequestHeaders, type OAuthClient } from '../../callout/token-endpoint.ts'

/** What a token source depends on besides its config. */
export interface OAuthContext {
  readonly client: OAuthClient | undefined
  /** Resolves the token endpoint in the current config. */
  readonly find: (ref: BackendRef) => Destination
  readonly cache?: TokenCache
  readonly nowMs?: () => number
}

/** Timeout of a request to the token endpoint, as of requests for cloud credentials (llm.md §16). */
const TIMEOUT_MS = 5000
const RESPONSE_LIMIT_BYTES = 256 * 1024
/** Limit of tokens, of users and for backends. */
const MAX_TOKEN_CHARS = 16 * 1024
/** Lifetime of a token whose response has no `expires_in`. */
const DEFAULT_LIFETIME_MS = 60_000

const grants = {
  TokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  JWTBearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
  ClientCredentials: 'client_credentials',
} as const
const tokenTypes = {
  AccessToken: 'urn:ietf:params:oauth:token-type:access_token',
  IDToken: 'urn:ietf:params:oauth:token-type:id_token',
  JWT: 'urn:ietf:params:oauth:token-type:jwt',
} as const

/** Codes of errors (RFC 6749 §5.2, RFC 8693 §2.2.2, RFC 6750 §3.1) that reject the token of the user. */
const REJECTIONS: ReadonlySet<unknown> = new Set(['invalid_grant', 'invalid_request', 'invalid_token'])

/** Tokens of all sources of this thread. They are kept over config versions. */
const sharedCache = new TokenCache()

/** Compiles `auth.oauth` (traffic.md §13.1). */
export function createTokenSource(config: OAuthCredentials, { client, find, cache = sharedCache, nowMs = Date.now }: OAuthContext): TokenSource {
  const { grantType, subjectToken, tokenEndpoint } = config
  // The destination is kept as long as the config: it must be requested whenever the config is compiled.
  find(tokenEndpoint.backendRef)
  const expression = subjectToken === undefined ? undefined : compileExpression(subjectToken, 'request')
  const identity = digest(JSON.stringify([config, client?.id, client?.secret]))
  const fetchToken = async (subject: string | undefined): Promise<AccessToken> => {
    const destination = find(tokenEndpoint.backendRef)
    if (destination.settings.auth?.kind === 'oauth') throw new Error('the token endpoint needs a token of an authorization server itself')
    const startedAtMs = nowMs()
    const { status, body } = await fetchDestination(
      destination,
      {
        method: 'POST',
        target: tokenEndpoint.path,
        headers: tokenRequestHeaders(config.clientAuthentication === 'Body' ? undefined : client),
        body: bodyOf(config, client, subject),
      },
      { timeoutMs: TIMEOUT_MS, limitBytes: RESPONSE_LIMIT_BYTES, isGuarded: true },
    )
    return readToken(status, body, subject, startedAtMs)
  }
  return {
    async tokenFor(exchange) {
      const subject = grantType === 'ClientCredentials' ? undefined : findSubject(exchange, expression)
      const token = cache
        .get(subject === undefined ? identity : digest(`${identity} ${subject}`), () => fetchToken(subject), subject === undefined ? 'process' : 'users')
        .catch((error: unknown) => {
          throw error instanceof RejectedError
            ? new ProxyError('BACKEND_SUBJECT', { detail: 'the token was not accepted', cause: error, headers: challenge('invalid_token') })
            : new ProxyError('BACKEND_TOKEN', { detail: 'no token could be obtained', cause: error })
        })
      return exchange?.deadlineAtMs === undefined ? token : withinDeadline(token, exchange.deadlineAtMs)
    },
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64')

/** RFC 6750 §3: without an error if the request has no token. */
const challenge = (error?: string): Record<string, string> => ({ 'www-authenticate': error === undefined ? 'Bearer' : `Bearer error="${error}"` })

/** The token of the request. Throws a ProxyError if there is none. */
function findSubject(exchange: Exchange | undefined, expression: Program | undefined): string {
  const subject = exchange === undefined ? undefined : expression === undefined ? tokenOf(exchange) : evalSubject(expression, exchange)
  if (subject === undefined || subject === '') throw new ProxyError('BACKEND_SUBJECT', { detail: 'the request has no token', headers: challenge() })
  if (subject.length > MAX_TOKEN_CHARS || !/^[!-~]+$/.test(subject))
    throw new ProxyError('BACKEND_SUBJECT', { detail: 'the token was not accepted', headers: challenge('invalid_token') })
  return subject
}

function evalSubject(expression: Program, exchange: Exchange): string | undefined {
  const value = expression.eval(new ExchangeView(exchange))
  if (value instanceof Secret) return value.reveal()
  return typeof value === 'string' ? value : value instanceof HostText ? value.text : undefined
}

/** The token that a policy verified and removed, else the bearer token of the request. */
function tokenOf(exchange: Exchange): string | undefined {
  const verified = variables.jwt.get(exchange)?.rawToken
  if (verified !== undefined) return verified.reveal()
  const [value, ...others] = exchange.request.headers.getAll('authorization')
  return others.length === 0 ? /^bearer +(\S+) *$/i.exec(value ?? '')?.[1] : undefined
}

function bodyOf(config: OAuthCredentials, client: OAuthClient | undefined, subject: string | undefined): string {
  const { grantType, clientAuthentication, subjectTokenType = 'AccessToken', scopes = [], audiences = [], resources = [], parameters = {} } = config
  const body = new URLSearchParams(parameters)
  body.set('grant_type', grants[grantType])
  if (grantType === 'TokenExchange') {
    body.set('subject_token', subject ?? '')
    body.set('subject_token_type', tokenTypes[subjectTokenType])
  } else if (grantType === 'JWTBearer') body.set('assertion', subject ?? '')
  if (scopes.length > 0) body.set('scope', scopes.join(' '))
  for (const audience of audiences) body.append('audience', audience)
  for (const resource of resources) body.append('resource', resource)
  if (client !== undefined && clientAuthentication === 'Body') {
    body.set('client_id', client.id)
    body.set('client_secret', client.secret)
  }
  return body.toString()
}

/** Error messages are for logs. They contain nothing that was sent or received but the status and a known error code. */
function readToken(status: number, body: Buffer, subject: string | undefined, startedAtMs: number): AccessToken {
  const response = parseObject(body)
  if (status !== 200) {
    const code = response?.['error']
    if (subject !== undefined && (status === 400 || status === 401) && REJECTIONS.has(code))
      throw new RejectedError(`the token endpoint rejected the token of the user: ${String(code)}`)
    throw new Error(`the token endpoint responded with status ${status}${typeof code === 'string' && /^[a-z_]{1,40}$/.test(code) ? ` and ${code}` : ''}`)
  }
  const { access_token: token, token_type: type, expires_in: seconds } = response ?? {}
  if (typeof token !== 'string' || token === '') throw new Error('the response of the token endpoint has no access_token')
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer') throw new Error('the response of the token endpoint has no bearer token')
  if (token.length > MAX_TOKEN_CHARS || !/^[!-~]+$/.test(token)) throw new Error('the token of the token endpoint cannot be sent in a header')
  const lifetimeMs = seconds === undefined || !Number.isFinite(Number(seconds)) ? DEFAULT_LIFETIME_MS : Number(seconds) * 1000
  // A token of a user is not used longer than the token that it was obtained with.
  return { token, expiresAtMs: Math.min(startedAtMs + lifetimeMs, expiryOf(subject)) }
}

/** `exp` of a JWT in epoch milliseconds; Infinity for other tokens. */
function expiryOf(token = ''): number {
  const payload = token.split('.')[1]
  const expiry = payload === undefined ? undefined : parseObject(Buffer.from(payload, 'base64url'))?.['exp']
  return typeof expiry === 'number' ? expiry * 1000 : Infinity
}
