import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import schema from '#gen/v1alpha1/schema.json' with { type: 'json' }
import { loadDirectory } from '../source/directory.ts'
import { findClusterFields, settingsOfGateways, SettingsDirectory } from './dataplane-settings.ts'

let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'settings-'))
})
afterAll(() => rm(directory, { recursive: true }))

async function load(spec: object, ofClass?: object) {
  const parameters = (name: string, value: object) => ({ apiVersion: 'proxy.dev/v1alpha1', kind: 'ProxyParameters', metadata: { name }, spec: value })
  const objects: object[] = [
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'web' },
      spec: {
        gatewayClassName: 'proxy',
        infrastructure: { parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', name: 'own' } },
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      },
    },
    parameters('own', spec),
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { key: Buffer.from('from secret').toString('base64') } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { key: 'from map' } },
  ]
  if (ofClass !== undefined)
    objects.push(parameters('class', ofClass), {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'GatewayClass',
      metadata: { name: 'proxy' },
      spec: { controllerName: 'proxy.dev/proxy', parametersRef: { group: 'proxy.dev', kind: 'ProxyParameters', namespace: 'default', name: 'class' } },
    })
  await writeFile(join(directory, 'all.yaml'), objects.map((object) => JSON.stringify(object)).join('\n---\n'))
  const loaded = await loadDirectory(directory)
  expect(loaded.problems).toEqual([])
  return loaded
}

test('the settings of a data plane are those of its pod: rawConfig under typed fields, variables with their sources and references', async () => {
  const env = [
    { name: 'PLAIN', value: 'a' },
    { name: 'SECRET', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } },
    { name: 'MAP', valueFrom: { configMapKeyRef: { name: 'c', key: 'key' } } },
    { name: 'JOINED', value: '$(PLAIN)-$(SECRET)-$$(PLAIN)-$(NONE)' },
  ]
  const { snapshot } = await load(
    { logging: { format: 'json' }, env, shutdown: { min: 1, max: 2 } },
    { logging: { level: 'debug', format: 'text' }, rawConfig: { config: { ledger: { sqlite: { path: '/tmp/l.db' } }, logging: { format: 'text' } } } },
  )
  const settings = settingsOfGateways(snapshot).get('default/web')
  expect(settings?.config).toBe('config:\n  ledger:\n    sqlite:\n      path: /tmp/l.db\n  logging:\n    format: json\n')
  expect(Object.fromEntries(settings?.env ?? [])).toEqual({
    PROXY_LOG: 'debug',
    TERMINATION_GRACE_PERIOD_SECONDS: '2',
    CONNECTION_MIN_TERMINATION_DEADLINE: '1s',
    PLAIN: 'a',
    SECRET: 'from secret',
    MAP: 'from map',
    JOINED: 'a-from secret-$(PLAIN)-$(NONE)',
  })
})

test('each field that only a cluster has, and each variable without a source, is reported with its place and the reason', async () => {
  const overlay = { metadata: { labels: { a: 'b' } } }
  const env = [
    { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'none' } } },
    { name: 'C', valueFrom: { secretKeyRef: { name: 's', key: 'none', optional: true } } },
  ]
  const loaded = await load({ image: { tag: 'v1' }, resources: {}, mesh: {}, mcp: {}, deployment: overlay, service: overlay, env, logging: { format: 'json' } })
  const findings = findClusterFields(loaded)
  expect(findings.map(({ message }) => message.replace(' has no effect in a directory: ', ' | '))).toEqual([
    'image | it is about the container [PX1030]',
    'resources | it is about the container [PX1030]',
    'mesh | it is about the mesh of a cluster [PX1030]',
    'mcp | it is about the pods of MCP servers [PX1030]',
    'deployment | it is about the Deployment [PX1030]',
    'service | it is about the Service [PX1030]',
    'env[0] | there is no pod to read it from [PX1030]',
    'env[1] | Secret default/s with key none does not exist [PX1030]',
  ])
  for (const { place } of findings) expect(place?.file).toBe('all.yaml')
})

test('every field of ProxyParameters counts in a directory or is reported', async () => {
  const counts = ['logging', 'rawConfig', 'env', 'shutdown', 'plugins', 'upstreams']
  const reported = ['image', 'resources', 'mesh', 'mcp', 'deployment', 'service', 'serviceAccount', 'podDisruptionBudget', 'horizontalPodAutoscaler']
  expect([...counts, ...reported].sort()).toEqual(Object.keys(schema.$defs.ProxyParametersSpec.properties).sort())
  const { snapshot, locate } = await load(Object.fromEntries(reported.map((field) => [field, {}])))
  expect(findClusterFields({ snapshot, locate }).map(({ message }) => message.split(' ', 1)[0])).toEqual(reported)
})

test('files are readable by the user only, hold values with any one quote, and change their version with the content', async () => {
  const files = new SettingsDirectory()
  const write = async (value: string) => (await files.write(new Map([['ns/gw', { config: 'config: {}\n', env: new Map([['V', value]]) }]]))).get('ns/gw')
  const versions = new Set<string>()
  for (const value of ['plain', `it's`, 'a\\nb', 'say "hi" and `x`', '', 'line\nline', '#no comment']) {
    const written = await write(value)
    if (written === undefined) throw new Error('nothing was written')
    versions.add(written.version)
    expect(parseEnv(await readFile(written.env, 'utf8'))).toEqual({ V: value })
    expect((await stat(written.env)).mode & 0o077).toBe(0)
    expect((await stat(dirname(written.env))).mode & 0o077).toBe(0)
  }
  expect(versions.size).toBe(7)
  const root = dirname(dirname(dirname((await write('x'))?.env ?? '')))
  await files.close()
  await expect(stat(root)).rejects.toThrow('ENOENT')
})
