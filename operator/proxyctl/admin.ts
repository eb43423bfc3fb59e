import { Agent, request, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { homedir } from 'node:os'
import type { Duplex } from 'node:stream'
import { join } from 'node:path'
import { existsSync } from 'node:fs'
import type { KubeConnection } from '../kube/connection.ts'
import { ADMIN_PORT, safeName } from '#api/names.ts'
import { sha256Hex } from '../deploy/hash.ts'
import { GATEWAY_NAME_LABEL } from '../deploy/metadata.ts'
import type { Target, TargetRequest } from './console/targets.ts'
import { CommandError, UsageError } from './output.ts'
import type { Invocation } from './types.ts'

interface AskOptions {
  /** Called once the request is sent; a connection through the API server takes a while. */
  readonly onSent?: () => void
  /** Cancels the request. */
  readonly signal?: AbortSignal
}

/** The admin endpoint of one data plane. */
export interface Admin {
  /** Name of the target in messages. */
  readonly name: string
  /** Rejects with one line: the request and the cause. */
  ask(method: 'GET' | 'POST', path: string, options?: AskOptions): Promise<{ readonly status: number; readonly body: string }>
}

/**
 * Opens the data plane that the options name: `--admin`, or a pod of `--gateway`. Without them, a pod of the Gateway that `route` refers to, or of the only
 * Gateway of the cluster; without a cluster, the data plane on this machine.
 *
 * @param route `<namespace>/<name>`
 */
export async function openAdmin({ options, env, output }: Pick<Invocation, 'options' | 'env' | 'output'>, route?: string): Promise<Admin> {
  return output.wait('searching for the data plane', findAdmin({ options, env }, route))
}

async function findAdmin(invocation: Pick<Invocation, 'options' | 'env'>, route: string | undefined): Promise<Admin> {
  const location = await locate(invocation, route)
  return location.kind === 'address' ? adminAt(`${location.host}:${location.port}`) : adminOfGateway(location)
}

/** Where the data planes are: at an address, or in the pods of a Gateway. */
export type Location =
  | { readonly kind: 'address'; readonly host: string; readonly port: number }
  | { readonly kind: 'pods'; readonly namespace: string; readonly gateway: string; readonly kubeconfig: string | undefined }

/** Finds the data planes that the options name; see `openAdmin`. */
export async function locate({ options, env }: Pick<Invocation, 'options' | 'env'>, route?: string): Promise<Location> {
  const { admin, gateway, namespace } = options
  if (admin !== undefined && gateway !== undefined) throw new UsageError('--admin and --gateway name two data planes: give one of them')
  if (admin !== undefined) return { kind: 'address', ...parseAddress(admin) }
  const kubeconfig = kubeconfigOf({ options, env })
  if (gateway !== undefined) return podsOf(gateway, kubeconfig)
  const local: Location = { kind: 'address', host: '127.0.0.1', port: ADMIN_PORT }
  if (kubeconfig === undefined) return local
  const found = await withCluster(kubeconfig, async (connection) => (await import('./gateways.ts')).findGateway(connection, { namespace, route })).catch(
    (error: unknown) => {
      if (isUnnamedAndUnreachable(error, { options, env })) return undefined
      throw explainUnreachable(error, kubeconfig)
    },
  )
  return found === undefined ? local : podsOf(found, kubeconfig)
}

function podsOf(text: string, kubeconfig: string | undefined): Location {
  const [namespace = '', gateway = '', ...rest] = text.split('/')
  if (namespace === '' || gateway === '' || rest.length > 0) throw new UsageError(`--gateway: ${JSON.stringify(text)} is not <namespace>/<name>`)
  return { kind: 'pods', namespace, gateway, kubeconfig }
}

async function withCluster<T>(kubeconfig: string | undefined, ask: (connection: KubeConnection) => Promise<T>): Promise<T> {
  const { connect } = await import('../kube/connection.ts')
  const connection = connect({ kubeconfig, userAgent: 'proxyctl' })
  try {
    return await ask(connection)
  } finally {
    connection.close()
  }
}

/** An admin endpoint by its address. */
export function adminAt(address: string): Admin {
  const { host, port } = parseAddress(address)
  return {
    name: address,
    async ask(method, path, { onSent, signal } = {}) {
      return receive(request({ host, port, method, path, agent: false, signal }), onSent).catch((error: Error) => {
        throw new CommandError('PX6003', `admin endpoint ${address}: ${error.message}; name the data plane with --admin HOST:PORT or --gateway NS/NAME`, {
          cause: error,
        })
      })
    },
  }
}

function parseAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':')
  const [host, port] = [address.slice(0, colon).replace(/^\[|\]$/g, ''), Number(address.slice(colon + 1))]
  if (host === '' || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new UsageError(`${JSON.stringify(address)} is not host:port, such as 127.0.0.1:15000`)
  return { host, port }
}

