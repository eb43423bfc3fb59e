import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Overview } from '#api/management/overview.ts'
import type { Series } from '#api/management/stats.ts'
import { waitUntil } from '../../harness/wait.ts'
import { updateConsole } from '../../../images/console.ts'
import { startBrowser } from '../browser/browser.ts'
import { DIST, openPage } from '../console/fixture.ts'
import { apply, get, installProxy, kubectl, run, startQuickstart, until } from './cluster.ts'

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

test('doctor finds nothing wrong with a cluster that serves', async () => {
  const text = await proxyctl('doctor', '-n', NAMESPACE)
  for (const check of ['Kubernetes +v1\\.', 'Gateway API +v1\\.6\\.', 'CRDs ', 'operator ', 'GatewayClass +.*proxy', 'statuses '])
    expect(text).toMatch(new RegExp(`^ok +${check}`, 'm'))
  expect(text).not.toMatch(/^error/m)
})

test('explain and log level query a pod of the Gateway', async () => {
  expect(await proxyctl('explain', `${NAMESPACE}/echo`, '--gateway', `${NAMESPACE}/web`)).toMatch(new RegExp(`on listener ${NAMESPACE}/web\\.`))
  expect(await proxyctl('log', 'level', '--gateway', `${NAMESPACE}/web`)).toBe('info\n')
})

/** Statuses of requests that a program in the pod of the Gateway sends to its admin port. */
const askInPod = async (headers: string, ...requests: string[]): Promise<number[]> => {
  const script = `const headers = ${headers}
const ask = async (line) => { const [method, path] = line.split(' '); return (await fetch('http://127.0.0.1:15000' + path, { method, headers })).status }
console.log(JSON.stringify(await Promise.all(${JSON.stringify(requests)}.map(ask))))`
  return JSON.parse(await kubectl('-n', NAMESPACE, 'exec', 'deployment/web', '--', 'node', '--input-type=module', '-e', script)) as number[]
}

test('a program that reaches the admin port of a pod needs the token', async () => {
  const requests = ['GET /config_dump', 'POST /logging?level=debug', 'GET /api/v1/overview', 'POST /quitquitquit', 'GET /nothing']
  expect(await askInPod('{}', ...requests)).toEqual(requests.map(() => 401))
  expect(await askInPod(`{ authorization: 'Bearer ${'0'.repeat(64)}' }`, ...requests)).toEqual(requests.map(() => 401))
  expect(await askInPod('{ authorization: `Bearer ${process.env.ADMIN_TOKEN}` }', 'GET /config_dump', 'GET /api/v1/overview')).toEqual([200, 200])
  expect(await proxyctl('log', 'level', '--gateway', `${NAMESPACE}/web`)).toBe('info\n')
})

test('a user of proxyctl needs the verb get on the Secret, and no other permission on Secrets', async () => {
  const rule = (apiGroup: string, resources: string[], verbs: string[], more: object = {}) => ({ apiGroups: [apiGroup], resources, verbs, ...more })
  const role = (...rules: object[]) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'reader' }, rules })
  const rules = [rule('', ['pods'], ['get', 'list']), rule('', ['pods/portforward'], ['create', 'get'])]
  await apply(NAMESPACE, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader' } }, role(...rules), {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'reader' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    subjects: [{ kind: 'ServiceAccount', name: 'reader' }],
  })
  const token = (await kubectl('-n', NAMESPACE, 'create', 'token', 'reader')).trim()
  const config = JSON.parse(await kubectl('config', 'view', '--raw', '--minify', '-o', 'json')) as { users: [{ user: object }] }
  config.users[0].user = { token }
  const folder = await mkdtemp(join(tmpdir(), 'reader-'))
  try {
    const kubeconfig = join(folder, 'config')
    await writeFile(kubeconfig, JSON.stringify(config))
    const level = () => proxyctl('log', 'level', '--gateway', `${NAMESPACE}/web`, '--kubeconfig', kubeconfig)
    await expect(level()).rejects.toThrow(`the user of the kubeconfig may not read Secret ${NAMESPACE}/web-admin-token: verb get is missing`)
    await apply(NAMESPACE, role(...rules, rule('', ['secrets'], ['get'], { resourceNames: ['web-admin-token'] })))
    // The API server reads roles from a cache.
    await until('the permission is in force', async () => (await level().catch(() => '')) === 'info\n')
  } finally {
    await rm(folder, { recursive: true })
  }
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

