import type { MCPAuthentication } from '#gen/config/types.ts'
import type { ServerMetadata } from './provider.ts'
import { AUTHORIZATION, AUTHORIZATION_SERVER, type ClientUrl } from './urls.ts'

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
export function adaptServerMetadata(config: MCPAuthentication, own: ServerMetadata, { origin, path }: ClientUrl, resourcePath: string): ServerMetadata {
  const { provider } = config
  if (provider === undefined) return own
  const registration = own['registration_endpoint']
  const base = `${origin}${metadataPath(path)}`
  // Clients that publish their own metadata need no registration.
  const needsRegistration = provider === 'IdpKind2' && own['client_id_metadata_document_supported'] !== true
  if (needsRegistration && typeof registration !== 'string') throw new Error('the metadata of the identity provider has no registration_endpoint')
  return {
    ...own,
    issuer: `${origin}${resourcePath}`,
    // Redirects after a login name the provider's own issuer, so clients must not expect this one (RFC 9207 §2.4).
    authorization_response_iss_parameter_supported: undefined,
    ...(registration !== undefined && { registration_endpoint: `${base}/client-registration` }),
    ...(addsAudience(config) && { authorization_endpoint: `${base}${AUTHORIZATION}` }),
  }
}

/** Path of the requested document without a trailing slash. */
const metadataPath = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path) || AUTHORIZATION_SERVER

/**
 * Whether logins go through the gateway, which adds the audience. The advertised URL must have no query: some clients append `?` and their
 * own, contrary to RFC 6749 §3.1.
 */
export const addsAudience = ({ provider, audiences = [] }: MCPAuthentication): boolean => provider === 'IdpKind1' && audiences.length > 0

/** The URL of the provider's login, which is at `endpoint`, with the client's query and the audience. */
export function loginUrl({ audiences = [] }: MCPAuthentication, endpoint: URL, query: string): string {
  const url = new URL(endpoint)
  const audience = new URLSearchParams(query).has('audience') ? '' : new URLSearchParams({ audience: audiences[0] ?? '' }).toString()
  url.hash = ''
  url.search = [url.search.slice(1), query, audience].filter((part) => part !== '').join('&')
  return url.href
}
