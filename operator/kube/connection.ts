import { existsSync, readFileSync } from 'node:fs'
import { Agent as HttpAgent, request as requestHttp, type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent, request as requestHttps, type AgentOptions } from 'node:https'
import { delimiter } from 'node:path'
// Not the package's index, which loads a model of every Kubernetes kind: 100 MiB that nothing here reads.
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'

/** An error response of the API server. `message` contains no request body. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** `reason` of the Status, for example `Conflict`, or ''. */
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

interface RequestBody {
  readonly body?: object
  /** Default `application/json`. */
  readonly contentType?: 'application/json' | 'application/merge-patch+json' | 'application/apply-patch+yaml'
  /** Default 30 s. */
  readonly timeoutMs?: number
}

/** Talks to one API server. */
export interface KubeConnection {
  /** Rejects with an ApiError for a status of 400 and more, with an Error when there was no answer. */
  request<T extends object>(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, options?: RequestBody): Promise<T>
  /** Reads an endless answer line by line until the server ends it (resolves) or `signal` aborts it (rejects). */
  stream(path: string, onLine: (line: string) => void, signal: AbortSignal): Promise<void>
  close(): void
}

export interface ConnectOptions {
  /** Path of a kubeconfig; without it the service account of the pod. */
  readonly kubeconfig?: string | undefined
  readonly userAgent?: string
}

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'

/** Connects by KUBECONFIG, or with the service account of the pod. Throws with the missing piece. */
export function connect({ kubeconfig, userAgent = 'proxy-operator' }: ConnectOptions): KubeConnection {
  const config = loadConfig(kubeconfig)
  const cluster = config.getCurrentCluster()
  if (!cluster) throw new Error(`kubeconfig ${kubeconfig ?? ''}: current-context names no cluster; set current-context`)
  const server = new URL(cluster.server)
  const plain = server.protocol === 'http:' ? new HttpAgent({ keepAlive: true }) : undefined
  let secure: { readonly agent: Agent; readonly id: string } | undefined

  /** One agent for as long as certificates stay the same, so that connections are kept. */
  const agentFor = (options: AgentOptions): Agent => {
    const { ca, cert, key, rejectUnauthorized, servername } = options
    const id = [ca, cert, key, rejectUnauthorized, servername].map((part) => (Buffer.isBuffer(part) ? part.toString('base64') : JSON.stringify(part))).join(' ')
    if (secure?.id === id) return secure.agent
    const kept: AgentOptions = { keepAlive: true, keepAliveMsecs: 10_000, maxFreeSockets: 64 }
    for (const [field, value] of Object.entries({ ca, cert, key, rejectUnauthorized, servername }))
      if (value !== undefined) Object.assign(kept, { [field]: value })
    secure = { agent: new Agent(kept), id }
    return secure.agent
  }

  const send = async (
    method: string,
    path: string,
    payload: Buffer | undefined,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<IncomingMessage> => {
    const options: RequestOptions & AgentOptions = {}
    await config.applyToHTTPSOptions(options)
    const auth = typeof options.auth === 'string' ? { auth: options.auth } : {}
    const all = { ...(options.headers as Record<string, string> | undefined), accept: 'application/json', 'user-agent': userAgent, ...headers }
    const proxied = cluster.proxyUrl === undefined ? undefined : options.agent
    const agent = proxied ?? plain ?? agentFor(options)
    const url = new URL(server.pathname.replace(/\/$/, '') + path, server)
    return new Promise((resolve, reject) => {
      const onResponse = (response: IncomingMessage): void => resolve(response)
      const given = { method, agent, headers: all, signal, ...auth }
      const sent: ClientRequest = plain ? requestHttp(url, given, onResponse) : requestHttps(url, given, onResponse)
      sent.on('error', (error) => reject(new Error(`${method} ${url.pathname}: ${error.message}`, { cause: error })))
      sent.end(payload)
    })
  }

  return {
    async request<T extends object>(
      method: string,
      path: string,
      { body, contentType = 'application/json', timeoutMs = 30_000 }: RequestBody = {},
    ): Promise<T> {
      const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
      const headers: Record<string, string> = payload === undefined ? {} : { 'content-type': contentType, 'content-length': String(payload.length) }
      const response = await send(method, path, payload, headers, AbortSignal.timeout(timeoutMs))
      const text = await readAll(response)
      const status = response.statusCode ?? 0
      if (status >= 400) throw toApiError(status, method, path, text)
      return parseObject(text) as T
    },
    async stream(path, onLine, signal) {
      const response = await send('GET', path, undefined, {}, signal)
      const status = response.statusCode ?? 0
      if (status >= 400) throw toApiError(status, 'GET', path, await readAll(response))
      response.setEncoding('utf8')
      let rest = ''
      for await (const chunk of response as AsyncIterable<string>) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) if (line !== '') onLine(line)
      }
    },
    close() {
      plain?.destroy()
      secure?.agent.destroy()
    },
  }
}

/** The kubeconfig of a path, or of several in the syntax of kubectl; without a path the service account of the pod. Throws with the missing piece. */
export function loadConfig(kubeconfig: string | undefined): KubeConfig {
  if (kubeconfig !== undefined && kubeconfig !== '') {
    try {
      return loadFiles(kubeconfig)
    } catch (error) {
      throw new Error(`KUBECONFIG ${kubeconfig}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
  const config = new KubeConfig()
  if (process.env['KUBERNETES_SERVICE_HOST'] === undefined)
    throw new Error('no cluster: set KUBECONFIG, run in a pod (KUBERNETES_SERVICE_HOST is not set), or name a directory of manifests with --dir')
  readFileSync(SERVICE_ACCOUNT_TOKEN)
  config.loadFromCluster()
  return config
}

/** Of several files the first to name a thing wins, and those that are not there do not count, unless none is. */
function loadFiles(paths: string): KubeConfig {
  const listed = existsSync(paths) ? [paths] : paths.split(delimiter).filter((path) => path !== '')
  const found = listed.filter((path) => existsSync(path))
  const files = (found.length === 0 ? listed : found).map((path) => {
    const config = new KubeConfig()
    config.loadFromFile(path)
    return config
  })
  const merged = new KubeConfig()
  merged.loadFromOptions({
    clusters: mergeNamed(files.map(({ clusters }) => clusters)),
    users: mergeNamed(files.map(({ users }) => users)),
    contexts: mergeNamed(files.map(({ contexts }) => contexts)),
    currentContext: files.map(({ currentContext }) => currentContext).find((name) => name !== undefined && name !== ''),
  })
  return merged
}

function mergeNamed<T extends { readonly name: string }>(lists: readonly (readonly T[] | undefined)[]): T[] {
  const byName = new Map<string, T>()
  for (const entry of lists.flatMap((list) => list ?? [])) if (!byName.has(entry.name)) byName.set(entry.name, entry)
  return [...byName.values()]
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function parseObject(text: string): object {
  try {
    return JSON.parse(text) as object
  } catch {
    return {}
  }
}

function toApiError(status: number, method: string, path: string, text: string): ApiError {
  const { reason = '', message } = parseObject(text) as { reason?: string; message?: string }
  return new ApiError(status, reason, `${method} ${path.split('?')[0]}: ${message ?? `the API server answered ${status}`}`)
}
