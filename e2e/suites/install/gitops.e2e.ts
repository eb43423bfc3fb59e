import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'
import { apply, helm, installProxy, kubectl, makeNamespace, read, RELEASE, ROOT, run, startQuickstart, SYSTEM, until, untilStatus } from './cluster.ts'

const NAMESPACE = 'gitops'
let directory: string

beforeAll(async () => {
  await installProxy()
  directory = await mkdtemp(join(tmpdir(), 'gitops-'))
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
  const options = ['--version', `v${version}`, '--registry', 'localhost', '--no-images', '--no-executables', '--out', directory]
  await run(process.execPath, ['images/release/main.ts', ...options])
  await run('tar', ['-xzf', join(directory, `proxy-kustomize-${version}.tgz`), '-C', directory])
})
afterAll(async () => {
  await kubectl('delete', 'namespace', NAMESPACE, 'health', '--ignore-not-found', '--wait=false')
  await rm(directory, { recursive: true })
})

interface KubernetesObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly generation?: number }
  readonly status?: object
}

describe('a health check of Argo CD', () => {
  interface Health {
    readonly status: string
    readonly message: string
  }
  const gatewayApi = 'gateway.networking.k8s.io'
  let scripts: Readonly<Record<string, string>>

  /** Runs the script of the kind in Lua 5.1, the version of Argo CD. */
  async function check(object: KubernetesObject): Promise<Health> {
    const group = object.kind === 'Gateway' ? gatewayApi : 'proxy.dev'
    const script = scripts[`resource.customizations.health.${group}_${object.kind}`]
    const program = `obj = ${toLua(object)}\nlocal health = (function()\n${script}\nend)()\nprint(health.status)\nprint(health.message)\n`
    const [status = '', ...message] = (await run('lua5.1', ['-'], program)).trimEnd().split('\n')
    return { status, message: message.join('\n') }
  }
  const healthOf = async (kind: string, name: string): Promise<Health> => check((await read(kind, name, 'health')) as KubernetesObject)

  beforeAll(async () => {
    ;({ data: scripts } = parse(await readFile(join(directory, 'argocd-health.yaml'), 'utf8')) as { readonly data: Readonly<Record<string, string>> })
    await makeNamespace('health')
    const policy = (name: string, target: object, traffic: object): object => ({
      apiVersion: 'proxy.dev/v1alpha1',
      kind: 'ProxyPolicy',
      metadata: { name },
      spec: { targetRefs: [{ group: gatewayApi, kind: 'Gateway', ...target }], traffic },
    })
    const backend = (name: string, spec: object): object => ({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyBackend', metadata: { name }, spec })
    const gateway = (name: string, listener: object): object => ({
      apiVersion: `${gatewayApi}/v1`,
      kind: 'Gateway',
      metadata: { name },
      spec: { gatewayClassName: 'proxy', listeners: [{ name: 'main', port: 80, protocol: 'HTTP', ...listener }] },
    })
    await apply(
      'health',
      gateway('good', {}),
      gateway('no-certificate', { port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'missing' }] } }),
      policy('good', { name: 'good' }, { timeouts: { request: '1s' } }),
      policy('partial', { name: 'good' }, { authorization: { policy: { matchExpressions: ['request.path =='] } } }),
      policy('unattached', { name: 'missing' }, { timeouts: { request: '1s' } }),
      backend('good', { static: { host: 'a.example', port: 80 } }),
      backend('broken', { static: { host: 'a.example', port: 80 }, policies: { auth: { secretRef: { name: 'missing' } } } }),
    )
  })

  test.each([
    ['Gateway', 'good', 'Healthy', /pod/],
    ['Gateway', 'no-certificate', 'Degraded', /^Listener main: .*missing/],
    ['ProxyPolicy', 'good', 'Healthy', /./],
    ['ProxyPolicy', 'partial', 'Degraded', /request\.path ==/],
    ['ProxyPolicy', 'unattached', 'Progressing', /missing/],
    ['ProxyBackend', 'good', 'Healthy', /./],
    ['ProxyBackend', 'broken', 'Degraded', /missing/],
  ])('reports that %s %s is %s', async (kind, name, status, message) => {
    await until(`${kind} ${name} is ${status}`, async () => (await healthOf(kind, name)).status === status)
    expect((await healthOf(kind, name)).message).toMatch(message)
  })

  test.each(['Gateway', 'ProxyPolicy', 'ProxyBackend'])('waits for the first status of a new %s', async (kind) => {
    const metadata = { name: 'new', generation: 1 }
    expect(await check({ kind, metadata })).toMatchObject({ status: 'Progressing' })
    expect(await check({ kind, metadata, status: { conditions: [], ancestors: [], listeners: [] } })).toMatchObject({ status: 'Progressing' })
  })

  test.each([
    ['Gateway', 'good'],
    ['ProxyPolicy', 'good'],
    ['ProxyBackend', 'good'],
  ])('waits until a change of a %s is in its status', async (kind, name) => {
    const object = (await read(kind, name, 'health')) as KubernetesObject
    expect(await check({ ...object, metadata: { ...object.metadata, generation: 99 } })).toMatchObject({
      status: 'Progressing',
      message: expect.stringMatching(/has not seen the last change yet/),
    })
  })
})

