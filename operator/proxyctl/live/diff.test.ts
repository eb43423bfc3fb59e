import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { collections, startFakeApi, type FakeApi, type StoredObject } from '../../kube/testing.ts'
import { main } from '../proxyctl.ts'

const GATEWAYS = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: shop }
spec: { gatewayClassName: proxy, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: other, namespace: shop }
spec: { gatewayClassName: proxy, listeners: [{ name: http, port: 80, protocol: HTTP }] }
`
const SERVICES = `
apiVersion: v1
kind: Service
metadata: { name: blue, namespace: shop }
spec: { clusterIP: 10.0.0.1, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Service
metadata: { name: green, namespace: shop }
spec: { clusterIP: 10.0.0.2, ports: [{ port: 80, targetPort: 8080 }] }
`
const route = (backend: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: cart, namespace: shop }
spec: { parentRefs: [{ name: web }], rules: [{ backendRefs: [{ name: ${backend}, port: 80 }] }] }
`
const llm = (key: string): string => `
apiVersion: v1
kind: Secret
metadata: { name: key, namespace: shop }
stringData: { Authorization: ${key} }
---
apiVersion: proxy.dev/v1alpha1
kind: ProxyBackend
metadata: { name: models, namespace: shop }
spec:
  ai: { provider: { anthropic: { model: claude } } }
  policies: { auth: { secretRef: { name: key } } }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: models, namespace: shop }
spec: { parentRefs: [{ name: web }], rules: [{ backendRefs: [{ group: proxy.dev, kind: ProxyBackend, name: models }] }] }
`
const paths: Readonly<Record<string, string>> = {
  GatewayClass: collections.gatewayClasses,
  Gateway: collections.gateways,
  HTTPRoute: collections.httpRoutes,
  Service: collections.services,
  Secret: collections.secrets,
  ProxyBackend: '/apis/proxy.dev/v1alpha1/proxybackends',
  ProxyParameters: collections.proxyParameters,
  ProxyPolicy: collections.proxyPolicies,
}

let directory: string
let kubeconfig: string
let api: FakeApi
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'diff-'))
})
afterAll(() => rmSync(directory, { recursive: true }))
afterEach(() => api.close())

beforeEach(async () => {
  api = await startFakeApi({ install: Object.values(paths) })
  kubeconfig = join(directory, 'kubeconfig')
  writeFileSync(kubeconfig, api.kubeconfig)
  apply('{ apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: { name: proxy }, spec: { controllerName: proxy.dev/proxy } }')
  for (const each of [GATEWAYS, SERVICES, route('blue')]) apply(each)
})

function apply(text: string): void {
  for (const document of parseAllDocuments(text)) {
    const { stringData, ...object } = document.toJS() as StoredObject & { stringData?: Record<string, string> }
    const data = Object.fromEntries(Object.entries(stringData ?? {}).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))
    object.metadata['creationTimestamp'] ??= '2026-01-01T00:00:00Z'
    api.put(paths[object.kind ?? ''] ?? '', { ...object, ...(stringData && { data }) })
  }
}

async function diff(manifests: string, ...more: string[]) {
  let [stdout, stderr] = ['', '']
  const code = await main(['diff', '--kubeconfig', kubeconfig, '-f', '-', ...more], {
    env: { HOME: directory },
    isTerminal: false,
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
    readInput: () => Promise.resolve(manifests),
  })
  return { code, stdout, stderr }
}

test('manifests as the cluster has them are no difference, with the fields and ages that the API server adds', async () => {
  apply(llm('sk-secret-1'))
  expect(await diff(GATEWAYS + '---' + SERVICES.replaceAll(/clusterIP: \S+ /g, '') + '---' + route('blue') + '---' + llm('sk-secret-1'))).toEqual({
    code: 0,
    stdout: 'no difference\n',
    stderr: '',
  })
})

test('a changed route is a difference of its Gateway alone, under its own name, with exit status 1', async () => {
  const { code, stdout } = await diff(route('green'))
  expect(code).toBe(1)
  expect(stdout).toMatch(/^Gateway shop\/web\n~ HTTPRoute shop\/cart, rule 0\n/)
  expect(stdout).toMatch(/^- +service: shop\/blue$/m)
  expect(stdout).toMatch(/^\+ +service: shop\/green$/m)
  expect(stdout).toMatch(/^- Service shop\/blue$/m)
  expect(stdout).not.toContain('shop/other')
  expect(stdout).not.toContain('creationTimestamp')
})

