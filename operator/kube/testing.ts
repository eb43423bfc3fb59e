import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type KubeConnection } from './connection.ts'

/** An object of the fake API server. */
export interface StoredObject {
  apiVersion?: string
  kind?: string
  metadata: { name: string; namespace?: string; resourceVersion?: string; generation?: number; [field: string]: unknown }
  spec?: object
  status?: object
  [field: string]: unknown
}

/** A small API server on loopback: list in pages, watch with resume and compaction, create, replace, merge patch, apply, delete. */
export interface FakeApi {
  readonly connection: KubeConnection
  /** Content of a kubeconfig for this server. */
  readonly kubeconfig: string
  /** `<method> <path>` of every request, oldest first. */
  readonly requests: readonly string[]
  /** Serves one more collection; see {@link collections}. */
  install(collection: string): void
  remove(collection: string): void
  /** Creates or replaces an object behind every client's back. */
  put(collection: string, object: StoredObject): StoredObject
  drop(collection: string, namespace: string, name: string): void
  get(collection: string, namespace: string, name: string): StoredObject | undefined
  list(collection: string): readonly StoredObject[]
  /** Answers every request to `collection` whose method matches by `status`, until called again without one. */
  fail(method: string, collection: string, status?: number): void
  /** Answers POSTs to a path that is no collection. */
  onPost(path: string, answer: (body: object) => object): void
  /** Cuts every watch. */
  cutWatches(): void
  /** Forgets events, so that no watch can resume. */
  compact(): void
  close(): Promise<void>
}

/** Paths of collections, by plural. */
export const collections = {
  configMaps: '/api/v1/configmaps',
  events: '/api/v1/events',
  deployments: '/apis/apps/v1/deployments',
  gatewayClasses: '/apis/gateway.networking.k8s.io/v1/gatewayclasses',
  gateways: '/apis/gateway.networking.k8s.io/v1/gateways',
  httpRoutes: '/apis/gateway.networking.k8s.io/v1/httproutes',
  inferencePools: '/apis/inference.networking.k8s.io/v1/inferencepools',
  leases: '/apis/coordination.k8s.io/v1/leases',
  namespaces: '/api/v1/namespaces',
  podDisruptionBudgets: '/apis/policy/v1/poddisruptionbudgets',
  pods: '/api/v1/pods',
  proxyBackends: '/apis/proxy.dev/v1alpha1/proxybackends',
  proxyParameters: '/apis/proxy.dev/v1alpha1/proxyparameters',
  proxyPolicies: '/apis/proxy.dev/v1alpha1/proxypolicies',
  referenceGrants: '/apis/gateway.networking.k8s.io/v1/referencegrants',
  secrets: '/api/v1/secrets',
  serviceAccounts: '/api/v1/serviceaccounts',
  services: '/api/v1/services',
} as const

export interface FakeApiOptions {
  /** Collections to serve from the start. */
  readonly install?: readonly string[]
  /** Objects per page of a list; default 500. */
  readonly pageSize?: number
}

interface Place {
  readonly collection: string
  readonly namespace: string
  readonly name: string | undefined
  readonly isStatus: boolean
}

interface LoggedEvent {
  readonly collection: string
  readonly version: number
  readonly line: string
}

export async function startFakeApi({ install = [], pageSize = 500 }: FakeApiOptions = {}): Promise<FakeApi> {
  const objects = new ObjectStore()
  for (const collection of install) objects.install(collection)
  const server = new FakeServer(objects, pageSize)
  const kubeconfig = describeCluster(await server.listen())
  const connection = await connectTo(kubeconfig)
  return {
    connection,
    kubeconfig,
    requests: server.requests,
    install: (collection) => objects.install(collection),
    remove: (collection) => objects.remove(collection),
    put: (collection, object) => objects.put(collection, object),
    drop: (collection, namespace, name) => objects.drop(collection, namespace, name),
    get: (collection, namespace, name) => objects.get(collection, namespace, name),
    list: (collection) => objects.list(collection),
    fail(method, collection, status) {
      if (status === undefined) server.failures.delete(`${method} ${collection}`)
      else server.failures.set(`${method} ${collection}`, status)
    },
    onPost: (path, answer) => void server.posts.set(path, answer),
    cutWatches: () => objects.cutWatches(),
    compact: () => objects.compact(),
    async close() {
      connection.close()
      await server.close()
    },
  }
}