describe('kubectl kustomize', () => {
  const build = async (kustomization: string): Promise<readonly KubernetesObject[]> =>
    parseAllDocuments(await kubectl('kustomize', '--load-restrictor=LoadRestrictionsNone', kustomization)).map(
      (document) => document.toJS() as KubernetesObject,
    )
  const keysOf = (objects: readonly KubernetesObject[]): string[] => objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`).toSorted()

  test('builds the objects of install.yaml from the base', async () => {
    const installed = parseAllDocuments(await readFile(join(directory, 'install.yaml'), 'utf8')).map((document) => document.toJS() as KubernetesObject)
    expect(keysOf(await build(join(directory, 'proxy-kustomize/base')))).toEqual(keysOf(installed))
  })

  test('adds replicas, monitors, alerts and dashboards by components', async () => {
    const components = ['high-availability', 'monitoring', 'dashboards'].map((name) => `../components/${name}`)
    const overlay = join(directory, 'proxy-kustomize/overlay')
    const images = [{ name: 'localhost/controller', newName: 'registry.example/controller' }]
    await run('mkdir', ['-p', overlay])
    await run('tee', [join(overlay, 'kustomization.yaml')], JSON.stringify({ resources: ['../base'], components, images }))
    const objects = await build(overlay)
    const added = ['ConfigMap/proxy-dashboards', 'PodDisruptionBudget/proxy', 'PodMonitor/proxy-data-planes', 'PrometheusRule/proxy', 'ServiceMonitor/proxy']
    expect(keysOf(objects)).toEqual([...keysOf(await build(join(directory, 'proxy-kustomize/base'))), ...added].toSorted())
    const deployment = objects.find(({ kind }) => kind === 'Deployment') as unknown as {
      readonly spec: {
        readonly replicas: number
        readonly template: { readonly spec: { readonly topologySpreadConstraints: object[]; readonly containers: object[] } }
      }
    }
    expect(deployment.spec.replicas).toBe(2)
    expect(deployment.spec.template.spec.topologySpreadConstraints).toHaveLength(2)
    expect(deployment.spec.template.spec.containers).toMatchObject([{ image: expect.stringMatching(/^registry\.example\/controller:v/) }])
  })
})

test('install.yaml installs an operator that serves the quickstart, and the kustomize base changes nothing afterwards', async () => {
  await helm('-n', SYSTEM, 'uninstall', RELEASE, '--wait')
  try {
    // Helm installed the CRDs, which it keeps.
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(directory, 'install.yaml'))
    await kubectl('-n', SYSTEM, 'rollout', 'status', 'deployment/proxy', '--timeout=300s')
    await untilStatus(`http://${await startQuickstart(NAMESPACE)}/`, 200)
    const before = (await read('deployment', 'proxy', SYSTEM))?.metadata.generation
    await kubectl('apply', '--server-side', '-k', join(directory, 'proxy-kustomize/base'))
    expect((await read('deployment', 'proxy', SYSTEM))?.metadata.generation).toBe(before)
  } finally {
    // Helm refuses to adopt these objects.
    await kubectl('delete', '--ignore-not-found', '-f', join(directory, 'proxy-kustomize/base/operator.yaml'))
    await installProxy()
  }
})

/** A JSON value as Lua source. */
function toLua(value: unknown): string {
  if (value === null || value === undefined) return 'nil'
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  // Escapes of Lua 5.1 are decimal.
  if (typeof value === 'string') return `"${Buffer.from(value).reduce((text, byte) => `${text}\\${String(byte).padStart(3, '0')}`, '')}"`
  if (Array.isArray(value)) return `{${value.map(toLua).join(',')}}`
  return `{${Object.entries(value)
    .map(([key, part]) => `[${toLua(key)}]=${toLua(part)}`)
    .join(',')}}`
}
