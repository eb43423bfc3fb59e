import type { BackendRef } from '#gen/config/types.ts'
import type { BackendTarget } from '../common/backend-ref.ts'

/** A remote key set whose backend resolves. */
export interface KeySetReference {
  /** The result of `keySetId`. */
  readonly id: string
  readonly backend: BackendTarget
  readonly path: string
  /** Time between fetches. */
  readonly cacheMs: number
}

/** The OpenAPI document of an MCP target that is fetched. */
export interface DocumentReference {
  /** The result of `documentId`. */
  readonly id: string
  /** Key of the ProxyBackend. */
  readonly owner: string
  /** Path of `openapi` in the spec of the ProxyBackend. */
  readonly path: readonly string[]
  /** An absolute URL, or a path at the target. */
  readonly url: string
  /** Milliseconds between fetches. */
  readonly refreshMs: number
  /** The target is the Service of `backendRef`, not a static host. */
  readonly isService: boolean
  /** Undefined if `backendRef` does not resolve. */
  readonly service: BackendTarget | undefined
}

/** Names a remote document in `TranslateOptions.documents`. */
export function documentId({ owner, path, url, isService, service }: Omit<DocumentReference, 'id'>): string {
  if (!url.startsWith('/')) return url
  return isService ? `${service?.kind ?? ''}/${service?.key ?? ''}:${service?.port ?? ''}${url}` : `${owner}/${path.join('.')}${url}`
}

/** Why a URL cannot be fetched. Its scheme was checked when it was written. */
export function findUrlProblem(url: string): string | undefined {
  if (url.startsWith('/')) return undefined
  const parsed = URL.parse(url)
  if (parsed === null) return `${url} is not a URL`
  return parsed.username !== '' || parsed.password !== '' ? 'the URL must not contain credentials' : undefined
}

/** Names a remote key set in `TranslateOptions.keySets`. */
export function keySetId(backend: BackendRef, jwksPath: string): string {
  const host = backend.service === undefined ? `backend/${backend.backend ?? ''}` : `service/${backend.service}:${backend.port ?? ''}`
  return `${host}${jwksPath.startsWith('/') ? '' : '/'}${jwksPath}`
}
