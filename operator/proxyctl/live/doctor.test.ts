import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import packageJson from '../../../package.json' with { type: 'json' }
import { makeCertificate } from '../../../e2e/harness/certificates.ts'
import { main } from '../proxyctl.ts'

const GATEWAY_API = '/apis/gateway.networking.k8s.io'
const GATEWAYS_CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gateways.gateway.networking.k8s.io'

let directory: string
let server: Server
let kubeconfig: string
/** Answers of the API server by path; a number is a status, and no entry 404. */
let answers: Record<string, object | number>

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'doctor-'))
  server = createServer(({ url = '' }, response) => {
    const answer = answers[url.split('?', 1)[0] ?? ''] ?? 404
    response.writeHead(typeof answer === 'number' ? answer : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(typeof answer === 'number' ? { kind: 'Status', code: answer } : answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  kubeconfig = join(directory, 'kubeconfig')
  const cluster = { name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'insecure-skip-tls-verify': true } }
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [cluster],
      users: [{ name: 'u', user: { token: 't' } }],
    }),
  )
})
afterAll(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

const deployment = (name: string, version: string, env: string, readyReplicas: number) => ({
  metadata: { name, namespace: 'ns' },
  spec: { replicas: 1, template: { spec: { containers: [{ name: 'proxy', image: `registry.example/x:v${version}`, env: [{ name: env }] }] } } },
  status: { readyReplicas },
})

function secretUntil(days: number): object {
  const { certificate } = makeCertificate({ name: 'shop.example', validDays: days + 0.5 })
  return { data: { 'tls.crt': Buffer.from(certificate).toString('base64') } }
}

beforeEach(() => {
  answers = {
    '/version': { major: '1', minor: '34', gitVersion: 'v1.34.1' },
    [GATEWAY_API]: { versions: [] },
    [GATEWAYS_CRD]: {
      metadata: { annotations: { 'gateway.networking.k8s.io/bundle-version': 'v1.6.3', 'gateway.networking.k8s.io/channel': 'experimental' } },
    },
    '/apis/proxy.dev/v1alpha1': { resources: ['ProxyBackend', 'ProxyPolicy', 'ProxyParameters'].map((kind) => ({ kind })) },
    // Both selectors get this list: the variable tells the operator, and the name of the container data planes.
    '/apis/apps/v1/deployments': { items: [deployment('operator', packageJson.version, 'PROXY_XDS_MODE', 1)] },
    [`${GATEWAY_API}/v1/gatewayclasses`]: { items: [{ metadata: { name: 'proxy' }, spec: { controllerName: 'proxy.dev/proxy' } }] },
    [`${GATEWAY_API}/v1/gateways`]: {
      items: [
        {
          metadata: { name: 'gw', namespace: 'shop' },
          spec: { gatewayClassName: 'proxy', listeners: [{ name: 'https', tls: { certificateRefs: [{ name: 'cert' }] } }] },
          status: { conditions: [{ type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }] },
        },
      ],
    },
    '/api/v1/pods': { items: [] },
    '/api/v1/namespaces/shop': { metadata: { name: 'shop' } },
    '/api/v1/namespaces/shop/secrets/cert': secretUntil(90),
  }
})

async function doctor(...args: string[]) {
  let stdout = ''
  let stderr = ''
  const code = await main(['doctor', '--kubeconfig', kubeconfig, ...args], {
    env: { HOME: directory },
    isTerminal: false,
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
    readInput: () => Promise.resolve(''),
  })
  return { code, stdout, stderr }
}

test('a cluster without a problem has one line for each check, and nothing to do', async () => {
  const { code, stdout } = await doctor()
  expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
    'ok | Kubernetes | v1.34.1',
    'ok | Gateway API | v1.6.3, experimental channel',
    'ok | CRDs | ProxyBackend, ProxyParameters, ProxyPolicy (proxy.dev/v1alpha1)',
    `ok | operator | ns/operator, version ${packageJson.version}`,
    'ok | GatewayClass | proxy',
    `ok | data planes | 1, all of version ${packageJson.version}`,
    'ok | certificates | 1, none expires within 21 days',
    expect.stringMatching(/^ok \| statuses \| \d objects, none with a problem$/),
    '',
  ])
  expect(code).toBe(0)
})