test('diff shows no difference between the cluster and the manifests that it has, and names what a changed route would do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'proxyctl-'))
  try {
    const file = join(folder, 'quickstart.yaml')
    await copyFile(join(import.meta.dirname, 'quickstart.yaml'), file)
    expect(await proxyctl('diff', '-f', file, '-n', NAMESPACE)).toBe('no difference\n')
    await writeFile(file, (await readFile(file, 'utf8')).replace('backendRefs: [{ name: echo', 'backendRefs: [{ name: missing'))
    const text = await run('sh', ['-c', '"$0" operator/proxyctl/main.ts diff -f "$1" -n "$2"; echo "exit $?"', process.execPath, file, NAMESPACE])
    expect(text).toMatch(new RegExp(`^~ HTTPRoute ${NAMESPACE}/echo, rule 0$`, 'm'))
    expect(text).toMatch(/^new problem: HTTPRoute .*Service not found: proxyctl\/missing/m)
    expect(text).toMatch(/^exit 1$/m)
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

test('console adds up the numbers of two pods, and follows a deleted one', async () => {
  await kubectl('-n', NAMESPACE, 'scale', 'deployment/web', '--replicas=2')
  await kubectl('-n', NAMESPACE, 'rollout', 'status', 'deployment/web', '--timeout=300s')
  const args = ['operator/proxyctl/main.ts', 'console', '--gateway', `${NAMESPACE}/web`, '--no-open']
  await updateConsole(DIST)
  const browser = await startBrowser()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown]
    const url = /http:\S+/.exec(String(line))?.[0] ?? ''
    const { page, problems } = await openPage(browser.context, url, '#/overview')
    const read = async <T>(path: string): Promise<T> => (await fetch(`${url}${path}`)).json() as Promise<T>
    const pods = async (): Promise<string[]> => (await read<Overview>('api/v1/overview')).replicas.map(({ name }) => name).sort()
    await waitUntil('both pods are in the overview', async () => (await pods()).length === 2)
    await page.getByRole('status').getByText('2 replicas').waitFor()

    for (let n = 0; n < 40; n++) await get(`http://${address}/`)
    const counted = async (pod: string): Promise<number> => {
      const metrics = await kubectl('get', '--raw', `/api/v1/namespaces/${NAMESPACE}/pods/${pod}:15020/proxy/metrics`)
      const lines = metrics.split('\n').filter((text) => text.startsWith('proxy_requests_total{') && text.includes(`route="${NAMESPACE}/echo"`))
      return lines.reduce((sum, text) => sum + Number(text.split(' ').at(-1)), 0)
    }
    const own = await Promise.all((await pods()).map(counted))
    expect(Math.min(...own)).toBeGreaterThan(0)
    const shown = async (): Promise<number> =>
      (await read<Series>(`api/v1/series?key=route%20${NAMESPACE}/echo`)).points.reduce((sum, { requests }) => sum + requests, 0)
    await waitUntil('the numbers are the sums of both pods', async () => (await shown()) === own.reduce((sum, count) => sum + count, 0))

    const [deleted = '', kept = ''] = await pods()
    await kubectl('-n', NAMESPACE, 'delete', 'pod', deleted, '--wait=false')
    await waitUntil('a new pod has replaced the deleted one', async () => {
      const names = await pods()
      return names.length === 2 && names.includes(kept) && !names.includes(deleted)
    })
    // The page that was open all the time shows requests of the new pod.
    const replacement = (await pods()).find((name) => name !== kept) ?? ''
    await page.evaluate('localStorage.setItem(\'requests.columns\', \'["status", "path", "pod"]\')')
    await page.getByRole('link', { name: 'Requests' }).click()
    const ofReplacement = page.locator('.tail tbody tr', { hasText: replacement }).first()
    await waitUntil('the page shows a request of the new pod', async () => {
      await get(`http://${address}/`)
      return ofReplacement.isVisible()
    })
    await page.getByRole('status').getByText('2 replicas').waitFor()
    expect(problems).toEqual([])
  } finally {
    child.kill()
    await browser.close()
    await kubectl('-n', NAMESPACE, 'scale', 'deployment/web', '--replicas=1')
  }
})
