import { generateKeyPairSync } from 'node:crypto'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { importJWK, SignJWT } from 'jose'

export interface IdentityProviderOptions {
  readonly name: string
  readonly port?: number
  readonly tls?: { readonly certificate: string; readonly privateKey: string }
  /**
   * `standard` (default) uses the requested resource as audience (RFC 8707). `keycloak` has Keycloak's paths in a realm `shop`, no metadata of RFC 8414,
   * and always the audience `mcp`.
   */
  readonly style?: 'standard' | 'keycloak'
}

/** An OpenID-certified identity provider with dynamic registration and a login form that accepts any name and password. */
export interface IdentityProvider {
  readonly name: string
  readonly port: number
  readonly issuer: string
  /** Path of its key set. */
  readonly keysPath: string
  /** Method and path of every request, oldest first. */
  readonly requestLog: string[]
  /** Returns a token signed with the provider's key. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>
  close(): Promise<void>
}

const SCOPE = 'tools'
const KEYCLOAK = {
  authorization: '/protocol/openid-connect/auth',
  jwks: '/protocol/openid-connect/certs',
  token: '/protocol/openid-connect/token',
  registration: '/clients-registrations/openid-connect',
}
/** A client that need not register. Of native ones, the port of a redirect URI may be any (RFC 8252 §7.3). */
const CLIENT = { client_id: 'shop', client_secret: 'shop-secret', application_type: 'native', redirect_uris: ['http://localhost/oauth2/callback'] }
const RFC_8414 = '/.well-known/oauth-authorization-server'

/** Starts an identity provider on loopback. */
export async function startIdentityProvider({ name, port = 0, tls, style = 'standard' }: IdentityProviderOptions): Promise<IdentityProvider> {
  const requestLog: string[] = []
  const prefix = style === 'keycloak' ? '/realms/shop' : ''
  let handle: ((request: IncomingMessage, response: ServerResponse) => unknown) | undefined
  const listener = (request: IncomingMessage & { originalUrl?: string }, response: ServerResponse): void => {
    const url = request.url ?? '/'
    requestLog.push(`${request.method} ${url.split('?')[0]}`)
    if (!url.startsWith(prefix) || (style === 'keycloak' && url.includes(RFC_8414))) return void response.writeHead(404).end()
    // oidc-provider derives the mount prefix from originalUrl.
    request.originalUrl = url
    request.url = url.slice(prefix.length)
    handle?.(request, response)
  }
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer({ cert: tls.certificate, key: tls.privateKey }, listener)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const { port: bound } = server.address() as AddressInfo
  const issuer = `${tls === undefined ? 'http' : 'https'}://localhost:${bound}${prefix}`
  const key = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256', use: 'sig' }
  handle = await createProvider(issuer, key, style)
  return {
    name,
    port: bound,
    issuer,
    keysPath: style === 'keycloak' ? `${prefix}${KEYCLOAK.jwks}` : '/jwks',
    requestLog,
    sign: async (claims) => new SignJWT({ iss: issuer, ...claims }).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(await importJWK(key, 'ES256')),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function createProvider(issuer: string, key: object, style: 'standard' | 'keycloak') {
  silence()
  const { Provider } = await import('oidc-provider')
  return new Provider(issuer, {
    jwks: { keys: [key] },
    scopes: ['openid', 'offline_access', SCOPE],
    ...(style === 'keycloak' && { clients: [CLIENT] }),
    features: {
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:mcp',
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: SCOPE,
          audience: style === 'keycloak' ? 'mcp' : resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['of a server for tests'] },
    clientBasedCORS: () => true,
    ...(style === 'keycloak' && { routes: KEYCLOAK }),
  }).callback()
}

let isSilent = false
/** Suppresses the provider's repeated warnings about a development setup. */
function silence(): void {
  if (isSilent) return
  isSilent = true
  for (const level of ['info', 'warn'] as const) {
    const say = console[level].bind(console)
    console[level] = (...parts: unknown[]) => {
      if (!String(parts[0]).includes('oidc-provider')) say(...parts)
    }
  }
}
