import { FIELD_MANAGER } from '#api/names.ts'
import type { KubeConnection } from '../kube/connection.ts'
import { createQueue } from '../kube/queue.ts'
import type { Clock } from '../serve/debounce.ts'
import type { ConfigMap } from '../source/objects.ts'
import type { Memory } from './store.ts'

export interface ConfigMapMemoryOptions {
  /** Prefix of the names `<kind>-<source>`, value of the label, and key (operator.md §7.1). */
  readonly kind: 'jwks-store' | 'openapi-store' | 'plugin-store'
  readonly connection: KubeConnection
  readonly clock: Clock
  /** Where the ConfigMaps are: the operator's own namespace. */
  readonly namespace: string
  /** A ConfigMap of that namespace as last seen. Everything is listed before the first value is recalled. */
  readonly find: (name: string) => ConfigMap | undefined
  /** Every ConfigMap of that namespace as last seen. */
  readonly list: () => readonly ConfigMap[]
  /** Only the leader writes; checked before each write. */
  readonly isLeader: () => boolean
  readonly onError: (name: string, error: unknown) => void
}

export interface ConfigMapMemory extends Memory<string> {
  /** Called when this replica becomes leader: writes what it fetched before. */
  recheckAll(): void
  /** Called once all wanted values were recalled: deletes the ConfigMaps that an earlier operator left. */
  tidy(): void
  close(): void
}

const LABEL = 'app.kubernetes.io/component'

/** Keeps values in ConfigMaps, so that after a restart they are in force before the first fetch succeeds. */
export function createConfigMapMemory(options: ConfigMapMemoryOptions): ConfigMapMemory {
  const { kind, connection, clock, namespace, find, list, isLeader, onError } = options
  // ConfigMaps of users with such a name are neither read nor deleted.
  const isOwn = ({ metadata }: ConfigMap): boolean => metadata.labels?.[LABEL] === kind && metadata.name.startsWith(`${kind}-`)
  const wanted = new Set<string>()
  const texts = new Map<string, string>()
  const path = `/api/v1/namespaces/${namespace}/configmaps`

  const findOwn = (name: string): ConfigMap | undefined => {
    const found = find(name)
    return found && isOwn(found) ? found : undefined
  }
  const reconcile = async (name: string): Promise<void> => {
    if (!isLeader()) return
    const source = name.slice(kind.length + 1)
    const text = texts.get(source)
    const stored = findOwn(name)
    if (!wanted.has(source)) {
      if (stored) await connection.request('DELETE', `${path}/${name}`)
    } else if (text !== undefined && text !== stored?.data?.[kind]) {
      const query = new URLSearchParams({ fieldManager: FIELD_MANAGER, force: 'true' }).toString()
      const metadata = { name, namespace, labels: { [LABEL]: kind } }
      await connection.request('PATCH', `${path}/${name}?${query}`, {
        body: { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [kind]: text } },
        contentType: 'application/apply-patch+yaml',
      })
    }
  }
  const queue = createQueue({
    work: reconcile,
    concurrency: 2,
    intervalMs: 1000,
    backoff: { firstMs: 1000, maxMs: 60_000 },
    clock,
    onError,
  })
  const enqueue = (source: string): void => {
    if (isLeader()) queue.add(`${kind}-${source}`)
  }

  return {
    recall(source) {
      wanted.add(source)
      return findOwn(`${kind}-${source}`)?.data?.[kind]
    },
    keep(source, text) {
      texts.set(source, text)
      enqueue(source)
    },
    forget(source) {
      wanted.delete(source)
      texts.delete(source)
      enqueue(source)
    },
    recheckAll() {
      for (const source of texts.keys()) enqueue(source)
    },
    tidy() {
      if (!isLeader()) return
      for (const each of list()) {
        const source = each.metadata.name.slice(kind.length + 1)
        if (isOwn(each) && !wanted.has(source)) enqueue(source)
      }
    },
    close: queue.clear,
  }
}
