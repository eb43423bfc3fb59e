import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { Json } from '#api/schema.ts'
import { listReferenceFields, specWith, type ReferenceField } from '../../harness/references.ts'
import { ADDRESS, backendRef, manifest, ownedByB, policyOn, PORT, routeTo, serviceAt, serviceRef, tcpRouteTo, tlsRouteTo, type Manifest } from './objects.ts'

/** What `tenant-b` writes for one attack, and how a client uses it. Objects of a row have its name. */
export interface Row {
  readonly name: string
  readonly title: string
  readonly objects: readonly Manifest[]
  /** Where clients of the row connect; default: the HTTP listener, with the host name of the row. */
  readonly via?: { readonly tcp: number } | { readonly host: string } | 'tls'
}

type Draft = Omit<Row, 'name' | 'objects'> & { readonly objects: (row: string) => readonly Manifest[] }
const named = (prefix: string, drafts: readonly Draft[]): Row[] =>
  drafts.map((draft, index) => {
    const name = `${prefix}-${index}`
    return { ...draft, name, objects: draft.objects(name) }
  })

const own: Json = serviceRef('own')
const inA = (ref: Json): Json => ({ ...(ref as Record<string, Json>), namespace: 'tenant-a' })
/** Things of `tenant-a` by the definition of the reference. */
const foreign: Readonly<Record<string, readonly Json[]>> = {
  BackendObjectReference: [inA(serviceRef('service')), inA(backendRef('backend'))],
  AIModelBackendReference: [inA({ kind: 'Service', name: 'service', port: 80 })],
  McpSelector: [{ namespaces: { matchLabels: { team: 'a' } } }],
  PluginConfigMapReference: [{ name: 'plugin', namespace: 'tenant-a', key: 'index.ts' }],
}

/** A subject with `value` in the field, which requests to the row's host name reach. */
function using(field: ReferenceField, value: Json, row: string): Manifest[] {
  const spec = specWith(field, value, 'own')
  if (field.kind === 'ProxyBackend') return [ownedByB('ProxyBackend', row, spec as object), routeTo(row, backendRef(row))]
  // Sections for listeners need a Gateway of their author.
  return field.path.startsWith('frontend') ? [ownedByB('ProxyPolicy', row, spec as object)] : [policyOn(row, spec as object), routeTo(row, own)]
}

/**
 * One field of each kind of place: those of other guards and providers differ in the middle of their paths, and are resolved by the same function.
 * operator/translate/reference tries all of them.
 */
const fields = [
  ...new Map(
    [...listReferenceFields('ProxyPolicy'), ...listReferenceFields('ProxyBackend')].map((field) => {
      const steps = field.path.split('.').filter((step) => step !== '[]')
      return [`${field.kind} ${steps[0]} ${steps.slice(-3).join('.')}`, field] as const
    }),
  ).values(),
]
const mirror = (ref: Json): object => ({ filters: [{ type: 'RequestMirror', requestMirror: { backendRef: ref } }] })
const externalAuth = (ref: Json): object => ({
  filters: [{ type: 'ExternalAuth', externalAuth: { protocol: 'HTTP', backendRef: ref, http: { path: '/config_dump' } } }],
})
/** Fields of routes that name a backend. */
const routeFields: readonly (readonly [string, (ref: Json, row: string) => Manifest[], Row['via']?])[] = [
  ['HTTPRoute backendRefs', (ref, row) => [routeTo(row, ref)]],
  ['HTTPRoute requestMirror', (ref, row) => [routeTo(row, own, mirror(ref))]],
  ['HTTPRoute requestMirror of a backendRef', (ref, row) => [routeTo(row, { ...(own as object), ...mirror(ref) })]],
  ['HTTPRoute externalAuth', (ref, row) => [routeTo(row, own, externalAuth(ref))]],
  ['TLSRoute backendRefs', (ref, row) => [tlsRouteTo(row, ref)], 'tls'],
]

/** Each field that can name another namespace, at each thing of `tenant-a`. */
export const references: readonly Row[] = named('ref', [
  ...fields.flatMap((field) =>
    (foreign[field.definition] ?? []).map((value) => ({
      title: `${field.kind} spec.${field.path} = ${JSON.stringify(value)}`,
      objects: (row: string) => using(field, value, row),
    })),
  ),
  ...routeFields.flatMap(([title, write, via]) =>
    (foreign['BackendObjectReference'] ?? []).map((ref) => ({
      title: `${title} = ${JSON.stringify(ref)}`,
      objects: (row: string) => write(ref, row),
      ...(via && { via }),
    })),
  ),
  {
    title: 'TCPRoute backendRefs',
    objects: (row) => [tcpRouteTo(row, 0, inA(serviceRef('service')))],
    via: { tcp: PORT.tcp },
  },
])

