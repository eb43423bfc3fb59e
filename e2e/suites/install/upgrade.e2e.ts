import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import {
  apply,
  conditionOf,
  gatewayPods,
  get,
  helm,
  installProxy,
  kubectl,
  localcluster,
  read,
  RELEASE,
  run,
  startQuickstart,
  SYSTEM,
  until,
} from './cluster.ts'
import { startLoad } from './load.ts'

const NAMESPACE = 'upgrade'
let directory: string
let url: string

const policy = {
  apiVersion: 'proxy.dev/v1alpha1',
  kind: 'ProxyPolicy',
  metadata: { name: 'marked' },
  spec: {
    targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'echo' }],
    traffic: { headerModifiers: { request: { set: [{ name: 'x-marked', value: 'yes' }] } } },
  },
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'previous-'))
  await run('e2e/suites/install/previous', [directory])
  for (const image of ['controller', 'proxy']) await localcluster('load', join(directory, `dist/images/${image}.tar`))
  await installProxy({ image: { tag: 'previous' } }, { charts: join(directory, 'charts') })
  url = `http://${await startQuickstart(NAMESPACE)}/`
  await apply(NAMESPACE, policy)
  await until('the policy is in force', isMarked)
})
// The next file installs this version again.
afterAll(async () => {
  await kubectl('delete', 'namespace', NAMESPACE, '--ignore-not-found', '--wait=false')
  await rm(directory, { recursive: true, force: true })
})

const isMarked = async (): Promise<boolean> => (await get(url)).body.includes('"x-marked":"yes"')
/** Waits until the pods of the data plane run images with this tag and no other pods are left. */
async function untilTag(tag: string): Promise<void> {
  await until(`all pods of the data plane have the tag ${tag}`, async () => {
    const pods = await gatewayPods(NAMESPACE, 'web')
    return pods.length > 0 && pods.every(({ spec, status }) => spec.containers[0].image.endsWith(`:${tag}`) && status.containerStatuses?.[0].ready === true)
  })
}
const currentTag = async (): Promise<string> =>
  String((await read('deployment', 'proxy', SYSTEM))?.spec.template.spec.containers[0].image)
    .split(':')
    .at(-1) ?? ''

/** The log level of a data plane as proxyctl of a version reads it from a pod. */
const readLevel = (checkout = '.'): Promise<string> =>
  run(process.execPath, [join(checkout, 'operator/proxyctl/main.ts'), 'log', 'level', '--gateway', `${NAMESPACE}/web`])

test('an upgrade from the previous release replaces operator and data planes without a failed request', async () => {
  await untilTag('previous')
  expect(await readLevel()).toBe('info\n')
  const load = startLoad(url)
  await installProxy()
  expect(await currentTag()).not.toBe('previous')
  await untilTag(await currentTag())
  const { requests, failures } = await load.stop()
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(100)
  expect(await isMarked()).toBe(true)
  expect(conditionOf(await read('httproute', 'echo', NAMESPACE), 'Accepted')).toMatchObject({ status: 'True' })
  expect(conditionOf(await read('gateway', 'web', NAMESPACE), 'Programmed')).toMatchObject({ status: 'True' })
  expect(await readLevel()).toBe('info\n')
  // A release with tokens sends them; the one before shows the response, which says how to read the token.
  expect(await readLevel(directory).catch(String)).toMatch(/info|the admin endpoint needs a token.*web-admin-token/)
})

test('a rollback to the previous release fails no request either', async () => {
  const load = startLoad(url)
  await helm('-n', SYSTEM, 'rollback', RELEASE, '--wait', '--timeout', '600s')
  expect(await currentTag()).toBe('previous')
  await untilTag('previous')
  const { requests, failures } = await load.stop()
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(100)
  expect(await isMarked()).toBe(true)
  // This version sends the token, and data planes without it accept it.
  expect(await readLevel()).toBe('info\n')
  expect(await readLevel(directory)).toBe('info\n')
})
