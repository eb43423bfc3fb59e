import { describe, expect, test } from '@jest/globals'
import { makeAuthority, makeCertificate } from '../../../e2e/harness/certificates.ts'
import { readChunk } from '../../source/document.ts'
import type { KubeObject } from '../../source/objects.ts'
import { createSnapshot } from '../../source/snapshot.ts'
import { translate } from '../translate.ts'
import type { RemoteRequest, Translation } from '../../model/translation.ts'

const objectsOf = (manifests: readonly string[]): KubeObject[] =>
  manifests.flatMap((text) =>
    readChunk(text).items.flatMap(({ object }) => {
      if (!object) throw new Error(`no object: ${text}`)
      return object
    }),
  )

const authority = makeAuthority('ca')
const leaf = makeCertificate({ name: 'operator', issuer: authority })
const indent = (text: string): string => text.trim().replaceAll('\n', '\n    ')
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const service = `{apiVersion: v1, kind: Service, metadata: {name: idp, annotations: {proxy.dev/endpoints: "127.0.0.1:8080,10.0.0.1"}}, spec: {ports: [{port: 80}]}}`
const backend = (more = ''): string => `
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: idp}
spec: {static: {host: idp.example, port: 443}${more}}`
const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: ca}
data:
  ca.crt: |
    ${indent(authority.certificate)}`
const secret = `{apiVersion: v1, kind: Secret, metadata: {name: client}, type: kubernetes.io/tls, data: {tls.crt: ${base64(leaf.certificate)}, tls.key: ${base64(leaf.privateKey)}}}`
const toService = '{name: idp, port: 80}'
const toBackend = '{group: proxy.dev, kind: ProxyBackend, name: idp}'

const policy = (name: string, target: string, body: string): string => `
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: {name: ${name}, creationTimestamp: "2000-01-01T00:00:0${name.length}Z"}
spec:
  targetRefs: [${target}]
  ${body}`
const jwt = (ref: string, path = '/keys', more = ''): string =>
  policy(
    `jwt-${path.length}`,
    '{group: gateway.networking.k8s.io, kind: Gateway, name: gw}',
    `traffic: {jwtAuthentication: {providers: [{issuer: i, jwks: {remote: {jwksPath: "${path}", backendRef: ${ref}${more}}}}]}}`,
  )
const onService = '{group: "", kind: Service, name: idp}'
const onBackend = '{group: proxy.dev, kind: ProxyBackend, name: idp}'

const keySetsOf = (manifests: readonly string[], isStandalone = false): Translation['keySets'] =>
  translate(createSnapshot(objectsOf(manifests)), { isStandalone }).keySets

describe('the URL of a key set', () => {
  const endpoints = [
    { address: '10.0.0.1', port: 80 },
    { address: '127.0.0.1', port: 8080 },
  ]
  const cluster: RemoteRequest = {
    id: 'service/default/idp:80/keys',
    url: { host: 'idp.default.svc.cluster.local', port: 80, path: '/keys' },
    cacheMs: 300_000,
  }
  const fixed: RemoteRequest = { id: 'backend/default/idp/keys', url: { host: 'idp.example', port: 443, path: '/keys' }, cacheMs: 300_000 }
  test.each<[sentence: string, manifests: string[], isStandalone: boolean, expected: RemoteRequest[]]>([
    ['of a Service in a cluster uses DNS, not the endpoints annotation', [service, jwt(toService)], false, [cluster]],
    ['of a Service in directory mode has endpoints', [service, jwt(toService)], true, [{ ...cluster, endpoints }]],
    ['of a static ProxyBackend has its host', [backend(), jwt(toBackend)], true, [fixed]],
    ['gets a leading slash', [backend(), jwt(toBackend, 'keys')], false, [fixed]],
    ['comes with cacheDuration', [backend(), jwt(toBackend, '/keys', ', cacheDuration: 1h')], false, [{ ...fixed, cacheMs: 3_600_000 }]],
    [
      'two policies that name one share it, at the shorter cacheDuration',
      [backend(), jwt(toBackend, '/keys', ', cacheDuration: 1h'), jwt(toBackend, 'keys', ', cacheDuration: 10m')],
      false,
      [{ ...fixed, cacheMs: 600_000 }],
    ],
    ['is undefined for a missing backend', [jwt(toBackend)], false, []],
    [
      'MCP authentication of a backend is looked at, too',
      [
        backend(),
        `
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: {name: tools}
spec:
  mcp: {targets: [{name: a, static: {host: mcp.example, port: 80}}]}
  policies: {mcp: {authentication: {issuer: i, jwks: {jwksPath: /keys, backendRef: ${toBackend}}, resourceMetadata: {}}}}`,
      ],
      false,
      [fixed],
    ],
  ])('%s', (_, manifests, isStandalone, expected) => {
    expect(keySetsOf(manifests, isStandalone)).toEqual(expected)
  })

  test('is undefined for a ProxyBackend without a fixed host, which the status names', () => {
    const dynamic = '{apiVersion: proxy.dev/v1alpha1, kind: ProxyBackend, metadata: {name: idp}, spec: {dynamicForwardProxy: {}}}'
    const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: proxy, listeners: [{name: http, port: 80, protocol: HTTP}]}`
    const gatewayClass = '{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: proxy}, spec: {controllerName: proxy.dev/proxy}}'
    const { keySets, statuses } = translate(createSnapshot(objectsOf([dynamic, gatewayClass, gateway, jwt(toBackend)])))
    expect(keySets).toEqual([])
    expect(JSON.stringify(statuses)).toContain('PartiallyValid')
    expect(JSON.stringify(statuses)).toContain('ProxyBackend default/idp has no fixed host; give it spec.static, or name a Service')
  })
})