/** Objects by collection, their versions, and the watches that follow them. */
class ObjectStore {
  readonly #collections = new Map<string, Map<string, StoredObject>>()
  readonly #watches = new Set<{ readonly collection: string; readonly response: ServerResponse }>()
  #events: LoggedEvent[] = []
  #compactedAt = 0
  #version = 100

  get version(): number {
    return this.#version
  }

  has(collection: string): boolean {
    return this.#collections.has(collection)
  }

  install(collection: string): void {
    if (!this.has(collection)) this.#collections.set(collection, new Map())
  }

  remove(collection: string): void {
    this.#collections.delete(collection)
  }

  list(collection: string): readonly StoredObject[] {
    return [...(this.#collections.get(collection)?.values() ?? [])]
  }

  get(collection: string, namespace: string, name: string): StoredObject | undefined {
    return this.#collections.get(collection)?.get(keyOf(namespace, name))
  }

  put(collection: string, object: StoredObject): StoredObject {
    const store = this.#collections.get(collection)
    if (!store) throw new Error(`${collection} is not installed`)
    const key = keyOf(object.metadata.namespace, object.metadata.name)
    const before = store.get(key)
    if (before && JSON.stringify(withoutVersion(before)) === JSON.stringify(withoutVersion(object))) return before
    this.#version += 1
    const isNewSpec = !before || JSON.stringify(before.spec) !== JSON.stringify(object.spec)
    const generation = (before?.metadata.generation ?? 0) + (isNewSpec ? 1 : 0)
    const stored = structuredClone({
      ...object,
      metadata: { uid: `uid-${key}`, creationTimestamp: '2026-01-01T00:00:00Z', ...object.metadata, generation, resourceVersion: String(this.#version) },
    })
    store.set(key, stored)
    this.#emit(collection, before ? 'MODIFIED' : 'ADDED', stored)
    return stored
  }

  drop(collection: string, namespace: string, name: string): void {
    const object = this.get(collection, namespace, name)
    if (!object) return
    this.#collections.get(collection)?.delete(keyOf(namespace, name))
    this.#version += 1
    this.#emit(collection, 'DELETED', { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } })
  }

  /** Writes events after version `from` to the response, and all that follow. */
  watch(collection: string, from: number, response: ServerResponse): void {
    response.writeHead(200)
    response.flushHeaders()
    if (from < this.#compactedAt) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' } })}\n`)
      return
    }
    for (const event of this.#events) if (event.collection === collection && event.version > from) response.write(event.line)
    const entry = { collection, response }
    this.#watches.add(entry)
    response.on('close', () => this.#watches.delete(entry))
  }

  cutWatches(): void {
    for (const { response } of this.#watches) response.destroy()
  }

  compact(): void {
    this.#compactedAt = this.#version + 1
    this.#version += 1
    this.#events = []
  }

  #emit(collection: string, type: string, object: StoredObject): void {
    const line = `${JSON.stringify({ type, object })}\n`
    this.#events.push({ collection, version: this.#version, line })
    for (const watch of this.#watches) if (watch.collection === collection) watch.response.write(line)
  }
}

/** The HTTP side: requests as an API server answers them. */
class FakeServer {
  readonly requests: string[] = []
  /** Status by `<method> <collection>`. */
  readonly failures = new Map<string, number>()
  /** Responses to POST by path. */
  readonly posts = new Map<string, (body: object) => object>()
  readonly #objects: ObjectStore
  readonly #pageSize: number
  readonly #server = createServer((request, response) => void this.#respond(request, response))

  constructor(objects: ObjectStore, pageSize: number) {
    this.#objects = objects
    this.#pageSize = pageSize
  }

  /** Returns the URL of the server. */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const method = request.method ?? 'GET'
    this.requests.push(`${method} ${url.pathname}${url.search}`)
    // A patch need not have metadata.
    const body = { metadata: {}, ...(JSON.parse((await readBody(request)) || '{}') as object) } as StoredObject
    const post = this.posts.get(url.pathname)
    if (post && method === 'POST') return send(response, 201, post(body))
    const place = parsePath(url.pathname)
    const failure = this.failures.get(`${method} ${place.collection}`)
    if (failure !== undefined) return sendError(response, failure, 'Injected')
    if (!this.#objects.has(place.collection)) return sendError(response, 404, 'NotFound')
    if (method === 'DELETE') {
      this.#objects.drop(place.collection, place.namespace, place.name ?? '')
      return send(response, 200, {})
    }
    if (method !== 'GET') return this.#write(method, place, body, request.headers['content-type'] ?? '', response)
    if (place.name !== undefined) {
      const object = this.#objects.get(place.collection, place.namespace, place.name)
      return object ? send(response, 200, object) : sendError(response, 404, 'NotFound')
    }
    if (url.searchParams.has('watch')) this.#objects.watch(place.collection, Number(url.searchParams.get('resourceVersion')), response)
    else this.#list(place.collection, url.searchParams, response)
  }

  #list(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const all = this.#objects.list(collection)
    const start = Number(query.get('continue') ?? 0)
    const end = start + this.#pageSize
    send(response, 200, {
      metadata: { resourceVersion: String(this.#objects.version), ...(end < all.length ? { continue: String(end) } : {}) },
      // Items of a list have neither apiVersion nor kind, as those of a real API server.
      items: all.slice(start, end).map(({ apiVersion: _version, kind: _kind, ...rest }) => rest),
    })
  }

  #write(method: string, place: Place, body: StoredObject, type: string, response: ServerResponse): void {
    const { collection, namespace, isStatus } = place
    const { generateName } = body.metadata
    const name = place.name ?? (typeof generateName === 'string' ? `${generateName}${this.#objects.version}` : body.metadata.name)
    const before = this.#objects.get(collection, namespace, name)
    const isApply = type.includes('apply')
    if (!before && method !== 'POST' && !isApply) return sendError(response, 404, 'NotFound')
    if (before && method === 'POST') return sendError(response, 409, 'AlreadyExists')
    const given = body.metadata.resourceVersion
    if (before && given !== undefined && given !== before.metadata.resourceVersion) return sendError(response, 409, 'Conflict')
    const meta = { ...body.metadata, name, ...(namespace === '' ? {} : { namespace }) }
    const merged = method === 'PATCH' ? (mergePatch(before ?? {}, body) as StoredObject) : body
    const next = isStatus && before ? { ...before, status: merged.status ?? {} } : { ...merged, metadata: { ...before?.metadata, ...meta } }
    send(response, before ? 200 : 201, this.#objects.put(collection, next))
  }
}

const describeCluster = (server: string): string =>
  JSON.stringify({
    'current-context': 'fake',
    contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
    clusters: [{ name: 'fake', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'fake', user: { token: 'test' } }],
  })

async function connectTo(text: string): Promise<KubeConnection> {
  const directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
  const kubeconfig = join(directory, 'config')
  await writeFile(kubeconfig, text)
  try {
    return connect({ kubeconfig })
  } finally {
    await rm(directory, { recursive: true })
  }
}

const keyOf = (namespace: string | undefined, name: string): string => `${namespace ?? ''}/${name}`
const withoutVersion = (object: StoredObject): object => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: '', generation: 0, uid: '', creationTimestamp: '' },
})

function parsePath(path: string): Place {
  const parts = path.split('/').filter((part) => part !== '')
  const root = parts.splice(0, parts[0] === 'api' ? 2 : 3).join('/')
  const isNamespaced = parts[0] === 'namespaces' && parts.length > 2
  const namespace = isNamespaced ? (parts.splice(0, 2)[1] ?? '') : ''
  const [plural, name, sub] = parts
  return { collection: `/${root}/${plural}`, namespace, name, isStatus: sub === 'status' }
}

function mergePatch(target: object, patch: object): object {
  const result: Record<string, unknown> = { ...target }
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field]
    else if (typeof value === 'object' && !Array.isArray(value)) result[field] = mergePatch((result[field] as object | undefined) ?? {}, value as object)
    else result[field] = value
  }
  return result
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function sendError(response: ServerResponse, status: number, reason: string): void {
  send(response, status, { kind: 'Status', status: 'Failure', code: status, reason, message: `refused: ${reason}` })
}