/** Permits what `references` need. */
export const grant: Manifest = manifest('ReferenceGrant', 'tenant-a', 'grant', {
  spec: {
    from: [
      ...['ProxyPolicy', 'ProxyBackend'].map((kind) => ({ group: GROUP, kind, namespace: 'tenant-b' })),
      ...['HTTPRoute', 'TLSRoute', 'TCPRoute'].map((kind) => ({ group: GATEWAY_GROUP, kind, namespace: 'tenant-b' })),
    ],
    to: [
      { group: '', kind: 'Service' },
      { group: '', kind: 'ConfigMap' },
      { group: GROUP, kind: 'ProxyBackend' },
    ],
  },
})

/** Where no connection may go: this machine, its link, the metadata service, the data plane itself; in every spelling. */
export const LOOP = 18_081
const spellings = [
  '127.0.0.1',
  '127.8.8.8',
  'localhost',
  '0.0.0.0',
  '::1',
  '::',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::7f00:1',
  '2002:7f00:1::',
  '2130706433',
  '127.1',
  '0x7f000001',
  '017700000001',
].map((host) => [host, LOOP] as const)
const destinations: readonly (readonly [string, number])[] = [
  ...spellings,
  ...['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2852039166'].map((host) => [host, 80] as const),
  // At an address that pods may dial.
  ...[15_000, 15_020, 15_021, 15_022, 15_023].flatMap((port) => ['127.0.0.1', '10.199.0.1', ADDRESS.tenantB].map((host) => [host, port] as const)),
]

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)
/** Fields that name a host or URL. */
const hostFields: readonly (readonly [string, (host: string, port: number, row: string) => Manifest[]])[] = [
  ['static.host', (host, port, row) => [ownedByB('ProxyBackend', row, { static: { host, port } }), routeTo(row, backendRef(row))]],
  [
    'static.host of a mirror, with URLRewrite',
    (host, port, row) => [
      ownedByB('ProxyBackend', row, { static: { host, port } }),
      routeTo(row, own, {
        filters: [...(mirror(backendRef(row)) as { filters: object[] }).filters, { type: 'URLRewrite', urlRewrite: { hostname: '127.0.0.1' } }],
      }),
    ],
  ],
  [
    'static.host of extAuth',
    (host, port, row) => [
      ownedByB('ProxyBackend', row, { static: { host, port } }),
      policyOn(row, { traffic: { extAuth: { backendRef: backendRef(row), http: { path: '"/quitquitquit"' } } } }),
      routeTo(row, own),
    ],
  ],
  ['ai.provider.host', (host, port, row) => [ownedByB('ProxyBackend', row, { ai: { provider: { openai: {}, host, port } } }), routeTo(row, backendRef(row))]],
  [
    'mcp.targets.static.host',
    (host, port, row) => [ownedByB('ProxyBackend', row, { mcp: { targets: [{ name: 't', static: { host, port } }] } }), routeTo(row, backendRef(row))],
  ],
  ['a2a.host', (host, port, row) => [ownedByB('ProxyBackend', row, { a2a: { host, port } }), routeTo(row, backendRef(row))]],
  [
    'mcp.targets.openapi.url',
    (host, port, row) => [
      ownedByB('ProxyBackend', row, {
        mcp: { targets: [{ name: 't', openapi: { url: `http://${urlHost(host)}:${port}/openapi.json`, backendRef: serviceRef('own') } }] },
      }),
      routeTo(row, backendRef(row)),
    ],
  ],
  [
    'policies.tunnel',
    (host, port, row) => [
      ownedByB('ProxyBackend', `${row}-proxy`, { static: { host, port } }),
      ownedByB('ProxyBackend', row, { static: { host: 'public.example', port: 80 }, policies: { tunnel: { backendRef: backendRef(`${row}-proxy`) } } }),
      routeTo(row, backendRef(row)),
    ],
  ],
]

const fetching = (host: string, port: number): string => `import { definePlugin } from '@proxy/plugin'
export default definePlugin({
  setup: ({ fetch }) => ({ request: async (c) => c.text(await (await fetch('http://${host}:${port}/config_dump')).text()) }),
})`

