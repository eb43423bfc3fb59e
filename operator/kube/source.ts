import { isDeepStrictEqual } from 'node:util'
import { CONTROLLER_NAME } from '#api/names.ts'
import { debounce, type Clock } from '../serve/debounce.ts'
import type { LabelSelector } from '../source/gateway-api.ts'
import { inferenceKinds, keyOf, kinds, type Kind, type KubeObject, type ObjectByKind } from '../source/objects.ts'
import { createSnapshot, updateSnapshot, type ObjectChange, type Snapshot } from '../source/snapshot.ts'
import { matchesSelector } from '../model/selectors.ts'
import type { KubeConnection } from './connection.ts'
import { normalize, type RawObject } from './normalize.ts'
import { collectionPaths, statusKinds } from './resources.ts'
import { watchCollection } from './watch.ts'

/** An object as it was last seen in the cluster, and where it is served. */
export interface LiveObject {
  readonly object: KubeObject
  readonly resourceVersion: string
  /** For requests about it (resources.ts). */
  readonly collection: string
}

export interface ClusterSource {
  /** Watched kinds. */
  readonly kinds: readonly Kind[]
  find(kind: Kind, namespace: string, name: string): LiveObject | undefined
  /** All of a namespace, also of one that no selector selects. */
  list<K extends Kind>(kind: K, namespace: string): readonly ObjectByKind[K][]
  /** Path of the kind's collection; undefined while it is not installed. */
  collectionOf(kind: Kind): string | undefined
  /** Whether everything was listed once, or is known not to be installed. */
  isSynced(): boolean
  /** Kinds that are not listed yet. */
  missing(): readonly Kind[]
  close(): void
}

export interface ClusterSourceOptions {
  readonly connection: KubeConnection
  /** Selectors of namespaces (operator.md §5). A namespace must match one; without selectors all are selected. */
  readonly namespaceSelectors: readonly LabelSelector[]
  /** The first once everything is listed; then one for each burst of changes. */
  readonly onSnapshot: (snapshot: Snapshot) => void
  /** Only the status of an object has changed. */
  readonly onStatus: (object: KubeObject) => void
  readonly onError: (kind: Kind, error: unknown) => void
  readonly clock: Clock
  /** Whether InferencePools, and Pods as their endpoints, are watched. Default false. */
  readonly isInferenceEnabled?: boolean
  /** Default 20 ms quiet, 500 ms at most. */
  readonly debounce?: { readonly quietMs: number; readonly maxMs: number }
  /** Default 5 s. */
  readonly absentPollMs?: number
}

/** Excludes Secrets that no Gateway refers to, which are numerous and large (operator.md §7.1). */
export const collectionQueries: Partial<Record<Kind, Readonly<Record<string, string>>>> = {
  Secret: { fieldSelector: 'type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token' },
}

/** Follows every kind that the operator reads. A kind whose CRD is missing counts as empty until it is there. */
export function watchCluster(options: ClusterSourceOptions): ClusterSource {
  const { connection, namespaceSelectors, clock, isInferenceEnabled = false } = options
  const allKinds = (Object.keys(kinds) as Kind[]).filter((kind) => isInferenceEnabled || !inferenceKinds.has(kind))
  const stores = new Map<Kind, Map<string, LiveObject>>(allKinds.map((kind) => [kind, new Map()]))
  const collections = new Map<Kind, string>()
  const waiting = new Set<Kind>(allKinds)

  const series = new SnapshotSeries(stores, namespaceSelectors)
  const flush = (): void => {
    if (waiting.size === 0) options.onSnapshot(series.next())
  }
  const debounced = debounce(flush, options.debounce ?? { quietMs: 20, maxMs: 500 }, clock)

  const watches = allKinds.map((kind) => {
    const store = stores.get(kind) ?? new Map<string, LiveObject>()
    /** Stores an object. Returns whether the result of translation can change. */
    const put = (raw: RawObject): boolean => {
      const next = normalize(kind, raw)
      const key = keyOf(next)
      const before = store.get(key)
      const resourceVersion = raw.metadata.resourceVersion ?? ''
      const change = before === undefined ? 'all' : compare(before.object, next)
      const object =
        before === undefined || change === 'all' ? next : change === 'none' ? before.object : withStatus(before.object, next as { status?: object })
      store.set(key, { object, resourceVersion, collection: collections.get(kind) ?? '' })
      if (change !== 'none') series.note(object)
      if (change === 'status') options.onStatus(object)
      return change === 'all'
    }
    return watchCollection({
      connection,
      clock,
      paths: collectionPaths(kind),
      ...(collectionQueries[kind] ? { query: collectionQueries[kind] } : {}),
      ...(options.absentPollMs === undefined ? {} : { absentPollMs: options.absentPollMs }),
      onList(items, path) {
        // That a kind is there now is news, even without objects.
        let isChanged = waiting.delete(kind) || collections.get(kind) !== path
        if (path === undefined) collections.delete(kind)
        else collections.set(kind, path)
        const listed = new Set(
          items.map((raw) => (raw.metadata.namespace === undefined ? raw.metadata.name : `${raw.metadata.namespace}/${raw.metadata.name}`)),
        )
        for (const [key, { object }] of store) {
          if (listed.has(key)) continue
          store.delete(key)
          series.note(object)
          isChanged = true
        }
        for (const raw of items) isChanged = put(raw) || isChanged
        if (isChanged) debounced.schedule()
      },
      onUpsert(raw) {
        if (put(raw)) debounced.schedule()
      },
      onDelete(raw) {
        const object = normalize(kind, raw)
        if (!store.delete(keyOf(object))) return
        series.note(object)
        debounced.schedule()
      },
      onError: (error) => options.onError(kind, error),
    })
  })

  return {
    kinds: allKinds,
    find: (kind, namespace, name) => stores.get(kind)?.get(namespace === '' ? name : `${namespace}/${name}`),
    list: <K extends Kind>(kind: K, namespace: string) =>
      [...(stores.get(kind)?.values() ?? [])].flatMap(({ object }) => (object.metadata.namespace === namespace ? [object as ObjectByKind[K]] : [])),
    collectionOf: (kind) => collections.get(kind),
    isSynced: () => waiting.size === 0,
    missing: () => [...waiting],
    close() {
      debounced.cancel()
      for (const each of watches) each.close()
    },
  }
}