test('nothing is written to the cluster', async () => {
  await diff(route('green'))
  expect(api.requests.filter((request) => !request.startsWith('GET '))).toEqual([])
})

test('a new object counts as the youngest: it takes nothing from an older policy', async () => {
  const policy = (name: string, request: string): string => `
apiVersion: proxy.dev/v1alpha1
kind: ProxyPolicy
metadata: { name: ${name}, namespace: shop }
spec: { targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart }], traffic: { timeouts: { request: ${request} } } }
`
  apply(policy('older', '5s'))
  const { stdout } = await diff(policy('added', '9s'))
  expect(stdout).toMatch(/^\+ ProxyPolicy shop\/added for HTTPRoute shop\/cart$/m)
  expect(stdout).toMatch(/^new problem: ProxyPolicy shop\/added: .*older/m)
})

describe('problems', () => {
  test('that statuses would report are listed, and those that are solved', async () => {
    const broken = await diff(route('gone'))
    expect(broken.stdout).toMatch(/^new problem: HTTPRoute shop\/cart: ResolvedRefs: BackendNotFound: Service not found: shop\/gone \[PX1207\]$/m)
    apply(route('gone'))
    const mended = await diff(route('green'))
    expect(mended.stdout).toMatch(/^solved: HTTPRoute shop\/cart: ResolvedRefs: BackendNotFound: /m)
  })

  test('in the manifests, for which the API server would reject them, are a failure', async () => {
    const { code, stdout, stderr } = await diff(route('green').replace('backendRefs', 'backendRef'))
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/stdin:5:\d+: spec\.rules\[0\]\.backendRef: unknown field; did you mean backendRefs\?/)
  })
})

describe('credentials', () => {
  test.each(['text', 'json', 'yaml'])('that differ are reported without their values (-o %s)', async (format) => {
    apply(llm('sk-secret-old'))
    const { code, stdout } = await diff(llm('sk-secret-new'), '-o', format)
    expect(code).toBe(1)
    expect(stdout).toContain('Secret shop/key')
    expect(stdout).not.toMatch(/sk-secret|c2stc2VjcmV0/)
  })

  test('inline in a backend are redacted, and providers have their real names', async () => {
    const { stdout } = await diff(llm('x').replace('secretRef: { name: key }', 'key: sk-inline-secret'))
    expect(stdout).toMatch(/^\+ ProxyBackend shop\/models$/m)
    expect(stdout).toMatch(/^\+ +anthropic:$/m)
    expect(stdout).not.toMatch(/sk-inline|providerC/)
  })
})

test('a kind that the user may not list is named, and what is readable is compared', async () => {
  api.fail('GET', collections.secrets, 403)
  const { code, stdout } = await diff(route('green'))
  expect(code).toBe(1)
  expect(stdout).toMatch(/^~ HTTPRoute shop\/cart, rule 0$/m)
  expect(stdout).toMatch(/^note: you may not list Secret in all namespaces/m)
})

test('a cluster that does not respond, and files that do not exist, have exit status 2', async () => {
  const missing = await main(['diff', '--kubeconfig', kubeconfig, '-f', join(directory, 'none.yaml')], {
    env: {},
    isTerminal: false,
    write: () => undefined,
    writeError: (text) => expect(text).toMatch(/none\.yaml: no such file or directory \[PX6009\]$/m),
    readInput: () => Promise.resolve(''),
  })
  expect(missing).toBe(2)
  await api.close()
  const { code, stderr } = await diff(route('green'))
  expect(code).toBe(2)
  expect(stderr).toMatch(/the API server of .* cannot be reached/)
  api = await startFakeApi()
})

test('ProxyParameters name the Gateways whose pods may be replaced', async () => {
  apply(
    GATEWAYS.replace(
      'gatewayClassName: proxy',
      'gatewayClassName: proxy, infrastructure: { parametersRef: { group: proxy.dev, kind: ProxyParameters, name: fast } }',
    ),
  )
  const { stdout } = await diff(
    '{ apiVersion: proxy.dev/v1alpha1, kind: ProxyParameters, metadata: { name: fast, namespace: shop }, spec: { logging: { format: json } } }',
  )
  expect(stdout).toMatch(/^note: ProxyParameters shop\/fast changes the objects of Gateway shop\/web, whose pods may be replaced$/m)
})
