import { Agent, request, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { homedir } from 'node:os'
import type { Duplex } from 'node:stream'
import { join } from 'node:path'
import { existsSync } from 'node:fs'
import type { KubeConnection } from '../../kube/connection.ts'
import { ADMIN_PORT, ADMIN_TOKEN_ENTRY, adminTokenSecret, safeName } from '#api/names.ts'
import { sha256Hex } from '../../deploy/hash.ts'
import { GATEWAY_NAME_LABEL } from '../../deploy/metadata.ts'
import type { Target, TargetRequest } from '../console/targets.ts'
import { CommandError, UsageError } from '../output.ts'
import type { Invocation } from '../types.ts'

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
  return location.kind === 'address' ? adminAt(`${location.host}:${location.port}`, location.credential) : adminOfGateway(location)
}

/** Where the data planes are: at an address, or in the pods of a Gateway. */
export type Location =
  | { readonly kind: 'address'; readonly host: string; readonly port: number; readonly credential: Credential }
  | {
      readonly kind: 'pods'
      readonly namespace: string
      readonly gateway: string
      readonly kubeconfig: string | undefined
      /** Undefined: that of the cluster. */
      readonly credential: Credential | undefined
    }

/** Finds the data planes that the options name; see `openAdmin`. */
export async function locate({ options, env }: Pick<Invocation, 'options' | 'env'>, route?: string): Promise<Location> {
  const { admin, gateway, namespace } = options
  if (admin !== undefined && gateway !== undefined) throw new UsageError('--admin and --gateway name two data planes: give one of them')
  const credential = tokenOf(env)
  if (admin !== undefined) return { kind: 'address', ...parseAddress(admin), credential }
  const kubeconfig = kubeconfigOf({ options, env })
  if (gateway !== undefined) return podsOf(gateway, kubeconfig, credential)
  const local: Location = { kind: 'address', host: '127.0.0.1', port: ADMIN_PORT, credential }
  if (kubeconfig === undefined) return local
  const found = await withCluster(kubeconfig, async (connection) => (await import('./gateways.ts')).findGateway(connection, { namespace, route })).catch(
    (error: unknown) => {
      if (isUnnamedAndUnreachable(error, { options, env })) return undefined
      throw explainUnreachable(error, kubeconfig)
    },
  )
  return found === undefined ? local : podsOf(found, kubeconfig, credential)
}

function podsOf(text: string, kubeconfig: string | undefined, given: Credential): Location {
  const [namespace = '', gateway = '', ...rest] = text.split('/')
  if (namespace === '' || gateway === '' || rest.length > 0) throw new UsageError(`--gateway: ${JSON.stringify(text)} is not <namespace>/<name>`)
  return { kind: 'pods', namespace, gateway, kubeconfig, credential: given.isSet ? given : undefined }
}

async function withCluster<T>(kubeconfig: string | undefined, ask: (connection: KubeConnection) => Promise<T>): Promise<T> {
  const { connect } = await import('../../kube/connection.ts')
  const connection = connect({ kubeconfig, userAgent: 'proxyctl' })
  try {
    return await ask(connection)
  } finally {
    connection.close()
  }
}

