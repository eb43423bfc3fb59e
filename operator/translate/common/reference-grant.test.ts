import { describe, expect, test } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { findReferences, listReferenceFields, specWith, type ReferenceField } from '../../../e2e/harness/references.ts'
import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { Json } from '#api/schema.ts'
import { schemas } from '../../source/schemas.ts'
import { readManifestText } from '../../source/reader.ts'
import { createTranslator } from '../translator.ts'
import type { Translation } from '../../model/translation.ts'

/** What `tenant-b` must not get from `tenant-a` without a grant: an address, a host, a credential, a program. */
const address = '192.0.2.66'
const host = 'private.example'
const credential = 'credential-of-a'
const code = 'export default code-of-a'

const owned = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant-a', labels: { team: 'a' } } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'service', namespace: 'tenant-a', annotations: { 'proxy.dev/endpoints': address } },
    spec: { ports: [{ port: 80, appProtocol: 'proxy.dev/mcp' }] },
  },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'tenant-a' }, stringData: { Authorization: credential } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'plugin', namespace: 'tenant-a' }, data: { 'index.ts': code } },
  {
    apiVersion: `${GROUP}/v1alpha1`,
    kind: 'ProxyBackend',
    metadata: { name: 'backend', namespace: 'tenant-a' },
    spec: { static: { host, port: 80 }, policies: { auth: { secretRef: { name: 'key' } } } },
  },
  {
    apiVersion: `${GROUP}/v1alpha1`,
    kind: 'ProxyBackend',
    metadata: { name: 'llm', namespace: 'tenant-a' },
    spec: { ai: { provider: { providerA: {}, host, port: 80 } }, policies: { auth: { secretRef: { name: 'key' } } } },
  },
  {
    apiVersion: `${GROUP}/v1alpha1`,
    kind: 'ProxyPolicy',
    metadata: { name: 'credentials', namespace: 'tenant-a' },
    spec: { targetRefs: [{ group: '', kind: 'Service', name: 'service' }], backend: { auth: { secretRef: { name: 'key' } } } },
  },
]
const gateway = {
  apiVersion: `${GATEWAY_GROUP}/v1`,
  kind: 'Gateway',
  metadata: { name: 'web', namespace: 'tenant-b' },
  spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
}
const route = (backendRef: Json): object => ({
  apiVersion: `${GATEWAY_GROUP}/v1`,
  kind: 'HTTPRoute',
  metadata: { name: 'route', namespace: 'tenant-b' },
  spec: { parentRefs: [{ name: 'web' }], rules: [{ backendRefs: [backendRef] }] },
})
const own = [
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'own', namespace: 'tenant-b' }, stringData: { clientId: 'c', clientSecret: 's', '.htaccess': '' } },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'own', namespace: 'tenant-b' }, data: {} },
]

interface Referent {
  readonly group: string
  readonly kind: string
  readonly name: string
}
const service: Referent = { group: '', kind: 'Service', name: 'service' }
const backend: Referent = { group: GROUP, kind: 'ProxyBackend', name: 'backend' }
const llm: Referent = { group: GROUP, kind: 'ProxyBackend', name: 'llm' }
const refTo = ({ group, kind, name }: Referent): Json => ({ group, kind, name, namespace: 'tenant-a', ...(kind === 'Service' && { port: 80 }) })

const grant = (from: object, to: object): object => ({
  apiVersion: `${GATEWAY_GROUP}/v1beta1`,
  kind: 'ReferenceGrant',
  metadata: { name: 'grant', namespace: 'tenant-a' },
  spec: { from: [{ group: GROUP, kind: 'ProxyPolicy', namespace: 'tenant-b', ...from }], to: [{ group: '', kind: 'Service', ...to }] },
})

function snapshotOf(objects: readonly object[]) {
  const { problems, snapshot } = readManifestText('in.yaml', objects.map((object) => JSON.stringify(object)).join('\n---\n'))
  expect(problems.map(({ text }) => text)).toEqual([])
  return snapshot
}