type ObjectKey = Pick<ObjectChange, 'kind' | 'namespace' | 'name'>

/** Snapshots of the stored objects, each made from the previous one and the objects that changed since. */
class SnapshotSeries {
  readonly #stores: ReadonlyMap<Kind, ReadonlyMap<string, LiveObject>>
  readonly #namespaceSelectors: readonly LabelSelector[]
  #last: Snapshot | undefined
  /** `<kind>/<key>` of the objects that differ from the last snapshot. */
  readonly #changed = new Map<string, ObjectKey>()
  #isSelectionChanged = false

  constructor(stores: ReadonlyMap<Kind, ReadonlyMap<string, LiveObject>>, namespaceSelectors: readonly LabelSelector[]) {
    this.#stores = stores
    this.#namespaceSelectors = namespaceSelectors
  }

  /** Records that an object was added, changed or deleted. */
  note(object: KubeObject): void {
    const { kind } = object
    const { namespace, name } = object.metadata
    this.#changed.set(`${kind}/${keyOf(object)}`, { kind, namespace, name })
    if (kind === 'Namespace' && this.#namespaceSelectors.length > 0) this.#isSelectionChanged = true
  }

  next(): Snapshot {
    const snapshot =
      this.#last === undefined || this.#isSelectionChanged
        ? createSnapshot(this.#stores.values().flatMap((store) => store.values().flatMap(({ object }) => (this.#isIncluded(object) ? [object] : []))))
        : updateSnapshot(
            this.#last,
            this.#changed.values().map((key) => this.#read(key)),
          )
    this.#changed.clear()
    this.#isSelectionChanged = false
    this.#last = snapshot
    return snapshot
  }

  #read(key: ObjectKey): ObjectChange {
    const object = this.#stores.get(key.kind)?.get(keyOf({ metadata: key }))?.object
    return { ...key, object: object && this.#isIncluded(object) ? object : undefined }
  }

  /** Grants of unselected namespaces count: otherwise a reference would be reported as not permitted instead of not found. */
  #isIncluded({ kind, metadata }: KubeObject): boolean {
    return kind === 'ReferenceGrant' || this.#isSelected(metadata.namespace)
  }

  #isSelected(namespace: string): boolean {
    if (namespace === '' || this.#namespaceSelectors.length === 0) return true
    const labels = this.#stores.get('Namespace')?.get(namespace)?.object.metadata.labels ?? {}
    return this.#namespaceSelectors.some((selector) => matchesSelector(selector, labels))
  }
}

/** The object with the status of a newer version. Everything else keeps its identity, by which translation sees that nothing else has changed. */
const withStatus = (object: KubeObject, { status }: { readonly status?: object }): KubeObject => ({ ...object, status }) as KubeObject

/**
 * What differs between two states of an object. Our own status writes come back as events: translating everything again for each
 * would cost as much as the change that caused them. Of a status, translation reads only whose entries there are.
 */
function compare(before: KubeObject, after: KubeObject): 'none' | 'status' | 'all' {
  if (!statusKinds.has(before.kind)) return isDeepStrictEqual(before, after) ? 'none' : 'all'
  const { status: oldStatus, ...oldRest } = before as KubeObject & { status?: object }
  const { status: newStatus, ...newRest } = after as KubeObject & { status?: object }
  if (!isDeepStrictEqual(oldRest, newRest)) return 'all'
  if (isDeepStrictEqual(oldStatus, newStatus)) return 'none'
  return countForeign(oldStatus as SharedStatus) === countForeign(newStatus as SharedStatus) ? 'status' : 'all'
}

type SharedStatus = { readonly ancestors?: readonly { readonly controllerName?: string }[] } | undefined

function countForeign(status: SharedStatus): number {
  return status?.ancestors?.filter(({ controllerName }) => controllerName !== CONTROLLER_NAME).length ?? 0
}
