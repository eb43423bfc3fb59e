import { describe, expect, test } from '@jest/globals'
import { readChunk } from '../../source/document.ts'
import { createSnapshot } from '../../source/snapshot.ts'
import { translate } from '../translate.ts'
import type { Translation } from '../../model/translation.ts'

const service = `{apiVersion: v1, kind: Service, metadata: {name: api, annotations: {proxy.dev/endpoints: "127.0.0.1:8080"}}, spec: {ports: [{port: 80}]}}`
const backend = (targets: string, more = ''): string =>
  `{apiVersion: proxy.dev/v1alpha1, kind: ProxyBackend, metadata: {name: apis}, spec: {mcp: {targets: [${targets}]}${more}}}`
const atService = (openapi: string): string => `{name: t, openapi: {backendRef: {name: api, port: 80}, ${openapi}}}`
const atHost = (openapi: string, policies = ''): string => `{name: t, static: {host: api.example, port: 443${policies}}, openapi: {${openapi}}}`
const policy = (name: string, target: string, sni: string): string =>
  `{apiVersion: proxy.dev/v1alpha1, kind: ProxyPolicy, metadata: {name: ${name}}, spec: {targetRefs: [${target}], backend: {tls: {sni: ${sni}}}}}`
const onBackend = '{group: proxy.dev, kind: ProxyBackend, name: apis}'
const onTarget = '{group: proxy.dev, kind: ProxyBackend, name: apis, sectionName: t}'
const onService = '{group: "", kind: Service, name: api}'

function documentsOf(manifests: readonly string[], isStandalone = false): Translation['documents'] {
  const objects = manifests.flatMap((text) => readChunk(text).items.flatMap(({ object }) => object ?? []))
  return translate(createSnapshot(objects), { isStandalone }).documents
}

describe('the request for a document', () => {
  const fixed = { host: 'api.example', port: 443, path: '/openapi.json' }
  test.each<[sentence: string, manifests: string[], expected: object]>([
    [
      'has the host, port, path and query of a URL',
      [backend(atHost('url: "http://docs.example:8080/a?b=c"'))],
      { url: { host: 'docs.example', port: 8080, path: '/a?b=c' } },
    ],
    [
      'verifies the certificate of an https URL',
      [backend(atHost('url: "https://docs.example/a"'))],
      { url: { host: 'docs.example', port: 443, path: '/a' }, tls: { verify: 'full' } },
    ],
    ['has an IPv6 address without brackets', [backend(atHost('url: "http://[2001:db8::1]/a"'))], { url: { host: '2001:db8::1', port: 80, path: '/a' } }],
    [
      'does not use TLS settings of the target for another URL',
      [backend(atHost('url: "http://docs.example/a"', ', policies: {tls: {}}'))],
      { url: { host: 'docs.example', port: 80, path: '/a' } },
    ],
    ['goes to the static host for a path', [backend(atHost('url: /openapi.json'))], { url: fixed }],
    [
      'goes to the Service for a path',
      [service, backend(atService('url: /openapi.json'))],
      { url: { ...fixed, host: 'api.default.svc.cluster.local', port: 80 } },
    ],
    [
      'has the TLS settings of the policies on the Service',
      [service, backend(atService('url: /a')), policy('p', onService, 'x')],
      { tls: { servername: 'x', verify: 'full' } },
    ],
    [
      'has the TLS settings of the target',
      [backend(atHost('url: /openapi.json', ', policies: {tls: {sni: x}}'), ', policies: {tls: {sni: y}}')],
      { url: fixed, tls: { servername: 'x', verify: 'full' } },
    ],
    [
      'has the TLS settings of the backend',
      [backend(atHost('url: /a'), ', policies: {tls: {sni: y}}'), policy('p', onTarget, 'z')],
      { tls: { servername: 'y', verify: 'full' } },
    ],
    [
      'has the TLS settings of a policy on the target',
      [backend(atHost('url: /a')), policy('a', onBackend, 'w'), policy('b', onTarget, 'z')],
      { tls: { servername: 'z', verify: 'full' } },
    ],
    [
      'has the TLS settings of a policy on the backend',
      [backend(atHost('url: /a')), policy('a', onBackend, 'w')],
      { tls: { servername: 'w', verify: 'full' } },
    ],
    ['has the interval', [backend(atHost('url: /a, refreshInterval: 1h'))], { cacheMs: 3_600_000 }],
    ['has an interval of five minutes by default', [backend(atHost('url: /a'))], { cacheMs: 300_000 }],
  ])('%s', (_, manifests, expected) => expect(documentsOf(manifests)).toEqual([expect.objectContaining(expected)]))

  test('has no TLS without TLS settings', () => expect(documentsOf([backend(atHost('url: /a'))])?.[0]).not.toHaveProperty('tls'))

  test('has the endpoints of the Service in directory mode', () =>
    expect(documentsOf([service, backend(atService('url: /a'))], true)?.[0]?.endpoints).toEqual([{ address: '127.0.0.1', port: 8080 }]))

  test.each([
    ['TLS settings that do not resolve', [backend(atHost('url: /a', ', policies: {tls: {caCertificateRefs: [{name: missing}]}}'))]],
    ['a Service that does not exist', [backend(atService('url: /a'))]],
    ['credentials in the URL', [backend(atHost('url: "http://a:b@docs.example/a"'))]],
    ['a document in a ConfigMap', [backend(atHost('configMapRef: {name: a, key: b}'))]],
  ])('does not exist with %s', (_, manifests) => expect(documentsOf(manifests)).toEqual([]))

  test('is shared by targets with one URL, at the shorter interval', () => {
    const url = 'url: "http://docs.example/a"'
    const other = atHost(`${url}, refreshInterval: 1m`).replace('name: t', 'name: u')
    expect(documentsOf([backend(`${atHost(url)}, ${other}`)])).toEqual([expect.objectContaining({ cacheMs: 60_000 })])
  })
})
