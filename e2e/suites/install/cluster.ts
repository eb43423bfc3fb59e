import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitUntil } from '../../harness/wait.ts'

export const ROOT = join(import.meta.dirname, '../../..')
/** Namespace of the operator. */
export const SYSTEM = 'proxy-system'
/** Name of the Helm release. */
export const RELEASE = 'proxy'

/** Runs a program with the cluster's KUBECONFIG. Rejects with its standard error. */
export function run(command: string, args: readonly string[], input?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024, timeout: 900_000 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${command} ${args.join(' ')}: ${stderr.trim() || error.message}`))
      else resolve(stdout)
    })
    // A program that does not read its input may exit before it is sent.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input ?? '')
  })
}

export const kubectl = (...args: string[]): Promise<string> => run('kubectl', args)
export const helm = (...args: string[]): Promise<string> => run('helm', args)
/** Runs a subcommand of the cluster program that CLUSTER names. */
export const localcluster = (...args: string[]): Promise<string> => run(process.env['CLUSTER'] ?? 'e2e/cluster/localcluster', args)

/** The fields of an object that these tests read. */
export interface Stored {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly generation?: number
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
  }
  // oxlint-disable-next-line typescript/no-explicit-any -- objects of any kind; tests check the fields
  readonly spec: any
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  readonly status?: any
  readonly data?: Readonly<Record<string, string>>
}

/** Reads an object; undefined if it does not exist. */
export async function read(kind: string, name: string, namespace = 'default'): Promise<Stored | undefined> {
  const text = await kubectl('-n', namespace, 'get', kind, name, '-o', 'json', '--ignore-not-found')
  return text.trim() === '' ? undefined : (JSON.parse(text) as Stored)
}

/** Lists objects of a namespace by label selector. */
export async function list(kind: string, namespace: string, selector = ''): Promise<Stored[]> {
  const scope = namespace === '' ? ['-A'] : ['-n', namespace]
  const text = await kubectl(...scope, 'get', kind, '-o', 'json', ...(selector === '' ? [] : ['-l', selector]))
  return (JSON.parse(text) as { items: Stored[] }).items
}

/** Applies YAML or objects, server-side as GitOps tools do, so that null means null. Namespace '': objects name their own. */
export async function apply(namespace: string, ...objects: (string | object)[]): Promise<void> {
  const text = objects.map((object) => (typeof object === 'string' ? object : JSON.stringify(object))).join('\n---\n')
  await run('kubectl', [...(namespace === '' ? [] : ['-n', namespace]), 'apply', '--server-side', '--force-conflicts', '-f', '-'], text)
}

export async function makeNamespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  await apply('default', { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
}

/**
 * Installs the CRDs of Gateway API and of this project and the operator, or upgrades an installed release to `values`.
 *
 * @param charts directory of the two charts
 */
export async function installProxy(values: object = {}, { name = RELEASE, charts = 'charts' }: { name?: string; charts?: string } = {}): Promise<void> {
  const crds = process.env['GATEWAY_API']
  if (!crds) throw new Error('GATEWAY_API is not set; run this through e2e/suites/install/run')
  if (!(await kubectl('get', 'crd', '-o', 'name')).includes('listenersets.gateway.networking.k8s.io'))
    await kubectl('apply', '--server-side', '-k', join(crds, 'config/crd/experimental'))
  await helm('upgrade', '--install', 'proxy-crds', join(charts, 'proxy-crds'))
  // Without --reset-values, empty values would keep those of the previous release.
  const chart = [
    'upgrade',
    '--install',
    '--reset-values',
    name,
    join(charts, 'proxy'),
    '-n',
    SYSTEM,
    '--create-namespace',
    '--wait',
    '--timeout',
    '600s',
    '-f',
    '-',
  ]
  await run('helm', chart, JSON.stringify(values))
  await kubectl('wait', '--for=create', 'gatewayclass/proxy', '--timeout=300s')
  await kubectl('wait', 'gatewayclass/proxy', '--for=condition=Accepted', '--timeout=300s')
}

/** Installs the quickstart of the README in its own namespace and waits until every pod serves it. Returns the address of its Gateway `web`. */
export async function startQuickstart(namespace: string, labels: Readonly<Record<string, string>> = {}): Promise<string> {
  await makeNamespace(namespace, labels)
  await apply(namespace, await readFile(join(ROOT, 'e2e/suites/install/quickstart.yaml'), 'utf8'))
  await kubectl('-n', namespace, 'rollout', 'status', 'deployment/echo', '--timeout=600s')
  const address = await waitForGateway(namespace, 'web')
  await untilServed(`http://${address}/`)
  return address
}

