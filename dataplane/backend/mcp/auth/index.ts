import type { MCPAuthentication } from '#gen/config/types.ts'
import { LocalResponse, toResponseHead } from '../../../request/exchange/answer.ts'
import type { Destinations } from '../../../net/destination/destinations.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { BodyTooLargeError } from '../../../http/body.ts'
import { queryOf, type ResponseHead } from '../../../http/message.ts'
import { findCredentials, removeCredentials } from '../../../policy/credentials.ts'
import { createVerifier, jwtError, noToken, type Claims, type VerifyToken } from '../../../policy/jwt-authentication/verify.ts'
import type { PolicyState } from '../../../policy/state.ts'
import { setLogField } from '../../../observe/telemetry/access-log/access-log.ts'
import { adaptServerMetadata, addsAudience, describeResource, loginUrl } from './metadata.ts'
import { IdentityProvider } from './provider.ts'
import { clientUrlOf, isAuthorization, isRegistration, parseWellKnown, resourceMetadataUrl, type ClientUrl, type WellKnown } from './urls.ts'
import { variables } from '../../../request/exchange/variables.ts'

/** Authentication in front of an MCP backend: `mcp.authentication` (mcp.md §8). */
export interface McpAuthentication {
  /**
   * The response to a metadata, registration or unauthenticated request; undefined if the request is admitted, with its claims in `jwt`.
   * Never rejects.
   */
  admit(exchange: Exchange): Promise<ResponseHead | undefined>
  /** Whether a path is that of a document, of registration or of the login. */
  isPublic(path: string): boolean
}

/** A client registration holds only a few names and URLs. */
const REGISTRATION_LIMIT_BYTES = 64 * 1024

/** Compiles the section. Verified tokens and fetched documents are kept over config versions while the section is unchanged. */
export function compileMcpAuthentication(
  config: MCPAuthentication,
  destinations: Pick<Destinations, 'forPolicy' | 'forHost' | 'forOtherPort'>,
  { kept, epochMs, monotonicMs }: Pick<PolicyState, 'kept' | 'epochMs' | 'monotonicMs'>,
): McpAuthentication {
  const { verify, provider } = kept.get(config, [], () => ({
    verify: createVerifier({ providers: [{ ...config, jwks: { remote: config.jwks } }] }, epochMs),
    provider: new IdentityProvider(config, destinations, monotonicMs),
  }))
  return {
    isPublic: (path) => isRegistration(path) || parseWellKnown(path) !== undefined || (addsAudience(config) && isAuthorization(path)),
    async admit(exchange) {
      const url = clientUrlOf(exchange)
      const { method } = exchange.request
      // Without an adapted provider, clients register at the provider itself.
      if (config.provider !== undefined && isRegistration(url.path)) return answerPublic(exchange, 'POST', method, () => register(provider, exchange))
      if (addsAudience(config) && isAuthorization(url.path)) return answerPublic(exchange, 'GET', method, () => redirectToLogin(config, provider, exchange))
      const wellKnown = parseWellKnown(url.path)
      if (wellKnown !== undefined) return answerPublic(exchange, 'GET', method, () => describe(config, provider, url, wellKnown))
      return checkToken(config, verify, exchange, url)
    },
  }
}

/** CORS headers: pages of any origin may read these documents. */
function publicHeaders(method: 'GET' | 'POST'): Record<string, string> {
  return { 'access-control-allow-origin': '*', 'access-control-allow-methods': `${method}, OPTIONS`, 'access-control-allow-headers': 'content-type' }
}

/** A response to a request that needs no token. */
interface PublicAnswer {
  readonly status: number
  readonly body: string | Buffer | null
  readonly headers: Record<string, string>
}

async function answerPublic(exchange: Exchange, allowed: 'GET' | 'POST', method: string, answer: () => Promise<PublicAnswer>): Promise<ResponseHead> {
  exchange.isLocalAnswer = true
  const headers = publicHeaders(allowed)
  if (method === 'OPTIONS') return respond(204, null, headers)
  if (method !== allowed) return respond(405, null, { ...headers, allow: `${allowed}, OPTIONS` })
  try {
    const { status, body, headers: own } = await answer()
    return respond(status, body, { ...headers, ...own })
  } catch (cause) {
    if (cause instanceof BodyTooLargeError) return respond(413, null, headers)
    // For the log: the provider and the cause.
    exchange.error = new ProxyError('MCP_IDENTITY_PROVIDER', { detail: cause instanceof Error ? cause.message : String(cause), cause })
    return respond(500, null, headers)
  }
}

