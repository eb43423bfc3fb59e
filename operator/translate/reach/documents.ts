import type { BackendFull, McpTarget } from '#gen/config/types.ts'
import type { RemoteRequest, RemoteTls } from '../../model/translation.ts'
import type { BackendState } from '../backend/proxy-backend.ts'
import type { DocumentReference } from '../reference/remote-reference.ts'
import { findTls, fromPolicy, locate } from './key-sets.ts'
import type { World } from './content.ts'

/**
 * The remote OpenAPI documents of all backends, one for each id, at the shortest refreshInterval of each. One at a target whose TLS settings do not
 * resolve is left out: it must not be fetched over a weaker connection than configured.
 */
export function findDocuments(world: World, backends: readonly BackendState[]): RemoteRequest[] {
  const byId = new Map<string, RemoteRequest>()
  for (const backend of backends) {
    for (const reference of backend.resolved.documents) {
      const known = byId.get(reference.id)
      const request = known ?? toRequest(world, backend, reference)
      if (request) byId.set(reference.id, { ...request, cacheMs: Math.min(request.cacheMs, reference.refreshMs) })
    }
  }
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function toRequest(world: World, backend: BackendState, reference: DocumentReference): RemoteRequest | undefined {
  const { id, url, service, refreshMs: cacheMs } = reference
  if (!url.startsWith('/')) return { ...readUrl(url), id, cacheMs }
  if (reference.isService) {
    const place = service && locate(world, service)
    const tls = service && findTls(world, service)
    if (!place || tls === 'broken') return undefined
    const { host, port, endpoints } = place
    return { id, url: { host, port, path: url }, ...(endpoints && { endpoints }), ...(tls && { tls }), cacheMs }
  }
  const target = backend.message?.mcp?.targets[Number(reference.path.at(-2))]
  const tls = target?.static && findStaticTls(world, backend, target.name, target.static)
  if (target?.static === undefined || tls === 'broken') return undefined
  const { host, port } = target.static
  return { id, url: { host, port, path: url }, ...(tls && { tls }), cacheMs }
}

/** An absolute URL. Certificates of https are verified with the trust anchors of the system. */
function readUrl(url: string): Pick<RemoteRequest, 'url' | 'tls'> {
  const { protocol, hostname, port, pathname, search } = new URL(url)
  const isTls = protocol === 'https:'
  return {
    url: { host: hostname.replaceAll(/^\[|\]$/g, ''), port: port === '' ? (isTls ? 443 : 80) : Number(port), path: pathname + search },
    ...(isTls && { tls: { verify: 'full' } }),
  }
}

/** As the data plane chooses: the policies of the target, else those of its backend, else the oldest ProxyPolicy on the target, else on the backend. */
function findStaticTls(world: World, { resolved, message }: BackendState, name: string, { policies }: McpTarget): RemoteTls | 'broken' | undefined {
  const inline = policies?.tls ?? message?.policies?.tls
  if (inline) return fromPolicy(inline, resolved.secrets)
  const attached = world.policies.get(`ProxyBackend/${message?.key ?? ''}`) ?? []
  for (const section of [name, undefined]) {
    for (const { policy, target } of attached) {
      if (target.target.section !== section) continue
      for (const { section: kind, resolved: body } of policy.sections) {
        const tls = kind === 'backend' ? (body.body as BackendFull).tls : undefined
        if (tls) return fromPolicy(tls, body.secrets)
      }
    }
  }
  return undefined
}
