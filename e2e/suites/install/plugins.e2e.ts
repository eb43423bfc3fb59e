import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { apply, conditionOf, get, installProxy, kubectl, operatorPods, read, startQuickstart, SYSTEM, until, untilStatus } from './cluster.ts'
import { startRegistry, type ClusterRegistry } from './registry.ts'

/** Plugins in the pods of data planes: of a ConfigMap and of an image, in each place where they can run, and without the permission that they need. */

const NAMESPACE = 'plugins'
let url: string
let registry: ClusterRegistry

beforeAll(async () => {
  await installProxy()
  url = `http://${await startQuickstart(NAMESPACE)}/`
  registry = await startRegistry(NAMESPACE)
})
afterAll(async () => {
  await kubectl('delete', 'namespace', NAMESPACE, '--wait=false')
  await kubectl('-n', SYSTEM, 'delete', 'configmap/registry-ca', 'secret/registry-credentials', '--ignore-not-found')
})

const codeOf = (version: string): string =>
  `export default { setup: () => ({ async request(c: any, next: () => Promise<void>) { c.req.raw.headers.set('x-greeting', '${version}'); await next() } }) }\n`

const sourceOf = (version: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'greeting' },
  data: { 'index.ts': codeOf(version) },
})

const policyOf = (plugin: object): object => ({
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyPolicy',
  metadata: { name: 'greeting' },
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'echo' }],
    traffic: { plugins: [{ name: 'greeting', source: { configMapRef: { name: 'greeting', key: 'index.ts' } }, limits: { timeout: '50s' }, ...plugin }] },
  },
})

/** The header that the upstream received from the plugin. */
async function greeting(): Promise<string | undefined> {
  const { status, body } = await get(url)
  return status === 200 ? (JSON.parse(body) as { headers: Record<string, string> }).headers['x-greeting'] : undefined
}
const untilGreeting = (version: string): Promise<void> => until(`the upstream receives ${version}`, async () => (await greeting()) === version)
const acceptance = async (): Promise<{ reason: string; message: string }> => {
  const policy = await read('proxypolicy', 'greeting', NAMESPACE)
  const { reason = '', message = '' } = conditionOf({ ...policy, status: policy?.status?.ancestors?.[0] } as typeof policy, 'Accepted') ?? {}
  return { reason, message }
}

test('a plugin of a ConfigMap runs in a worker thread and in a process, and its changes are applied', async () => {
  await apply(NAMESPACE, sourceOf('one'), policyOf({}))
  await untilGreeting('one')
  await apply(NAMESPACE, sourceOf('two'))
  await untilGreeting('two')
  await apply(NAMESPACE, sourceOf('three'), policyOf({ isolation: 'Process' }))
  await untilGreeting('three')
  expect((await acceptance()).reason).not.toBe('PartiallyValid')
})

test('a plugin that may not run in process fails, and its policy names the field, until ProxyParameters permit it', async () => {
  await apply(NAMESPACE, policyOf({ isolation: 'InProcess' }))
  await until('the policy names the permission', async () => (await acceptance()).message.includes('plugins.inProcess'))
  expect((await acceptance()).reason).toBe('PartiallyValid')
  await untilStatus(url, 500)
  const parametersRef = { group: 'proxy.dev', kind: 'ProxyParameters', name: 'trusting' }
  await apply(
    NAMESPACE,
    { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name: 'trusting' }, spec: { plugins: { inProcess: true } } },
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'web' },
      spec: { gatewayClassName: 'proxy', infrastructure: { parametersRef }, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
    },
  )
  await untilGreeting('three')
  await until('the policy is accepted', async () => (await acceptance()).reason !== 'PartiallyValid')
})

test('an image that ProxyParameters do not list is not fetched, and its plugin fails', async () => {
  const image = `registry.example/plugins@sha256:${'a'.repeat(64)}`
  await apply(NAMESPACE, policyOf({ source: { image, path: 'index.ts' } }))
  await until('the policy names the permission', async () => (await acceptance()).message.includes('plugins.images'))
  expect((await acceptance()).reason).toBe('PartiallyValid')
  await untilStatus(url, 500)
})

test('a plugin of an image runs if the operator trusts its registry, has credentials and permission', async () => {
  // A retry of this test starts without the values, and with an image that the operator has not stored.
  await installProxy()
  const attempt = crypto.randomUUID()
  const image = await registry.push('team/greeting', 'index.ts', codeOf(`one ${attempt}`))
  const untilMessage = (pattern: RegExp): Promise<void> => until(`the status matches ${pattern}`, async () => pattern.test((await acceptance()).message))
  await apply(NAMESPACE, policyOf({ source: { image, path: 'index.ts' } }), {
    apiVersion: 'proxy.dev/v1alpha1',
    kind: 'ProxyParameters',
    metadata: { name: 'trusting' },
    spec: { plugins: { images: [`${registry.host}/team`] } },
  })
  await untilMessage(/the server cannot be reached; the log of the operator has the cause \[PX1344\]/)
  await untilStatus(url, 500)

  const secretOf = (password?: string): object => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'registry-credentials' },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': registry.credentials(password) },
  })
  await apply(SYSTEM, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'registry-ca' }, data: { 'ca.crt': registry.ca } }, secretOf('wrong'))
  await installProxy({ controller: { pluginRegistries: { ca: { configMapName: 'registry-ca' }, credentialsSecretName: 'registry-credentials' } } })
  await untilMessage(/the registry does not accept the credentials of the operator \[PX1344\]/)

  const pods = (await operatorPods()).map(({ metadata }) => metadata.name)
  await apply(SYSTEM, secretOf())
  await untilGreeting(`one ${attempt}`)
  await until('the policy is accepted', async () => (await acceptance()).reason !== 'PartiallyValid')
  // Each thread of the data plane loads its own: without a good version, the next one would be an error.
  await until('every thread has the version', async () => {
    for (let n = 0; n < 30; n++) if ((await greeting()) !== `one ${attempt}`) return false
    return true
  })
  // Without a restart of the operator.
  expect((await operatorPods()).map(({ metadata }) => metadata.name)).toEqual(pods)

  await apply(NAMESPACE, policyOf({ source: { image: `${registry.host}/team/greeting@sha256:${'b'.repeat(64)}`, path: 'index.ts' } }))
  await untilMessage(/registry\.plugins\.svc answered 404 \[PX1344\]/)
  expect(await greeting()).toBe(`one ${attempt}`)
  await apply(NAMESPACE, policyOf({ source: { image, path: 'other.ts' } }))
  await untilMessage(/the image has no file other\.ts \[PX1344\]/)
  expect(await greeting()).toBe(`one ${attempt}`)

  const second = await registry.push('team/greeting', 'index.ts', codeOf(`two ${attempt}`))
  await apply(NAMESPACE, policyOf({ source: { image: second, path: 'index.ts' } }))
  await untilGreeting(`two ${attempt}`)
})
