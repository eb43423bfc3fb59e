import { hash } from 'node:crypto'
import { FIELD_MANAGER, GATEWAY_GROUP, safeName } from '#api/names.ts'
import { ApiError, type KubeConnection } from '../kube/connection.ts'
import { COUNTERS_LABEL } from '../kube/normalize.ts'
import type { StoredBucket } from './pool.ts'
import type { QuotaStore } from './server.ts'

export interface ConfigMapStoreOptions {
  readonly connection: KubeConnection
  /** UID of a Gateway, `<namespace>/<name>`; undefined: it is gone. */
  readonly findUid: (gateway: string) => string | undefined
}

interface StoredConfigMap {
  readonly metadata: { readonly resourceVersion?: string }
  readonly data?: Readonly<Record<string, string>>
}

const KEY = 'counters'
/** A ConfigMap holds at most 1 MiB. */
const MAX_BYTES = 900 * 1024

/**
 * Keeps counters of budgets in a ConfigMap of each Gateway, `<gateway>-budgets`, which the Gateway owns. Writes are conditional on the
 * resourceVersion that was read or written last, so that an operator that does not lead any more cannot replace newer counters.
 */
export function createConfigMapStore({ connection, findUid }: ConfigMapStoreOptions): QuotaStore {
  /** Of each Gateway; undefined: there is no ConfigMap. */
  const versions = new Map<string, string | undefined>()
  return {
    async load(gateway) {
      const { path, name } = placeOf(gateway)
      try {
        const { metadata, data } = await connection.request<StoredConfigMap>('GET', `${path}/${name}`)
        versions.set(gateway, metadata.resourceVersion)
        return decodeBuckets(data?.[KEY] ?? '')
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error
        versions.set(gateway, undefined)
        return []
      }
    },
    async save(gateway, buckets) {
      const uid = findUid(gateway)
      if (uid === undefined) return
      const { namespace, path, name } = placeOf(gateway)
      const resourceVersion = versions.get(gateway)
      const ownerReferences = [{ apiVersion: `${GATEWAY_GROUP}/v1`, kind: 'Gateway', name: gateway.slice(namespace.length + 1), uid }]
      const metadata = { name, namespace, labels: { [COUNTERS_LABEL]: 'true' }, ownerReferences }
      const data = { [KEY]: encodeBuckets(buckets) }
      const query = `?fieldManager=${FIELD_MANAGER}`
      const written =
        resourceVersion === undefined
          ? await connection.request<StoredConfigMap>('POST', `${path}${query}`, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data } })
          : await connection.request<StoredConfigMap>('PATCH', `${path}/${name}${query}`, {
              body: { metadata: { ...metadata, resourceVersion }, data },
              contentType: 'application/merge-patch+json',
            })
      versions.set(gateway, written.metadata.resourceVersion)
    },
  }
}

function placeOf(gateway: string): { readonly namespace: string; readonly path: string; readonly name: string } {
  const slash = gateway.indexOf('/')
  const namespace = gateway.slice(0, slash)
  return {
    namespace,
    path: `/api/v1/namespaces/${namespace}/configmaps`,
    name: safeName(`${gateway.slice(slash + 1)}-budgets`, (text) => hash('sha256', text)),
  }
}

/** `limits`: for each, keys and windows; replicas by their index. If it is too large, the buckets with the least use are left out. */
interface Encoded {
  readonly version: 1
  readonly replicas: readonly string[]
  readonly limits: Readonly<
    Record<string, readonly (readonly [key: string, index: number, ...leases: (readonly [replica: number, current: number, held: number])[]])[]>
  >
}

export function encodeBuckets(buckets: readonly StoredBucket[], maxBytes = MAX_BYTES): string {
  const used = ([, , , leases]: StoredBucket): number => leases.reduce((sum, [, current]) => sum + current, 0)
  let kept = [...buckets]
  for (;;) {
    const text = encode(kept)
    if (Buffer.byteLength(text) <= maxBytes) return text
    kept = kept.toSorted((a, b) => used(b) - used(a)).slice(0, Math.floor(kept.length * 0.8))
  }
}

function encode(buckets: readonly StoredBucket[]): string {
  const replicas = new Map<string, number>()
  const numberOf = (replica: string): number => {
    const known = replicas.get(replica) ?? replicas.size
    replicas.set(replica, known)
    return known
  }
  const limits: Record<string, Encoded['limits'][string][number][]> = {}
  for (const [limit, key, index, leases] of buckets)
    (limits[limit] ??= []).push([key, index, ...leases.map(([replica, current, held]) => [numberOf(replica), current, held] as const)])
  return JSON.stringify({ version: 1, replicas: [...replicas.keys()], limits } satisfies Encoded)
}

/** @throws Error if the text is none that `encodeBuckets` has returned */
export function decodeBuckets(text: string): StoredBucket[] {
  if (text === '') return []
  const { version, replicas, limits } = JSON.parse(text) as Encoded
  if (version !== 1)
    throw new Error(`counters of budgets have version ${String(version)}, which this operator does not know; delete the ConfigMap, or use a newer operator`)
  return Object.entries(limits).flatMap(([limit, buckets]) =>
    buckets.map(([key, index, ...leases]): StoredBucket => {
      return [limit, key, index, leases.map(([replica, current, held]) => [replicas[replica] ?? '', current, held] as const)]
    }),
  )
}