/** An admin endpoint by its address. */
export function adminAt(address: string, credential: Credential): Admin {
  const { host, port } = parseAddress(address)
  return {
    name: address,
    async ask(method, path, { onSent, signal } = {}) {
      const call = request({ host, port, method, path, headers: credential.headers, agent: false, signal })
      const response = await receive(call, onSent).catch((error: Error) => {
        throw new CommandError('PX6003', `admin endpoint ${address}: ${error.message}; name the data plane with --admin HOST:PORT or --gateway NS/NAME`, {
          cause: error,
        })
      })
      if (response.status === 401) throw refusedBy(address, credential)
      return response
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
  const { pods, credential } = await readPods(location)
  const [pod = ''] = pods
  const name = `pod ${namespace}/${pod}`
  return {
    name,
    async ask(method, path, { onSent, signal } = {}) {
      const { openPodPort } = await import('../../kube/port-forward.ts')
      const stream = await openPodPort(kubeconfig, { namespace, pod, port: ADMIN_PORT })
      const agent = new Agent({ keepAlive: false })
      agent.createConnection = () => stream
      const call = request({ host: '127.0.0.1', port: ADMIN_PORT, method, path, headers: credential.headers, agent, signal })
      const response = await receive(call, onSent).finally(() => stream.destroy())
      if (response.status === 401) throw refusedBy(name, credential)
      return response
    },
  }
}

/** Running pods of a Gateway that are not being deleted, at least one, and their token. Rejects with the cause if there is none. */
async function readPods({
  kubeconfig,
  namespace,
  gateway,
  credential,
}: Extract<Location, { kind: 'pods' }>): Promise<{ readonly pods: readonly string[]; readonly credential: Credential }> {
  return withCluster(kubeconfig, async (connection) => {
    const pods = await findPods(connection, namespace, gateway)
    return { pods, credential: credential ?? (await readToken(connection, namespace, gateway)) }
  }).catch((error: unknown) => {
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
    const { host, port, credential } = location
    const name = `${host}:${port}`
    return [{ name, request: async (sent) => checkAccess(await send({ host, port, agent: false }, withToken(sent, credential)), name, credential) }]
  }
  const { kubeconfig, namespace } = location
  const { pods, credential } = await readPods(location)
  return pods.map((pod) => ({
    name: pod,
    async request(sent) {
      const { openPodPort } = await import('../../kube/port-forward.ts')
      const stream = await openPodPort(kubeconfig, { namespace, pod, port: ADMIN_PORT })
      return checkAccess(await sendOver(stream, withToken(sent, credential)), `pod ${namespace}/${pod}`, credential)
    },
  }))
}

const withToken = (sent: TargetRequest, { headers }: Credential): TargetRequest => ({ ...sent, headers: { ...sent.headers, ...headers } })

function checkAccess(response: IncomingMessage, name: string, credential: Credential): IncomingMessage {
  if (response.statusCode !== 401) return response
  response.destroy()
  throw refusedBy(name, credential)
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

/** What requests to an admin endpoint carry. */
interface Credential {
  readonly headers: Readonly<Record<string, string>>
  readonly isSet: boolean
  /** The fix if the endpoint does not accept it. */
  readonly fix: string
}

const bearer = (token: string): Credential['headers'] => ({ authorization: `Bearer ${token}` })

/** The token that the user gives with ADMIN_TOKEN. */
export function tokenOf(env: Invocation['env']): Credential {
  const token = env['ADMIN_TOKEN']?.trim() ?? ''
  return token === ''
    ? { headers: {}, isSet: false, fix: 'set ADMIN_TOKEN to its token' }
    : { headers: bearer(token), isSet: true, fix: 'ADMIN_TOKEN is set, and is not its token: correct it, or unset it to read the token from the cluster' }
}

/** The token of a Gateway's data planes. Those of older versions need none, so that a user who may not read it asks without one. */
export async function readToken(connection: KubeConnection, namespace: string, gateway: string): Promise<Credential> {
  const name = adminTokenSecret(safeName(gateway, sha256Hex), sha256Hex)
  const secret = `Secret ${namespace}/${name}`
  try {
    const { data = {} } = await connection.request<{ data?: Readonly<Record<string, string>> }>('GET', `/api/v1/namespaces/${namespace}/secrets/${name}`)
    const token = Buffer.from(data[ADMIN_TOKEN_ENTRY] ?? '', 'base64')
      .toString('utf8')
      .trim()
    if (token === '') return { headers: {}, isSet: false, fix: `${secret} has no entry ${ADMIN_TOKEN_ENTRY}: delete it, and the operator makes another` }
    return { headers: bearer(token), isSet: true, fix: `it started with another token than that of ${secret}: set ADMIN_TOKEN, or wait for its rollout` }
  } catch (error) {
    const { status } = error as { status?: number }
    if (status !== 403 && status !== 404) throw error
    const cause = status === 404 ? `there is no ${secret}` : `the user of the kubeconfig may not read ${secret}: verb get is missing`
    return { headers: {}, isSet: false, fix: `${cause}; add it, or set ADMIN_TOKEN to the token` }
  }
}

/** The response was 401. */
const refusedBy = (name: string, { fix }: Credential): CommandError => new CommandError('PX6004', `${name} refused the request without its token: ${fix}`)
