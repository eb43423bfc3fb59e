import { clientOrigin } from '../../../request/exchange/client-origin.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { pathOf } from '../../../http/message.ts'

const PROTECTED_RESOURCE = '/.well-known/oauth-protected-resource'
/** Well-known path of authorization server metadata (RFC 8414 §3). */
export const AUTHORIZATION_SERVER = '/.well-known/oauth-authorization-server'

/** Origin and path as the client wrote them. Clients compare the metadata documents with them. */
export interface ClientUrl {
  /** `https://host:port`. */
  readonly origin: string
  /** Starts with `/`. */
  readonly path: string
}

/** The URL that the client sent its request to. */
export function clientUrlOf(exchange: Exchange): ClientUrl {
  return { origin: clientOrigin(exchange), path: pathOf(exchange.receivedTarget) }
}

/** A requested metadata document and the path of the protected resource that it describes ('' for the entire host). */
export interface WellKnown {
  readonly document: 'protected-resource' | 'authorization-server'
  readonly resourcePath: string
}

/** Both forms: the well-known prefix before the resource's path (RFC 8414, RFC 9728), and for authorization servers the older one, after it. */
export function parseWellKnown(path: string): WellKnown | undefined {
  const resourceSuffix = suffixAfter(path, PROTECTED_RESOURCE)
  if (resourceSuffix !== undefined) return { document: 'protected-resource', resourcePath: resourceSuffix }
  const serverSuffix = suffixAfter(path, AUTHORIZATION_SERVER)
  if (serverSuffix !== undefined) return { document: 'authorization-server', resourcePath: serverSuffix }
  return path.endsWith(AUTHORIZATION_SERVER) ? { document: 'authorization-server', resourcePath: path.slice(0, -AUTHORIZATION_SERVER.length) } : undefined
}

function suffixAfter(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  if (rest === '' || rest === '/') return ''
  return rest.startsWith('/') ? rest : undefined
}

/** URL of the protected resource metadata for the challenge of a 401. A configured `resource` provides the origin. */
export function resourceMetadataUrl({ origin, path }: ClientUrl, resource: unknown): string {
  return `${originOf(resource) ?? origin}${PROTECTED_RESOURCE}${path}`
}

function originOf(value: unknown): string | undefined {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url === null || url.origin === 'null' ? undefined : url.origin
}

/** The path ends the same in both forms of well-known URLs. */
export const isRegistration = (path: string): boolean => path.endsWith('/client-registration')

/** Path below the metadata document that redirects to the provider's login. */
export const AUTHORIZATION = '/client-authorization'

/** Whether a path is below that of authorization server metadata and redirects to the provider's login. */
export const isAuthorization = (path: string): boolean =>
  path.endsWith(AUTHORIZATION) && parseWellKnown(path.slice(0, -AUTHORIZATION.length))?.document === 'authorization-server'
