import type { BackendFull, BackendTLS, PolicyTarget, ResolvedSecret, Secret as SecretMessage } from '#gen/config/types.ts'
import type { BackendTarget } from '../common/backend-ref.ts'
import type { BackendState } from '../backend/proxy-backend.ts'
import type { PolicyState } from '../policy/proxy-policy.ts'
import type { World } from './content.ts'
import type { KeySetReference } from '../reference/remote-reference.ts'
import { serviceMessage } from '../backend/service.ts'
import type { RemoteRequest, RemoteTls } from '../../model/translation.ts'

/**
 * The remote key sets of all policies and backends, one for each id, the shortest cacheDuration of each. One whose TLS
 * settings do not resolve is left out: it must not be fetched over a weaker connection than configured.
 */
export function findKeySets(world: World, policies: readonly PolicyState[], backends: readonly BackendState[]): RemoteRequest[] {
  const bodies = [...policies.flatMap(({ sections }) => sections.map(({ resolved }) => resolved)), ...backends.map(({ resolved }) => resolved)]
  const byId = new Map<string, RemoteRequest>()
  for (const reference of bodies.flatMap(({ keySets }) => keySets)) {
    const known = byId.get(reference.id)
    const request = known ?? toRequest(world, reference)
    if (request) byId.set(reference.id, { ...request, cacheMs: Math.min(request.cacheMs, reference.cacheMs) })
  }
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function toRequest(world: World, { id, backend, path, cacheMs }: KeySetReference): RemoteRequest | undefined {
  const place = locate(world, backend)
  const tls = findTls(world, backend)
  if (!place || tls === 'broken') return undefined
  const { host, port, endpoints } = place
  return { id, url: { host, port, path: path.startsWith('/') ? path : `/${path}` }, ...(endpoints && { endpoints }), ...(tls && { tls }), cacheMs }
}

export type Place = Pick<RemoteRequest['url'], 'host' | 'port'> & Pick<RemoteRequest, 'endpoints'>

export function locate({ context, backends, slices }: World, { kind, key, port }: BackendTarget): Place | undefined {
  if (kind === 'ProxyBackend') {
    const fixed = backends.get(key)?.backend.spec.static
    return fixed && { host: fixed.host, port: fixed.port }
  }
  const [namespace = '', name = ''] = key.split('/')
  const service = context.snapshot.get('Service', namespace, name)
  if (!service || port === undefined) return undefined
  const { hostname = '', ports } = serviceMessage(context, slices, service, new Set([port]))
  // In a cluster the operator goes through the cluster IP, as any other client does.
  if (!context.options.isStandalone) return { host: hostname, port }
  const endpoints = ports.find((each) => each.port === port)?.endpoints ?? []
  return { host: hostname, port, endpoints: endpoints.map((endpoint) => ({ address: endpoint.address, port: endpoint.port })) }
}

/** As the data plane chooses: the backend's own policies, else the oldest ProxyPolicy on it, else its BackendTLSPolicy. */
export function findTls(world: World, { kind, key, port }: BackendTarget): RemoteTls | 'broken' | undefined {
  const own = kind === 'ProxyBackend' ? world.backends.get(key)?.resolved : undefined
  const spec: { readonly policies?: BackendFull } | undefined = own?.body
  const inline = spec?.policies?.tls
  if (own && inline) return fromPolicy(inline, own.secrets)
  const node = `${kind}/${key}`
  const isOnPort = ({ target }: { readonly target: PolicyTarget }): boolean =>
    target.section === undefined && (target.port === undefined || target.port === port)
  for (const { policy, target } of world.policies.get(node) ?? []) {
    if (!isOnPort(target)) continue
    for (const { section, resolved } of policy.sections) {
      const tls = section === 'backend' ? (resolved.body as BackendFull).tls : undefined
      if (tls) return fromPolicy(tls, resolved.secrets)
    }
  }
  const state = world.backendTls.get(node)?.find(({ target }) => !target.isUnused && isOnPort(target))?.state
  if (!state) return undefined
  const { sni, subjectAltNames, caCertificates } = state.validation
  const ca = caCertificates && state.secrets.flatMap(({ certificate }) => certificate ?? [])
  if (state.rejected || ca?.length === 0) return 'broken'
  return { ...(sni !== undefined && { servername: sni }), ...(ca && { ca }), ...(subjectAltNames && { subjectAltNames }), verify: 'full' }
}

export function fromPolicy(tls: BackendTLS, secrets: readonly SecretMessage[]): RemoteTls | 'broken' {
  const find = (ref: ResolvedSecret | undefined): SecretMessage | undefined => secrets.find((secret) => secret.key === ref?.secret)
  const [clientRef] = tls.mtlsCertificateRef ?? []
  const client = find(clientRef)
  if (clientRef && (client?.certificate === undefined || client.privateKey === undefined)) return 'broken'
  const [authorityRef] = tls.caCertificateRefs ?? []
  const ca = find(authorityRef)?.certificate
  if (authorityRef && ca === undefined && tls.insecureSkipVerify !== 'All') return 'broken'
  return {
    ...(tls.sni !== undefined && { servername: tls.sni }),
    ...(ca !== undefined && { ca: [ca] }),
    ...(client?.certificate !== undefined && { certificate: client.certificate }),
    ...(client?.privateKey !== undefined && { privateKey: client.privateKey }),
    ...(tls.verifySubjectAltNames && { subjectAltNames: tls.verifySubjectAltNames.map((value) => ({ type: 'Hostname' as const, value })) }),
    verify: tls.insecureSkipVerify === 'All' ? 'none' : tls.insecureSkipVerify === 'Hostname' ? 'chain' : 'full',
  }
}