/** Every field with some destinations, and every destination in one field: one function judges all connections. */
const some: readonly (readonly [string, number])[] = [
  ['127.0.0.1', LOOP],
  ['::ffff:169.254.169.254', 80],
  [ADDRESS.tenantB, 15_020],
]
const literal = hostFields.flatMap(([title, write], index) =>
  (index === 0 ? destinations : some).map(([host, port]): Draft => ({ title: `${title} = ${host}:${port}`, objects: (row) => write(host, port, row) })),
)
const plugins = [['127.0.0.1', LOOP] as const, ['localhost', 15_000] as const].map(([host, port]): Draft => ({
  title: `fetch.hosts of a plugin = ${host}:${port}`,
  objects: (row) => [
    manifest('ConfigMap', 'tenant-b', row, { data: { 'index.ts': fetching(host, port) } }),
    policyOn(row, {
      traffic: { plugins: [{ name: 'p', source: { configMapRef: { name: row, key: 'index.ts' } }, fetch: { hosts: [`${host}:${port}`] } }] },
    }),
    routeTo(row, own),
  ],
}))
/** The client names the destination. */
const forwarded = destinations.map(([host, port]): Draft => ({
  title: `dynamicForwardProxy to ${host}:${port}`,
  // One backend for all: the route is that of `forward`.
  objects: () => [],
  via: { host: `${urlHost(host)}:${port}` },
}))
/** By Services: the API server itself refuses some addresses. */
const slices = [
  ['127.0.0.1', LOOP],
  ['::1', LOOP],
  ['0.0.0.0', LOOP],
  ['::ffff:127.0.0.1', LOOP],
  ['64:ff9b::7f00:1', LOOP],
  ['2002:7f00:1::', LOOP],
  [ADDRESS.metadata, 80],
  ['64:ff9b::a9fe:a9fe', 80],
  [ADDRESS.tenantB, 15_000],
] as const
const services = slices.map(([address, port]): Draft => ({
  title: `EndpointSlice with ${address}:${port}`,
  objects: (row) => [...serviceAt('tenant-b', row, address, port), routeTo(row, serviceRef(row))],
}))
const externalName = (row: string, externalName_: string, port: number): Manifest =>
  ownedByB('Service', row, { type: 'ExternalName', externalName: externalName_, ports: [{ port: 80, targetPort: port }] })
const names = ['localhost', '127.0.0.1', ADDRESS.metadata].flatMap((name): Draft[] => [
  { title: `ExternalName ${name}`, objects: (row) => [externalName(row, name, name === ADDRESS.metadata ? 80 : LOOP), routeTo(row, serviceRef(row))] },
])
const annotated: Draft = {
  title: 'Service with the annotation of manifests without a cluster',
  objects: (row) => [
    {
      ...ownedByB('Service', row, { clusterIP: 'None', ports: [{ port: 80 }] }),
      metadata: { name: row, namespace: 'tenant-b', annotations: { 'proxy.dev/endpoints': `127.0.0.1:${LOOP}` } },
    },
    routeTo(row, serviceRef(row)),
  ],
}
const loopBackend = ownedByB('ProxyBackend', 'loop', { static: { host: '127.0.0.1', port: LOOP } })
const loopName = externalName('loop-name', 'localhost', LOOP)
const streams: readonly Draft[] = [
  { title: 'TCPRoute to a ProxyBackend', objects: (row) => [tcpRouteTo(row, 1, backendRef('loop'))], via: { tcp: PORT.tcp + 1 } },
  { title: 'TCPRoute to an ExternalName', objects: (row) => [tcpRouteTo(row, 2, serviceRef('loop-name'))], via: { tcp: PORT.tcp + 2 } },
  { title: 'TLSRoute to a ProxyBackend', objects: (row) => [tlsRouteTo(row, backendRef('loop'))], via: 'tls' },
  { title: 'TLSRoute to an ExternalName', objects: (row) => [tlsRouteTo(row, serviceRef('loop-name'))], via: 'tls' },
]
/** Each field that names a backend, at a backend of `tenant-b` that is this machine. */
const loops = [backendRef('loop'), serviceRef('loop-name')]
const byReference = [
  ...fields
    .filter(({ definition }) => definition === 'BackendObjectReference')
    .map((field, index): Draft => {
      const ref = loops[index % loops.length] as Json
      return { title: `${field.kind} spec.${field.path} = ${JSON.stringify(ref)}, which is loopback`, objects: (row) => using(field, ref, row) }
    }),
  ...routeFields.flatMap(([title, write, via]) =>
    loops.map((ref): Draft => ({ title: `${title} to ${JSON.stringify(ref)}, which is loopback`, objects: (row) => write(ref, row), ...(via && { via }) })),
  ),
]

/** Each way to name a destination, at each destination. */
export const hosts: readonly Row[] = named('host', [...literal, ...plugins, ...forwarded, ...services, ...names, annotated, ...streams, ...byReference])

/** What `tenant-b` has besides rows. */
export const attacker: readonly Manifest[] = [
  ...serviceAt('tenant-b', 'own', ADDRESS.tenantB, 80),
  manifest('Secret', 'tenant-b', 'own', { stringData: { Authorization: 'own', clientId: 'c', clientSecret: 's', '.htaccess': '' } }),
  manifest('ConfigMap', 'tenant-b', 'own', { data: {} }),
  ownedByB('Gateway', 'own', { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 18_090, protocol: 'HTTP' }] }),
  loopBackend,
  loopName,
  ownedByB('ProxyBackend', 'forward', { dynamicForwardProxy: {} }),
  // Without host names: all that no other route has.
  ownedByB('HTTPRoute', 'forward', {
    parentRefs: [{ name: 'gateway', namespace: 'infra', sectionName: 'http' }],
    rules: [{ backendRefs: [backendRef('forward')] }],
  }),
]