const cases: [string, () => void, RegExp, string, number][] = [
  [
    'an old cluster',
    () => (answers['/version'] = { major: '1', minor: '27+', gitVersion: 'v1.27.3' }),
    /^error +Kubernetes +v1\.27\.3 is older than 1\.29$/m,
    'upgrade the cluster',
    1,
  ],
  [
    'a cluster without Gateway API',
    () => delete answers[GATEWAY_API],
    /^error +Gateway API +its CRDs are not installed$/m,
    'install the CRDs of Gateway API',
    1,
  ],
  [
    'old CRDs of Gateway API',
    () => (answers[GATEWAYS_CRD] = { metadata: { annotations: { 'gateway.networking.k8s.io/bundle-version': 'v1.2.0' } } }),
    /^warning +Gateway API +v1\.2\.0, standard channel: older/m,
    'upgrade the CRDs',
    0,
  ],
  [
    'a missing CRD',
    () => (answers['/apis/proxy.dev/v1alpha1'] = { resources: [{ kind: 'ProxyPolicy' }, { kind: 'ProxyBackend' }] }),
    /^error +CRDs +not installed: ProxyParameters$/m,
    'install the chart proxy-crds',
    1,
  ],
  ['no operator', () => (answers['/apis/apps/v1/deployments'] = { items: [] }), /^error +operator +no Deployment/m, 'install the chart proxy', 1],
  [
    'an operator without a ready pod',
    () => (answers['/apis/apps/v1/deployments'] = { items: [deployment('operator', packageJson.version, 'PROXY_XDS_MODE', 0)] }),
    /^error +operator +ns\/operator.*: no pod is ready$/m,
    'kubectl -n ns describe deployment operator',
    1,
  ],
  [
    'an operator of another version',
    () => (answers['/apis/apps/v1/deployments'] = { items: [deployment('operator', '0.1.0', 'PROXY_XDS_MODE', 1)] }),
    /^warning +operator .*version 0\.1\.0; proxyctl is /m,
    'use proxyctl 0.1.0',
    0,
  ],
  [
    'a data plane of another version',
    () =>
      (answers['/apis/apps/v1/deployments'] = { items: [deployment('operator', packageJson.version, 'PROXY_XDS_MODE', 1), deployment('gw', '0.1.0', 'X', 1)] }),
    /^warning +data planes +ns\/gw has version 0\.1\.0/m,
    'if no rollout is under way',
    0,
  ],
  ['no GatewayClass', () => delete answers[`${GATEWAY_API}/v1/gatewayclasses`], /^error +GatewayClass +none/m, 'the operator creates GatewayClass proxy', 1],
  [
    'an expired certificate',
    () => (answers['/api/v1/namespaces/shop/secrets/cert'] = secretUntil(-3)),
    /^error +certificates +Secret shop\/cert of Gateway shop\/gw expired on \d{4}-\d\d-\d\d$/m,
    'renew the certificate in Secret shop/cert',
    1,
  ],
  [
    'a certificate near its end',
    () => (answers['/api/v1/namespaces/shop/secrets/cert'] = secretUntil(5)),
    /^warning +certificates .* expires in 5 days$/m,
    'renew the certificate',
    0,
  ],
  [
    'Secrets that the user may not read',
    () => (answers['/api/v1/namespaces/shop/secrets/cert'] = 403),
    /^warning +certificates +none can be read$/m,
    'give this user the verb get',
    0,
  ],
  [
    'a bad status',
    () => {
      const route = {
        metadata: { name: 'r', namespace: 'shop' },
        status: {
          parents: [
            {
              controllerName: 'proxy.dev/proxy',
              conditions: [{ type: 'ResolvedRefs', status: 'False', reason: 'BackendNotFound', message: 'Service shop/x does not exist [PX1101]' }],
            },
          ],
        },
      }
      answers[`${GATEWAY_API}/v1/httproutes`] = { items: [route] }
    },
    /^error +statuses +HTTPRoute shop\/r: ResolvedRefs=False BackendNotFound: Service shop\/x does not exist \[PX1101\]$/m,
    'proxyctl explain PX1101 describes cause and fix',
    1,
  ],
]

test.each(cases)('%s is reported, with what to do first', async (_what, change, line, fix, expected) => {
  change()
  const { code, stdout, stderr } = await doctor()
  expect(stderr).toBe('')
  expect(stdout).toMatch(line)
  expect(/^first: (.*)$/m.exec(stdout)?.[1]).toContain(fix)
  expect(code).toBe(expected)
})

test('a cluster that does not respond is one line with the server', async () => {
  const file = join(directory, 'unreachable')
  writeFileSync(
    file,
    JSON.stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1', 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'u', user: {} }],
    }),
  )
  const { code, stderr } = await doctor('--kubeconfig', file)
  expect(code).not.toBe(0)
  expect(stderr).toContain('127.0.0.1:1')
})
