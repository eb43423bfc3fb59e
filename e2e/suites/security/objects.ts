import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { Json } from '#api/schema.ts'

/** An object of the Kubernetes API. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: Json | undefined }
  readonly [field: string]: unknown
}

/** Addresses of the network namespace: what pods may dial. */
export const ADDRESS = { tenantA: '10.199.0.66', tenantB: '10.199.0.67', metadata: '169.254.169.254' } as const
/** Ports of the shared Gateway. */
export const PORT = { http: 18_080, tls: 18_443, tcp: 18_100 } as const
const TCP_LISTENERS = 3

/** What must not leave `tenant-a`. */
export const CREDENTIAL = 'credential-of-tenant-a'
export const SECRET_NAME = 'vault-of-tenant-a'
export const MARK = 'x-code-of-tenant-a'

const apiVersions: Readonly<Record<string, string>> = {
  Namespace: 'v1',
  Service: 'v1',
  Secret: 'v1',
  ConfigMap: 'v1',
  EndpointSlice: 'discovery.k8s.io/v1',
  ReferenceGrant: `${GATEWAY_GROUP}/v1beta1`,
  ProxyPolicy: `${GROUP}/v1alpha1`,
  ProxyBackend: `${GROUP}/v1alpha1`,
  Gateway: `${GATEWAY_GROUP}/v1`,
  HTTPRoute: `${GATEWAY_GROUP}/v1`,
  GRPCRoute: `${GATEWAY_GROUP}/v1`,
  TLSRoute: `${GATEWAY_GROUP}/v1`,
  TCPRoute: `${GATEWAY_GROUP}/v1alpha2`,
}

export const manifest = (kind: string, namespace: string, name: string, rest: object): Manifest => ({
  apiVersion: apiVersions[kind] ?? '',
  kind,
  metadata: { name, namespace },
  ...rest,
})
export const ownedByB = (kind: string, name: string, spec: object): Manifest => manifest(kind, 'tenant-b', name, { spec })

/** A Service without pods, whose endpoint is an address of the machine. */
export function serviceAt(namespace: string, name: string, address: string, port: number, appProtocol?: string): Manifest[] {
  const addressType = address.includes(':') ? 'IPv6' : 'IPv4'
  return [
    manifest('Service', namespace, name, { spec: { clusterIP: 'None', ports: [{ port: 80, ...(appProtocol && { appProtocol }) }] } }),
    {
      ...manifest('EndpointSlice', namespace, name, { addressType, ports: [{ name: '', port }], endpoints: [{ addresses: [address] }] }),
      metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
    },
  ]
}

const gatewayRef = (sectionName: string) => ({ name: 'gateway', namespace: 'infra', sectionName })
export const backendRef = (name: string): Json => ({ group: GROUP, kind: 'ProxyBackend', name })
export const serviceRef = (name: string): Json => ({ name, port: 80 })
export const hostOf = (row: string): string => `${row}.b.example`

/** A route of `tenant-b` with a host name of its own on the shared Gateway. */
export const routeTo = (row: string, ref: Json, rule: object = {}): Manifest =>
  ownedByB('HTTPRoute', row, { parentRefs: [gatewayRef('http')], hostnames: [hostOf(row)], rules: [{ backendRefs: [ref], ...rule }] })
export const tcpRouteTo = (row: string, index: number, ref: Json): Manifest =>
  ownedByB('TCPRoute', row, { parentRefs: [gatewayRef(`tcp-${index}`)], rules: [{ backendRefs: [ref] }] })
export const tlsRouteTo = (row: string, ref: Json): Manifest =>
  ownedByB('TLSRoute', row, { parentRefs: [gatewayRef('tls')], hostnames: [hostOf(row)], rules: [{ backendRefs: [ref] }] })

/** A policy of `tenant-b` on its route of the same name. */
export const policyOn = (row: string, spec: object): Manifest =>
  ownedByB('ProxyPolicy', row, { ...spec, targetRefs: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', name: row }] })

const all = { namespaces: { from: 'All' } }
const ofTenantA = { namespaces: { from: 'Selector', selector: { matchLabels: { team: 'a' } } } }
const routeOfA = (name: string, hostname: string, sectionName: string): Manifest =>
  manifest('HTTPRoute', 'tenant-a', name, {
    spec: { parentRefs: [gatewayRef(sectionName)], hostnames: [hostname], rules: [{ backendRefs: [{ name: 'service', port: 80 }] }] },
  })

const MARKING = `import { definePlugin } from '@proxy/plugin'
export default definePlugin({
  setup: () => ({
    async request(c, next) {
      await next()
      c.res.headers.set('${MARK}', '1')
    },
  }),
})`

/** The shared Gateway, and what `tenant-a` has. */
export const victims: readonly Manifest[] = [
  ...['infra', 'tenant-a', 'tenant-b'].map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { team: name.slice(-1) } },
  })),
  manifest('Gateway', 'infra', 'gateway', {
    spec: {
      gatewayClassName: 'proxy',
      listeners: [
        { name: 'http', port: PORT.http, protocol: 'HTTP', allowedRoutes: all },
        { name: 'only-a', port: PORT.http, protocol: 'HTTP', hostname: 'only.a.example', allowedRoutes: ofTenantA },
        { name: 'tls', port: PORT.tls, protocol: 'TLS', tls: { mode: 'Passthrough' }, allowedRoutes: all },
        ...Array.from({ length: TCP_LISTENERS }, (_, index) => ({ name: `tcp-${index}`, port: PORT.tcp + index, protocol: 'TCP', allowedRoutes: all })),
      ],
    },
  }),
  manifest('Secret', 'tenant-a', SECRET_NAME, { stringData: { Authorization: CREDENTIAL } }),
  manifest('ConfigMap', 'tenant-a', 'plugin', {
    data: { 'index.ts': MARKING },
  }),
  ...serviceAt('tenant-a', 'service', ADDRESS.tenantA, 80, 'proxy.dev/mcp'),
  manifest('ProxyBackend', 'tenant-a', 'backend', {
    spec: { static: { host: ADDRESS.tenantA, port: 80 }, policies: { auth: { secretRef: { name: SECRET_NAME } } } },
  }),
  manifest('ProxyPolicy', 'tenant-a', 'credentials', {
    spec: { targetRefs: [{ group: '', kind: 'Service', name: 'service' }], backend: { auth: { secretRef: { name: SECRET_NAME } } } },
  }),
  routeOfA('shop', 'shop.a.example', 'http'),
  routeOfA('only', 'only.a.example', 'only-a'),
]
