import type { MCPAuthentication } from '#gen/config/types.ts'
import type { ServerMetadata } from './provider.ts'
import { AUTHORIZATION_SERVER, type ClientUrl } from './urls.ts'

/** The protected resource metadata (RFC 9728) of the resource at `resourcePath`. Configured members override computed ones. */
export function describeResource({ provider, issuer, resourceMetadata = {} }: MCPAuthentication, { origin }: ClientUrl, resourcePath: string): object {
  const resource = `${origin}${resourcePath}`
  const server = provider === undefined ? issuer : resource
  const configured = Object.entries(resourceMetadata).map(([name, value]) => [toSnakeCase(name), value])
  return {
    resource,
    authorization_servers: server === undefined ? [] : [server],
    mcp_protocol_version: '2025-06-18',
    resource_type: 'mcp-server',
    ...Object.fromEntries(configured),
  }
}

const toSnakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/**
 * The authorization server metadata for clients. An adapted provider's names the gateway as issuer, so that registration goes
 * through it (mcp.md §8.3, decision D7). Throws if the provider's document lacks a member that is rewritten.
 */
export function adaptServerMetadata(
  { provider, audiences }: MCPAuthentication,
  own: ServerMetadata,
  { origin, path }: ClientUrl,
  resourcePath: string,
): ServerMetadata {
  if (provider === undefined) return own
  const registration = own['registration_endpoint']
  if (provider === 'IdpKind2' && typeof registration !== 'string') throw new Error('the metadata of the identity provider has no registration_endpoint')
  return {
    ...own,
    issuer: `${origin}${resourcePath}`,
    // Redirects after a login name the provider's own issuer, so clients must not expect this one (RFC 9207 §2.4).
    authorization_response_iss_parameter_supported: undefined,
    ...(registration !== undefined && { registration_endpoint: `${origin}${metadataPath(path)}/client-registration` }),
    ...(provider === 'IdpKind1' && audiences?.[0] !== undefined && { authorization_endpoint: addAudience(own['authorization_endpoint'], audiences[0]) }),
  }
}

/** Path of the requested document without a trailing slash. */
const metadataPath = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path) || AUTHORIZATION_SERVER

function addAudience(endpoint: unknown, audience: string): string {
  const url = typeof endpoint === 'string' ? URL.parse(endpoint) : null
  if (url === null) throw new Error('the metadata of the identity provider has no authorization_endpoint')
  url.searchParams.set('audience', audience)
  return url.href
}
