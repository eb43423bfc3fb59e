import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { get, installProxy, kubectl, run, startQuickstart } from './cluster.ts'

/** proxyctl on a cluster: statuses from the API server, and the data plane of a pod through a forwarded port. */

const NAMESPACE = 'proxyctl'
let address: string
const proxyctl = (...args: string[]): Promise<string> => run(process.execPath, ['operator/proxyctl/main.ts', ...args])

beforeAll(async () => {
  await installProxy()
  address = await startQuickstart(NAMESPACE)
})
afterAll(() => kubectl('delete', 'namespace', NAMESPACE, '--wait=false'))

test('status lists the objects that the operator manages', async () => {
  const text = await proxyctl('status', '-n', NAMESPACE)
  expect(text).toMatch(new RegExp(`^ok +Gateway +${NAMESPACE}/web$`, 'm'))
  expect(text).toMatch(/^ok +GatewayClass +proxy$/m)
  expect(text).toMatch(new RegExp(`^ok +Deployment +${NAMESPACE}/web$`, 'm'))
})

test('explain and log level query a pod of the Gateway', async () => {
  expect(await proxyctl('explain', `${NAMESPACE}/echo`, '--gateway', `${NAMESPACE}/web`)).toMatch(new RegExp(`on listener ${NAMESPACE}/web\\.`))
  expect(await proxyctl('log', 'level', '--gateway', `${NAMESPACE}/web`)).toBe('info\n')
})

test('the only Gateway of a namespace and that of a route are found without --gateway', async () => {
  expect(await proxyctl('explain', `${NAMESPACE}/echo`)).toMatch(new RegExp(`on listener ${NAMESPACE}/web\\.`))
  expect(await proxyctl('log', 'level', '-n', NAMESPACE)).toBe('info\n')
  await expect(proxyctl('log', 'level', '--gateway', `${NAMESPACE}/nope`)).rejects.toThrow(`Gateway ${NAMESPACE}/nope does not exist`)
  await expect(proxyctl('status', '-n', 'nope')).rejects.toThrow('namespace nope does not exist')
})

test('config diff shows no difference between the manifests and the data plane that runs them', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proxyctl-'))
  try {
    await copyFile(join(import.meta.dirname, 'quickstart.yaml'), join(folder, 'quickstart.yaml'))
    expect(await proxyctl('config', 'diff', folder, '-n', NAMESPACE, '--gateway', `${NAMESPACE}/web`)).toBe('no difference\n')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('trace sends a request and shows its steps', async () => {
  expect((await get(`http://${address}/`)).status).toBe(200)
  const text = await proxyctl('trace', `http://${address}/`, '--gateway', `${NAMESPACE}/web`)
  expect(text).toMatch(new RegExp(`route +${NAMESPACE}/echo`))
  expect(text).toMatch(/answer +200 +by=upstream\n200\n$/)
})
