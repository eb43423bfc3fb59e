import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { apply, conditionOf, get, installProxy, kubectl, read, startQuickstart, until, untilStatus } from './cluster.ts'

/** Plugins in the pods of data planes: of a ConfigMap, in each place where they can run, and without the permission that they need. */

const NAMESPACE = 'plugins'
let url: string

beforeAll(async () => {
  await installProxy()
  url = `http://${await startQuickstart(NAMESPACE)}/`
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--wait=false'))

const sourceOf = (version: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'greeting' },
  data: {
    'index.ts': `export default { setup: () => ({ async request(c: any, next: () => Promise<void>) { c.req.raw.headers.set('x-greeting', '${version}'); await next() } }) }\n`,
  },
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