/** What a Gateway's data planes and the operator's fetches get from `tenant-a`. */
function leaksOf({ gateways, keySets, documents }: Translation): string[] {
  const text = JSON.stringify([gateways.get('tenant-b/web'), keySets, documents])
  return [address, host, credential, code, '"tenant-a/', '/tenant-a/', '.tenant-a.'].filter((each) => text.includes(each))
}
const statusesOf = ({ statuses }: Translation): string => JSON.stringify(statuses.filter(({ namespace }) => namespace === 'tenant-b'))

/** Objects of `tenant-b` with the reference, which reach it from the Gateway `web`. */
function using(field: ReferenceField, value: Json): object[] {
  const subject = {
    apiVersion: `${GROUP}/v1alpha1`,
    kind: field.kind,
    metadata: { name: 'subject', namespace: 'tenant-b' },
    spec: specWith(field, value, 'web'),
  }
  const routes = field.kind === 'ProxyBackend' ? [route({ group: GROUP, kind: 'ProxyBackend', name: 'subject' })] : []
  return [...owned, gateway, ...own, ...routes, subject]
}

/** Expects that the reference is refused without a grant and with grants of others, works with a grant, and is refused again when that is deleted. */
function check(objects: readonly object[], from: object, to: Referent, codes = /PX1202|PX1353/): void {
  const translate = createTranslator()
  const run = (...grants: object[]): Translation => translate(snapshotOf([...objects, ...grants]), { isStandalone: true })
  const { name, ...kind } = to
  for (const grants of [
    [],
    [grant({ ...from, namespace: 'tenant-c' }, kind)],
    [grant({ ...from, kind: 'UDPRoute' }, kind)],
    [grant(from, { ...kind, name: `${name}-2` })],
    [grant(from, { ...kind, kind: 'Other' })],
    [{ ...grant(from, kind), metadata: { name: 'grant', namespace: 'tenant-b' } }],
  ]) {
    const refused = run(...grants)
    expect(leaksOf(refused)).toEqual([])
    expect(statusesOf(refused)).toMatch(codes)
  }
  for (const granted of [run(grant(from, kind)), run(grant(from, to))]) {
    expect(leaksOf(granted)).not.toEqual([])
    expect(statusesOf(granted)).not.toMatch(codes)
  }
  const removed = run()
  expect(leaksOf(removed)).toEqual([])
  expect(statusesOf(removed)).toMatch(codes)
}

/** A value of each definition that can name another namespace, for its referents. */
const values: Readonly<Record<string, readonly (readonly [Referent, Json])[]>> = {
  BackendObjectReference: [
    [service, refTo(service)],
    [backend, refTo(backend)],
  ],
  AIModelBackendReference: [
    [service, { kind: 'Service', name: 'service', namespace: 'tenant-a', port: 80 }],
    [llm, { name: 'llm', namespace: 'tenant-a' }],
  ],
  McpSelector: [[service, { namespaces: { matchLabels: { team: 'a' } } }]],
  PluginConfigMapReference: [
    [
      { group: '', kind: 'ConfigMap', name: 'plugin' },
      { name: 'plugin', namespace: 'tenant-a', key: 'index.ts' },
    ],
  ],
}
const fields = [...listReferenceFields('ProxyPolicy'), ...listReferenceFields('ProxyBackend')]

describe('a reference to another namespace needs a ReferenceGrant there (operator.md §4.6)', () => {
  test('each definition that can name a namespace has a row', () => {
    expect([...new Set(fields.map(({ definition }) => definition))].toSorted()).toEqual(Object.keys(values).toSorted())
    expect(fields.length).toBeGreaterThan(150)
  })

  test.each(fields.map((field) => [`spec.${field.path} of ${field.kind}`, field] as const))('%s', (_, field) => {
    for (const [to, value] of values[field.definition] ?? []) check(using(field, value), { kind: field.kind }, to)
  })
})

