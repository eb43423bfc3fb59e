import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { OPERATOR_MAIN } from '../../harness/program/operator.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { install, type ApiServer } from '../contract/api-server.ts'
import { connectWithCrds, readGatewayApiCrds } from '../contract/create.ts'
import { ADDRESS, manifest, type Manifest } from './objects.ts'

const plurals: Readonly<Record<string, string>> = { ProxyPolicy: 'proxypolicies' }
const SYSTEM = 'proxy-system'
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${SYSTEM}/leases/proxy-operator`
const IN_FLIGHT = 16
/** Credentials of the pod. */
export const AMBIENT = 'AMBIENTIDENTITY'

function collectionOf({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const prefix = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return `${prefix}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plurals[kind] ?? `${kind.toLowerCase()}s`}`
}

/** Runs `work` on all items, some at a time. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.toReversed()
  const next = async (): Promise<void> => {
    for (let item = queue.pop(); item !== undefined; item = queue.pop()) await work(item)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, next))
}

/** An API server with the operator and the data plane of the Gateway `infra/gateway`. */
export interface Cluster {
  readonly dataplane: Dataplane
  /** Of the admin port, from the Secret that the operator makes. */
  readonly adminToken: string
  /** Creates or replaces an object; returns why the API server refuses it. */
  apply(object: Manifest): Promise<string | undefined>
  remove(object: Manifest): Promise<void>
  /** Statuses of all objects of a namespace as JSON, by kind and name. */
  statuses(namespace: string): Promise<ReadonlyMap<string, string>>
  logs(): string
  stop(): Promise<void>
}

/** Adds the addresses of the canaries to the network namespace. */
export function addAddresses(): void {
  for (const address of Object.values(ADDRESS)) execFileSync('ip', ['addr', 'replace', `${address}/32`, 'dev', 'lo'])
}

const read = (server: ApiServer, path: string) => server.call('GET', path)

export async function startCluster(victims: readonly Manifest[]): Promise<Cluster> {
  const server = await connectWithCrds()
  await install(server, await readGatewayApiCrds())
  const directory = await mkdtemp(join(tmpdir(), 'security-'))
  const apply = async (object: Manifest): Promise<string | undefined> => {
    const path = `${collectionOf(object)}/${object.metadata.name}?fieldManager=author&force=true&fieldValidation=Strict`
    const { status, causes } = await server.call('PATCH', path, object, 'application/apply-patch+yaml')
    return status >= 400 ? causes.map(({ field, message }) => `${field}: ${message}`).join('; ') : undefined
  }
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: SYSTEM } })
  await server.call('DELETE', LEASE)
  for (const object of victims) {
    const refused = await apply(object)
    if (refused !== undefined) throw new Error(`${object.kind} ${object.metadata.name}: ${refused}`)
  }
  // As in a pod.
  const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
  const ports = { PROXY_XDS_SERVICE_PORT: '0', PROXY_HEALTH_PORT: '0', PROXY_METRICS_PORT: '0', PROXY_ADMIN_PORT: '0' }
  const operator: Program = startProgram({ name: 'operator', args: [OPERATOR_MAIN], env: { ...pod, ...ports, POD_NAME: 'one', POD_NAMESPACE: SYSTEM } })
  const { xds } = JSON.parse(await operator.waitForLine(/"listening"/, 120_000)) as { readonly xds: number }
  const account = '/api/v1/namespaces/infra/serviceaccounts/gateway'
  await waitUntil('the ServiceAccount of the Gateway', async () => (await read(server, account)).status === 200, 120_000)
  const { object } = await server.call('POST', `${account}/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: ['proxy'], expirationSeconds: 3600 },
  })
  const token = join(directory, 'token')
  await writeFile(token, (object['status'] as { token: string }).token)
  let adminToken = ''
  await waitUntil('the Secret of the admin token', async () => {
    const { object: secret } = await read(server, '/api/v1/namespaces/infra/secrets/gateway-admin-token')
    adminToken = Buffer.from((secret['data'] as { token: string }).token, 'base64').toString()
    return adminToken !== ''
  })
  const dataplane = await startDataplane({
    config: { address: `127.0.0.1:${xds}`, namespace: 'infra', gateway: 'gateway' },
    ports: { admin: 15_000, stats: 15_020, readiness: 15_021 },
    env: {
      ...pod,
      XDS_TOKEN_FILE: token,
      ADMIN_TOKEN: adminToken,
      AWS_ACCESS_KEY_ID: AMBIENT,
      AWS_SECRET_ACCESS_KEY: AMBIENT,
      AWS_REGION: 'eu-central-1',
    },
    timeoutMs: 120_000,
  })
  return {
    dataplane,
    adminToken,
    apply,
    remove: async (each) => void (await server.call('DELETE', `${collectionOf(each)}/${each.metadata.name}`)),
    async statuses(namespace) {
      const found = new Map<string, string>()
      for (const kind of ['ProxyPolicy', 'ProxyBackend', 'HTTPRoute', 'TLSRoute', 'TCPRoute', 'Gateway']) {
        const { object: list } = await read(server, collectionOf(manifest(kind, namespace, '', {})))
        for (const { metadata, status } of list['items'] as { metadata: { name: string }; status?: object }[])
          if (JSON.stringify(status ?? {}).includes('"observedGeneration"')) found.set(`${kind}/${metadata.name}`, JSON.stringify(status))
      }
      return found
    },
    logs: () => [...operator.lines, ...dataplane.program.lines].map(({ text }) => text).join('\n'),
    async stop() {
      await dataplane.stop()
      await operator.stop()
      server.close()
      await rm(directory, { recursive: true })
    },
  }
}
