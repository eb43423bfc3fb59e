import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { OPERATOR_MAIN } from '../../harness/program/operator.ts'
import { startProgram, tailOf, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { install, type ApiServer } from './api-server.ts'
import { connectWithCrds, readGatewayApiCrds } from './create.ts'

interface Entry {
  readonly controllerName: string
  readonly parentRef: { readonly name: string }
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
}
interface Stored {
  readonly status?: { readonly parents?: readonly Entry[] }
}

const namespace = `inference-${Date.now().toString(36)}`
const SYSTEM = 'proxy-system'
const inNamespace = (root: string, plural: string, name = ''): string => `${root}/namespaces/${namespace}/${plural}${name === '' ? '' : `/${name}`}`
const routes = (name = ''): string => inNamespace('/apis/gateway.networking.k8s.io/v1', 'httproutes', name)
const pools = (name = ''): string => inNamespace('/apis/inference.networking.k8s.io/v1', 'inferencepools', name)
const gateways = (): string => inNamespace('/apis/gateway.networking.k8s.io/v1', 'gateways')
const services = (): string => inNamespace('/api/v1', 'services')

let server: ApiServer
let operator: Program

beforeAll(async () => {
  const module = process.env['INFERENCE_API']
  if (!module) throw new Error('INFERENCE_API is not set; run this through e2e/suites/contract/run, which downloads the module')
  const pool = parse(await readFile(join(module, 'config/crd/bases/inference.networking.k8s.io_inferencepools.yaml'), 'utf8')) as { metadata: { name: string } }
  server = await connectWithCrds()
  await install(server, [...(await readGatewayApiCrds()), pool])
  for (const name of [SYSTEM, namespace]) await server.call('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  operator = startProgram({
    name: 'operator',
    args: [OPERATOR_MAIN],
    env: {
      ...Object.fromEntries(['XDS_SERVICE', 'HEALTH', 'METRICS', 'ADMIN'].map((part) => [`PROXY_${part}_PORT`, '0'])),
      POD_NAME: 'inference',
      POD_NAMESPACE: SYSTEM,
      PROXY_ENABLE_INFER_EXT: 'true',
      PROXY_DISABLE_LEADER_ELECTION: 'true',
    },
  })
  await operator.waitForLine(/"listening"/, 120_000)
})
afterAll(async () => {
  await operator.stop()
  for (const path of [routes(), pools(), gateways(), `/api/v1/namespaces/${namespace}`]) await server.call('DELETE', path)
  server.close()
})

async function create(path: string, apiVersion: string, kind: string, name: string, spec: object): Promise<void> {
  const { status, causes } = await server.call('POST', path, { apiVersion, kind, metadata: { name, namespace }, spec })
  if (status >= 400) throw new Error(`POST ${path}: ${JSON.stringify(causes)}`)
}
async function parentsOf(path: string): Promise<string[] | undefined> {
  const { status, object } = await server.call('GET', path)
  const { parents } = (status === 200 ? (object as Stored).status : undefined) ?? {}
  return parents?.map(({ parentRef, conditions }) => [parentRef.name, ...conditions.map((each) => `${each.type}=${each.status} ${each.reason}`)].join(' '))
}
const until = async (path: string, expected: string[]): Promise<void> => {
  await waitUntil(`${path}: ${expected.join('; ')}`, async () => JSON.stringify(await parentsOf(path)) === JSON.stringify(expected), 120_000).catch(
    async (error: unknown) => {
      throw new Error(`${String(error)}\n${JSON.stringify(await parentsOf(path))}\n${tailOf(operator.lines)}`, { cause: error })
    },
  )
}
const route = (pool: string): object => ({
  parentRefs: [{ name: 'gw' }],
  rules: [{ backendRefs: [{ group: 'inference.networking.k8s.io', kind: 'InferencePool', name: pool }] }],
})

test('a pool has a status entry per Gateway with a route to it, which reflects its picker and is removed with the last route', async () => {
  await create(gateways(), 'gateway.networking.k8s.io/v1', 'Gateway', 'gw', {
    gatewayClassName: 'proxy',
    listeners: [{ name: 'http', port: 18_090, protocol: 'HTTP' }],
  })
  await create(routes(), 'gateway.networking.k8s.io/v1', 'HTTPRoute', 'r', route('models'))
  await until(routes('r'), ['gw Accepted=True Accepted ResolvedRefs=False BackendNotFound'])
  await create(pools(), 'inference.networking.k8s.io/v1', 'InferencePool', 'models', {
    selector: { matchLabels: { app: 'model' } },
    targetPorts: [{ number: 8000 }],
    endpointPickerRef: { name: 'picker', port: { number: 9002 } },
  })
  await until(routes('r'), ['gw Accepted=True Accepted ResolvedRefs=True ResolvedRefs'])
  await until(pools('models'), ['gw Accepted=True Accepted ResolvedRefs=False InvalidExtensionRef'])
  await create(services(), 'v1', 'Service', 'picker', { ports: [{ port: 9002 }] })
  await until(pools('models'), ['gw Accepted=True Accepted ResolvedRefs=True ResolvedRefs'])
  await server.call('DELETE', routes('r'))
  await until(pools('models'), [])
  expect(operator.lines.filter(({ text }) => text.includes('"level":"error"'))).toEqual([])
})