/** Fields that name a namespace without a reference that needs a grant: why. */
const exempt: Readonly<Record<string, RegExp>> = {
  'a route attaches where allowedRoutes of the listener permits it': /Route parentRefs\.\[\]$/,
  'a ListenerSet attaches where allowedListeners of the Gateway permits it': /^ListenerSet parentRef$/,
  'a GatewayClass belongs to the owner of the cluster': /^GatewayClass parametersRef$/,
  'selects who may attach': /(allowedRoutes|allowedListeners)$/,
  'is a grant': /^ReferenceGrant /,
  'filters of backendRefs cannot authorize': /backendRefs\.\[\]\.filters\.\[\]\.externalAuth\.backendRef$/,
}

const certificate = readPem('tls.crt')
const keyPair = { 'tls.crt': certificate, 'tls.key': readPem('tls.key'), 'ca.crt': certificate }
const materials = [
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pair', namespace: 'tenant-a' }, stringData: keyPair },
  { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'pair', namespace: 'tenant-b' }, stringData: keyPair },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ca', namespace: 'tenant-a' }, data: { 'ca.crt': certificate } },
]
function readPem(entry: 'tls.crt' | 'tls.key'): string {
  const text = readFileSync(join(import.meta.dirname, '../testdata/gateway-certificate/in.yaml'), 'utf8')
  const objects = parseAllDocuments(text).map((document) => document.toJS() as { readonly kind: string; readonly stringData?: Record<string, string> })
  return objects.find(({ kind }) => kind === 'Secret')?.stringData?.[entry] ?? ''
}

type Attached = 'HTTPRoute' | 'GRPCRoute' | 'TCPRoute' | 'TLSRoute'
const pair: Referent = { group: '', kind: 'Secret', name: 'pair' }
const authority: Referent = { group: '', kind: 'ConfigMap', name: 'ca' }
const listenersOf = { HTTPRoute: 'HTTP', GRPCRoute: 'HTTP', TCPRoute: 'TCP', TLSRoute: 'TLS' } as const
const mirrorTo = (ref: Json) => ({ type: 'RequestMirror', requestMirror: { backendRef: ref } })
const subject = (kind: string, spec: object): object => ({
  apiVersion: `${GATEWAY_GROUP}/v1`,
  kind,
  metadata: { name: 'subject', namespace: 'tenant-b' },
  spec,
})
const attached =
  (kind: Attached, rule: (ref: Json) => object) =>
  (ref: Json): object[] => {
    const tls = kind === 'TLSRoute' ? { tls: { mode: 'Passthrough' } } : {}
    const listeners = [{ name: 'in', port: 80, protocol: listenersOf[kind], ...tls }]
    const hostnames = kind === 'TLSRoute' ? { hostnames: ['a.example'] } : {}
    return [{ ...gateway, spec: { ...gateway.spec, listeners } }, subject(kind, { parentRefs: [{ name: 'web' }], ...hostnames, rules: [rule(ref)] })]
  }
const serving = { certificateRefs: [{ name: 'pair' }] }
const https = (tls: object) => ({ name: 'https', port: 443, protocol: 'HTTPS', tls })
const gatewayWith = (spec: object): object => ({ ...gateway, spec: { ...gateway.spec, ...spec } })
const refOf = ({ group, kind, name }: Referent): Json => ({ group, kind, name, namespace: 'tenant-a' })
const backends = [service, backend]