describe('TLS of a key set', () => {
  const ca = [authority.certificate.trim()]
  const trimmed = (tls: RemoteRequest['tls']): unknown => tls && { ...tls, ...(tls.ca && { ca: tls.ca.map((text) => text.trim()) }) }
  const tls = (body: string): string => `backend: {tls: ${body}}`
  const validation = (body: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: verify}
spec: {targetRefs: [{group: "", kind: Service, name: idp}], validation: {${body}}}`
  test.each<[sentence: string, manifests: string[], expected: unknown]>([
    ['no TLS policy', [service, jwt(toService)], undefined],
    ['a policy on the Service', [service, jwt(toService), policy('x', onService, tls('{sni: a.example}'))], { servername: 'a.example', verify: 'full' }],
    [
      'a policy on another port of it does not count',
      [
        service.replace('[{port: 80}]', '[{name: a, port: 80}, {name: b, port: 81}]'),
        jwt(toService),
        policy('x', onService.replace('idp}', 'idp, sectionName: "81"}'), tls('{sni: a.example}')),
      ],
      undefined,
    ],
    [
      'a policy on its port does',
      [service, jwt(toService), policy('x', onService.replace('idp}', 'idp, sectionName: "80"}'), tls('{sni: a.example}'))],
      { servername: 'a.example', verify: 'full' },
    ],
    [
      'the oldest of two policies wins',
      [service, jwt(toService), policy('xx', onService, tls('{sni: younger}')), policy('x', onService, tls('{sni: older}'))],
      { servername: 'older', verify: 'full' },
    ],
    [
      'the policies of the backend itself win over those on it',
      [backend(', policies: {tls: {insecureSkipVerify: Hostname}}'), jwt(toBackend), policy('x', onBackend, tls('{sni: a}'))],
      { verify: 'chain' },
    ],
    [
      'a CA, a client certificate and names',
      [
        backend(),
        configMap,
        secret,
        jwt(toBackend),
        policy('x', onBackend, tls('{caCertificateRefs: [{name: ca}], mtlsCertificateRef: [{name: client}], verifySubjectAltNames: [b]}')),
      ],
      {
        ca,
        certificate: leaf.certificate,
        privateKey: leaf.privateKey,
        subjectAltNames: [{ type: 'Hostname', value: 'b' }],
        verify: 'full',
      },
    ],
    [
      'a BackendTLSPolicy',
      [service, configMap, jwt(toService), validation('hostname: c.example, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]')],
      { servername: 'c.example', ca, verify: 'full' },
    ],
    [
      'a ProxyPolicy wins over it',
      [service, jwt(toService), validation('hostname: c.example, wellKnownCACertificates: System'), policy('x', onService, tls('{insecureSkipVerify: All}'))],
      { verify: 'none' },
    ],
  ])('%s', (_, manifests, expected) => {
    const [request] = keySetsOf(manifests) ?? []
    expect(request?.id).toMatch(/default\/idp/)
    expect(trimmed(request?.tls)).toEqual(expected)
  })

  test.each<[sentence: string, manifests: string[]]>([
    ['its CA is missing', [policy('x', onService, tls('{caCertificateRefs: [{name: ca}]}'))]],
    ['its client certificate is missing', [policy('x', onService, tls('{mtlsCertificateRef: [{name: client}]}'))]],
    ['the CA of a BackendTLSPolicy is missing', [validation('hostname: c, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]')]],
  ])('the set is not fetched while %s', (_, manifests) => {
    expect(keySetsOf([service, jwt(toService), ...manifests])).toEqual([])
  })
})
