import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { startGateway, type Gateway } from '../../harness/program/gateway.ts'
import type { ConditionEvent } from '../../harness/program/operator.ts'
import { startImageRegistry, type ImageRegistry } from '../../harness/upstream/registry.ts'
import { waitUntil } from '../../harness/wait.ts'

let registry: ImageRegistry
let gateway: Gateway
beforeAll(async () => {
  registry = await startImageRegistry()
  gateway = await startGateway({ manifests: () => [] })
}, 120_000)
afterAll(async () => {
  await gateway?.stop()
  await registry?.close()
})

const pluginOf = (version: string): string =>
  `export default { setup: () => ({ async request(c: any, next: () => Promise<void>) { await next(); c.header('x-version', '${version}') } }) }\n`

/** @param images that ProxyParameters permit */
const manifests = (image: string, path: string, images: readonly string[]): object[] => [
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name: 'proxy' },
    spec: { controllerName: 'proxy.dev/proxy', parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'images', namespace: 'default' } },
  },
  { apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name: 'images' }, spec: { plugins: { images } } },
  {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'app' },
    spec: { parentRefs: [{ name: 'gw' }], rules: [{}] },
  },
  {
    apiVersion: 'proxy.dev/v1alpha1',
    kind: 'ProxyPolicy',
    metadata: { name: 'plugins' },
    spec: {
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'app' }],
      traffic: { directResponse: { status: 200 }, plugins: [{ name: 'image', source: { image, path }, limits: { timeout: '50s' } }] },
    },
  },
]

const statusAndVersion = async (): Promise<string> => {
  const { status, headers } = await send({ port: gateway.port })
  return `${status} ${String(headers['x-version'])}`
}
const untilResponse = (expected: string): Promise<void> => waitUntil(expected, async () => (await statusAndVersion()) === expected)
const lastProblem = (): string => {
  const { events } = gateway.operator
  return events.findLast((event): event is ConditionEvent => event.event === 'condition' && event.kind === 'ProxyPolicy')?.message ?? ''
}

test('a plugin of an image runs where it is permitted, an edit loses no request, and a withdrawn permission ends it', async () => {
  const first = registry.push('team/plugins', 'index.ts', pluginOf('one'))
  const second = registry.push('team/plugins', 'index.ts', pluginOf('two'))

  await gateway.apply(manifests(first, 'index.ts', [`${registry.host}/teams`]))
  await untilResponse('500 undefined')
  expect(lastProblem()).toMatch(/source\.image: .* does not permit the image .*\[PX1343\]/)

  await gateway.apply(manifests(first, '/index.ts', [`${registry.host}/team`]))
  await untilResponse('200 one')

  await gateway.apply(manifests(first, 'other.ts', [`${registry.host}/team`]))
  await waitUntil('the status', () => /has not been fetched yet: the image has no file other\.ts \[PX1344\]/.test(lastProblem()))
  expect(await statusAndVersion()).toBe('200 one')

  let isOver = false
  const seen = new Set<string>()
  const load = (async () => {
    while (!isOver) seen.add(await statusAndVersion())
  })()
  try {
    await gateway.apply(manifests(second, 'index.ts', [`${registry.host}/team`]))
    await untilResponse('200 two')
  } finally {
    isOver = true
    await load
  }
  expect([...seen].filter((each) => each !== '200 one' && each !== '200 two')).toEqual([])

  await gateway.apply(manifests(second, 'index.ts', []))
  await untilResponse('500 undefined')
}, 240_000)