/** Each field of the Gateway API that needs a grant: its referents, and objects that use it. */
const rows: Readonly<Record<string, readonly [readonly Referent[], (ref: Json) => object[]]>> = {
  'HTTPRoute rules.[].backendRefs.[]': [backends, attached('HTTPRoute', (ref) => ({ backendRefs: [ref] }))],
  'HTTPRoute rules.[].backendRefs.[].filters.[].requestMirror.backendRef': [
    backends,
    attached('HTTPRoute', (ref) => ({ backendRefs: [{ name: 'own', port: 80, filters: [mirrorTo(ref)] }] })),
  ],
  'HTTPRoute rules.[].filters.[].requestMirror.backendRef': [backends, attached('HTTPRoute', (ref) => ({ filters: [mirrorTo(ref)] }))],
  'HTTPRoute rules.[].filters.[].externalAuth.backendRef': [
    backends,
    attached('HTTPRoute', (ref) => ({ filters: [{ type: 'ExternalAuth', externalAuth: { protocol: 'GRPC', backendRef: ref, grpc: {} } }] })),
  ],
  'GRPCRoute rules.[].backendRefs.[]': [backends, attached('GRPCRoute', (ref) => ({ backendRefs: [ref] }))],
  'GRPCRoute rules.[].backendRefs.[].filters.[].requestMirror.backendRef': [
    backends,
    attached('GRPCRoute', (ref) => ({ backendRefs: [{ name: 'own', port: 80, filters: [mirrorTo(ref)] }] })),
  ],
  'GRPCRoute rules.[].filters.[].requestMirror.backendRef': [backends, attached('GRPCRoute', (ref) => ({ filters: [mirrorTo(ref)] }))],
  'TCPRoute rules.[].backendRefs.[]': [backends, attached('TCPRoute', (ref) => ({ backendRefs: [ref] }))],
  'TLSRoute rules.[].backendRefs.[]': [backends, attached('TLSRoute', (ref) => ({ backendRefs: [ref] }))],
  'Gateway listeners.[].tls.certificateRefs.[]': [[pair], (ref) => [gatewayWith({ listeners: [https({ certificateRefs: [ref] })] })]],
  'Gateway tls.backend.clientCertificateRef': [
    [pair],
    (ref) => [
      gatewayWith({ tls: { backend: { clientCertificateRef: ref } } }),
      route({ name: 'own', port: 80 }),
      subject('BackendTLSPolicy', {
        targetRefs: [{ group: '', kind: 'Service', name: 'own' }],
        validation: { hostname: 'own.example', wellKnownCACertificates: 'System' },
      }),
    ],
  ],
  'Gateway tls.frontend.default.validation.caCertificateRefs.[]': [
    [pair, authority],
    (ref) => [gatewayWith({ listeners: [https(serving)], tls: { frontend: { default: { validation: { caCertificateRefs: [ref] } } } } })],
  ],
  'Gateway tls.frontend.perPort.[].tls.validation.caCertificateRefs.[]': [
    [pair, authority],
    (ref) => [
      gatewayWith({
        listeners: [https(serving)],
        tls: { frontend: { default: {}, perPort: [{ port: 443, tls: { validation: { caCertificateRefs: [ref] } } }] } },
      }),
    ],
  ],
  'ListenerSet listeners.[].tls.certificateRefs.[]': [
    [pair],
    (ref) => [
      gatewayWith({ allowedListeners: { namespaces: { from: 'Same' } } }),
      subject('ListenerSet', { parentRef: { name: 'web' }, listeners: [https({ certificateRefs: [ref] })] }),
    ],
  ],
}

describe('a reference of the Gateway API to another namespace needs a ReferenceGrant there (operator.md §4.6)', () => {
  test('each field that names a namespace has a row or a reason', () => {
    const specs = Object.entries(schemas).flatMap(([kind, { properties }]) => {
      const spec = properties?.['spec']
      return !kind.startsWith('Proxy') && spec !== undefined ? findReferences(spec).map(({ path }) => `${kind} ${path}`) : []
    })
    const reasons = Object.values(exempt)
    expect(specs.filter((field) => !reasons.some((pattern) => pattern.test(field))).toSorted()).toEqual(Object.keys(rows).toSorted())
  })

  test.each(Object.entries(rows))('%s', (field, [referents, using_]) => {
    const [kind = ''] = field.split(' ')
    const ownService = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'own', namespace: 'tenant-b', annotations: { 'proxy.dev/endpoints': '192.0.2.1' } },
      spec: { ports: [{ port: 80 }] },
    }
    for (const to of referents) {
      const ref = to === service || to === backend ? refTo(to) : refOf(to)
      check([...owned, ...materials, ...own, ownService, ...using_(ref)], { group: GATEWAY_GROUP, kind }, to, /RefNotPermitted/)
    }
  })
})