/**
 * Waits until a URL returns 200 thirty times in a row, each on a new connection: then every pod behind it has the route and kube-proxy has rules for every pod.
 */
async function untilServed(url: string): Promise<void> {
  await until(`${url} returns 200 from every pod`, async () => {
    for (let n = 0; n < 30; n++) if ((await get(url)).status !== 200) return false
    return true
  })
}

/** Waits until a Gateway is programmed, its pods are ready and it has an address. Returns the address. */
export async function waitForGateway(namespace: string, name: string, deployment = name): Promise<string> {
  await kubectl('-n', namespace, 'wait', `gateway/${name}`, '--for=condition=Programmed', '--timeout=300s')
  await kubectl('-n', namespace, 'wait', '--for=create', `deployment/${deployment}`, '--timeout=300s')
  await kubectl('-n', namespace, 'rollout', 'status', `deployment/${deployment}`, '--timeout=600s')
  let address: string | undefined
  await until(`Gateway ${namespace}/${name} has an address`, async () => {
    address = (await read('gateway', name, namespace))?.status?.addresses?.[0]?.value
    return address !== undefined
  })
  return address ?? ''
}

/** Sends a GET on a new connection and returns status and body. */
export async function get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<{ status: number; body: string }> {
  const response = await fetch(url, { headers: { connection: 'close', ...headers }, signal: AbortSignal.timeout(30_000), redirect: 'manual' })
  return { status: response.status, body: await response.text() }
}

export const until = (what: string, condition: () => Promise<boolean>, timeoutMs = 240_000): Promise<void> => waitUntil(what, condition, timeoutMs)

/** Waits until the URL returns this status. */
export const untilStatus = (url: string, status: number, timeoutMs?: number): Promise<void> =>
  until(`${url} returns ${status}`, async () => (await get(url)).status === status, timeoutMs)

/** A condition of an object, or of its first parent reference. */
export function conditionOf(object: Stored | undefined, type: string): { status: string; reason: string; message: string } | undefined {
  const conditions = object?.status?.conditions ?? object?.status?.parents?.[0]?.conditions ?? []
  return conditions.find((each: { type: string }) => each.type === type)
}

/** Kills the first container of a pod with SIGKILL; the kubelet restarts it in the same pod. */
export async function crash(namespace: string, pod: string): Promise<void> {
  const id = await kubectl('-n', namespace, 'get', 'pod', pod, '-o', 'jsonpath={.status.containerStatuses[0].containerID}')
  await localcluster('crash', id.replace('containerd://', ''))
}

/** The holder of the Lease, `<pod>_<process>`, or an empty string. */
export async function findLeader(): Promise<string> {
  return String((await read('lease', 'proxy-operator', SYSTEM))?.spec.holderIdentity ?? '')
}

/** Pods of the operator. */
export const operatorPods = (): Promise<Stored[]> => list('pods', SYSTEM, 'app.kubernetes.io/component=controller')
/** Pods of the data plane of a Gateway. */
export const gatewayPods = (namespace: string, gateway: string): Promise<Stored[]> =>
  list('pods', namespace, `gateway.networking.k8s.io/gateway-name=${gateway}`)