async function describe(config: MCPAuthentication, provider: IdentityProvider, url: ClientUrl, { document, resourcePath }: WellKnown): Promise<PublicAnswer> {
  const content =
    document === 'protected-resource' ? describeResource(config, url, resourcePath) : adaptServerMetadata(config, await provider.metadata(), url, resourcePath)
  return { status: 200, body: JSON.stringify(content), headers: { 'content-type': 'application/json' } }
}

/** Sends the user's browser to the provider's login, with the audience that makes tokens verifiable (mcp.md §8.3). */
async function redirectToLogin(config: MCPAuthentication, provider: IdentityProvider, { receivedTarget }: Exchange): Promise<PublicAnswer> {
  const endpoint = provider.endpoint(await provider.metadata(), 'authorization_endpoint')
  const location = loginUrl(config, endpoint, queryOf(receivedTarget))
  return { status: 302, body: null, headers: { location, 'cache-control': 'no-store' } }
}

async function register(provider: IdentityProvider, exchange: Exchange): Promise<PublicAnswer> {
  if (!provider.admitRegistration()) return { status: 429, body: null, headers: { 'retry-after': '60' } }
  const { bytes } = await readHeldBody(exchange, exchange.request.body, REGISTRATION_LIMIT_BYTES)
  const { status, headers, body } = await provider.register(bytes, exchange)
  return { status, body, headers: { 'content-type': headers.get('content-type') ?? 'application/json' } }
}

/** The bearer token of a request to the server itself (mcp.md §8.2). */
async function checkToken(config: MCPAuthentication, verify: VerifyToken, exchange: Exchange, url: ClientUrl): Promise<ResponseHead | undefined> {
  const { mode = 'Strict', resourceMetadata } = config
  const { headers } = exchange.request
  // A policy of the route verified and removed the token, so it cannot be verified again, whatever the mode.
  if (variables.jwt.get(exchange) !== undefined)
    return challenge(exchange, url, resourceMetadata, jwtError('a JWT policy before mcp.authentication removed the token'))
  try {
    const token = findCredentials(headers, 'bearer')
    if (token === undefined) {
      if (mode === 'Strict') throw noToken()
      return undefined
    }
    if (token === null || token === '') throw jwtError('malformed authorization header')
    const claims: Claims = await verify(token)
    removeCredentials(headers, 'bearer')
    variables.jwt.set(exchange, claims)
    if (typeof claims['sub'] === 'string') setLogField(exchange, 'jwt.sub', claims['sub'])
    return undefined
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error
    return mode === 'Permissive' ? undefined : challenge(exchange, url, resourceMetadata, error)
  }
}

/** The 401 with the URL of the resource metadata (RFC 9728 §5.1) and, if configured, the scopes to request (RFC 6750 §3). */
function challenge(exchange: Exchange, url: ClientUrl, metadata: MCPAuthentication['resourceMetadata'], error: ProxyError): ResponseHead {
  exchange.error = error
  const scope = scopeOf(metadata?.['scopesSupported'] ?? metadata?.['scopes_supported'])
  return respond(401, JSON.stringify({ error: 'unauthorized', error_description: 'JWT token required' }), {
    'content-type': 'application/json',
    'www-authenticate': `Bearer resource_metadata="${resourceMetadataUrl(url, metadata?.['resource']).replaceAll(/["\\]/g, '')}"${scope === '' ? '' : `, scope="${scope}"`}`,
  })
}

/** Scopes as one parameter. Values that are not scopes (RFC 6749 §3.3) are left out. */
function scopeOf(scopes: unknown): string {
  return Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)).join(' ') : ''
}

function respond(status: number, body: string | Buffer | null, headers: Record<string, string>): ResponseHead {
  return toResponseHead(new LocalResponse(typeof body === 'string' || body === null ? body : new Uint8Array(body), status, headers))
}