async function adminOfGateway(location: Extract<Location, { kind: 'pods' }>): Promise<Admin> {
  const { namespace, kubeconfig } = location
  const [pod = ''] = await listPods(location)
  return {
    name: `pod ${namespace}/${pod}`,
    async ask(method, path, { onSent, signal } = {}) {
      const { openPodPort } = await import('../kube/port-forward.ts')
      const stream = await openPodPort(kubeconfig, { namespace, pod, port: ADMIN_PORT })
      const agent = new Agent({ keepAlive: false })
      agent.createConnection = () => stream
      return receive(request({ host: '127.0.0.1', port: ADMIN_PORT, method, path, agent, signal }), onSent).finally(() => stream.destroy())
    },
  }
}

/** Running pods of a Gateway that are not being deleted, at least one. Rejects with the cause if there is none. */
async function listPods({ kubeconfig, namespace, gateway }: Extract<Location, { kind: 'pods' }>): Promise<string[]> {
  return withCluster(kubeconfig, (connection) => findPods(connection, namespace, gateway)).catch((error: unknown) => {
    throw explainUnreachable(error, kubeconfig)
  })
}

async function findPods(connection: KubeConnection, namespace: string, gateway: string): Promise<string[]> {
  const selector = encodeURIComponent(`${GATEWAY_NAME_LABEL}=${safeName(gateway, sha256Hex)}`)
  const { items = [] } = await connection.request<{ items?: { metadata: { name: string; deletionTimestamp?: string }; status?: { phase?: string } }[] }>(
    'GET',
    `/api/v1/namespaces/${namespace}/pods?labelSelector=${selector}`,
  )
  const running = items.filter(({ metadata, status }) => status?.phase === 'Running' && metadata.deletionTimestamp === undefined)
  if (running.length > 0) return running.map(({ metadata }) => metadata.name).sort()
  const { checkGateway } = await import('./gateways.ts')
  await checkGateway(connection, namespace, gateway)
  throw new CommandError('PX6006', `Gateway ${namespace}/${gateway} has no running pod; proxyctl status names the cause`)
}

const isUnreachable = (error: unknown): error is Error =>
  error instanceof Error && /\b(?:ECONN[A-Z]+|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|E(?:HOST|NET)UNREACH)\b/.test(error.message)

/** Whether the API server of a kubeconfig that the user did not name does not respond: the file may be left from another cluster. */
export const isUnnamedAndUnreachable = (error: unknown, { options, env }: Pick<Invocation, 'options' | 'env'>): error is Error =>
  isUnreachable(error) && options.kubeconfig === undefined && (env['KUBECONFIG'] ?? '') === ''

/** Hints for an API server that does not respond. */
export function explainUnreachable(error: unknown, kubeconfig: string | undefined): unknown {
  if (!isUnreachable(error)) return error
  const where = kubeconfig === undefined ? 'of the pod' : `of ${kubeconfig}`
  return new CommandError('PX6005', `the API server ${where} cannot be reached: ${error.message}; --kubeconfig FILE names another`, { cause: error })
}

/** The kubeconfig to use: the option, the environment, or the one that kubectl uses; undefined inside a pod. */
export function kubeconfigOf({ options, env }: Pick<Invocation, 'options' | 'env'>): string | undefined {
  const given = options.kubeconfig ?? env['KUBECONFIG']
  if (given !== undefined && given !== '') return given
  const usual = join(env['HOME'] ?? homedir(), '.kube', 'config')
  return existsSync(usual) ? usual : undefined
}

function receive(call: ClientRequest, onSent?: () => void): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    call.on('error', reject)
    if (onSent) call.on('finish', onSent)
    call.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (body += chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    call.end()
  })
}

/** Returns the JSON of an admin endpoint. Rejects with its text if the status is not 200. */
export async function askJson<T>(admin: Admin, path: string, options?: AskOptions): Promise<T> {
  const { status, body } = await admin.ask('GET', path, options)
  if (status !== 200) throw new CommandError('PX6004', `${admin.name}: ${body.trim()}`)
  return JSON.parse(body) as T
}

/** The management ports of the data planes at a location: an address, or all running pods of a Gateway. */
export async function listTargets(location: Location): Promise<Target[]> {
  if (location.kind === 'address') {
    const { host, port } = location
    return [{ name: `${host}:${port}`, request: (sent) => send({ host, port, agent: false }, sent) }]
  }
  const { kubeconfig, namespace } = location
  return (await listPods(location)).map((pod) => ({
    name: pod,
    async request(sent) {
      const { openPodPort } = await import('../kube/port-forward.ts')
      const stream = await openPodPort(kubeconfig, { namespace, pod, port: ADMIN_PORT })
      return sendOver(stream, sent)
    },
  }))
}

/** Sends a request over a forwarded port, which is closed with the response. */
async function sendOver(stream: Duplex, sent: TargetRequest): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: false })
  agent.createConnection = () => stream
  try {
    if (stream.destroyed) throw stream.errored ?? new CommandError('PX6003', 'the pod closed the forwarded connection')
    const response = await send({ host: '127.0.0.1', port: ADMIN_PORT, agent }, sent)
    response.once('close', () => stream.destroy())
    return response
  } catch (error) {
    stream.destroy()
    throw error
  }
}

function send(to: RequestOptions, { method, path, headers, body, signal }: TargetRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = request({ ...to, method, path, headers, signal }, (response) => {
      response.on('error', () => undefined)
      resolve(response)
    })
    call.on('error', reject)
    call.end(body)
  })
}
