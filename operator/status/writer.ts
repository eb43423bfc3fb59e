import { FIELD_MANAGER } from '#api/names.ts'
import { ApiError, type KubeConnection } from '../kube/connection.ts'
import { createQueue } from '../kube/queue.ts'
import { objectPath } from '../kube/resources.ts'
import type { LiveObject } from '../kube/source.ts'
import type { Clock } from '../serve/debounce.ts'
import { kinds, type Kind, type KubeObject } from '../source/objects.ts'
import type { ObjectStatus } from '../model/translation.ts'
import { mergeStatus } from './merge.ts'

export interface StatusWriterOptions {
  readonly connection: KubeConnection
  /** The object as last seen in the cluster. */
  readonly find: (kind: Kind, namespace: string, name: string) => LiveObject | undefined
  /** Only the leader writes; checked before each write. */
  readonly isLeader: () => boolean
  readonly clock: Clock
  /** Wall clock, for transition times. */
  readonly now: () => Date
  /** `isRetried` is false when the API server rejected the status itself. */
  readonly onError: (key: string, error: unknown, isRetried: boolean) => void
  /** The API server accepted a status; `before` is the one that it replaced. */
  readonly onWrite?: (object: KubeObject, before: object | undefined, after: object) => void
}

/** The one writer of statuses (operator.md §4, §7.1). */
export interface StatusWriter {
  /** Sets all wanted statuses, sorted as those of a translation. A status that is stored already costs no request, one that is identical to the last published one no comparison. */
  publish(statuses: readonly ObjectStatus[]): void
  /** Compares an object again whose stored status changed. */
  recheck(object: KubeObject): void
  /** To be called when this replica becomes leader. */
  recheckAll(): void
  /** Number of writes that the API server accepted. */
  writes(): number
  close(): void
}

interface RawStored {
  readonly metadata: { readonly resourceVersion?: string }
  readonly status?: object
}

/** The object to merge into: from the cache, or newer. */
interface Base {
  readonly status: object | undefined
  readonly resourceVersion: string
}

const ATTEMPTS = 5
/**
 * Statuses have the field manager of all other writes. Merge patches replace the lists of conditions, so nothing remains of fields that an
 * earlier version wrote as `proxy-operator`.
 */
const QUERY = new URLSearchParams({ fieldManager: FIELD_MANAGER }).toString()
/** At most one write per object in this time, and the pause between attempts. */
const INTERVAL_MS = 100
/**
 * Writes in flight. An API server on two cores writes about as many statuses per second with 32 as with 64; it sheds load with 429, after which
 * each object waits for its own backoff.
 */
const CONCURRENCY = 32

export function createStatusWriter(options: StatusWriterOptions): StatusWriter {
  const { connection, clock } = options
  const desired = new Map<string, ObjectStatus>()
  let published: readonly ObjectStatus[] = []
  /** Our last write of an object, used until the cache shows another version than before the write. */
  const written = new Map<string, { readonly cached: string; readonly base: Base }>()
  /** Statuses that the API server rejected, as text. They are not retried until they differ. */
  const rejected = new Map<string, string>()
  let writes = 0

  const locate = (key: string): { status: ObjectStatus; live: LiveObject; base: Base } | undefined => {
    const status = desired.get(key)
    if (!status || !(status.kind in kinds)) return undefined
    const live = options.find(status.kind as Kind, status.namespace ?? '', status.name)
    if (!live) return undefined
    const own = written.get(key)
    if (own?.cached === live.resourceVersion) return { status, live, base: own.base }
    written.delete(key)
    return { status, live, base: { status: (live.object as { status?: object }).status, resourceVersion: live.resourceVersion } }
  }
  const timestamp = (): string => `${options.now().toISOString().slice(0, 19)}Z`

  const work = async (key: string): Promise<void> => {
    let fresh: Base | undefined
    for (let attempt = 1; ; attempt += 1) {
      if (!options.isLeader()) return
      const found = locate(key)
      if (!found) return
      const { status, live } = found
      const base = fresh ?? found.base
      const patch = mergeStatus(base.status, status.status, timestamp())
      if (!patch) return
      const path = objectPath(live.collection, status.namespace ?? '', status.name)
      try {
        const stored = await connection.request<RawStored>('PATCH', `${path}/status?${QUERY}`, {
          body: { metadata: { resourceVersion: base.resourceVersion }, status: patch },
          contentType: 'application/merge-patch+json',
        })
        writes += 1
        written.set(key, { cached: live.resourceVersion, base: toBase(stored) })
        options.onWrite?.(live.object, base.status, stored.status ?? {})
        return
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.status === 404) return
        if (error.status === 422 || error.status === 400) {
          rejected.set(key, JSON.stringify(status.status))
          options.onError(key, error, false)
          return
        }
        if (error.status !== 409 || attempt === ATTEMPTS) throw error
        // Another controller wrote first: merge into its version.
        await new Promise<void>((resolve) => void clock.after(INTERVAL_MS, resolve))
        fresh = toBase(await connection.request<RawStored>('GET', path))
      }
    }
  }
  const queue = createQueue({
    work,
    concurrency: CONCURRENCY,
    intervalMs: INTERVAL_MS,
    backoff: { firstMs: 200, maxMs: 30_000 },
    onError: (key, error) => options.onError(key, error, true),
    clock,
  })

  const check = (key: string): void => {
    if (!options.isLeader()) return
    const found = locate(key)
    if (!found || (rejected.has(key) && rejected.get(key) === JSON.stringify(found.status.status))) return
    if (mergeStatus(found.base.status, found.status.status, timestamp())) queue.add(key)
  }

  return {
    publish(statuses) {
      const { removed, changed } = compareStatuses(published, statuses)
      published = statuses
      for (const { kind, namespace = '', name } of removed) {
        const key = keyFor(kind, namespace, name)
        for (const map of [desired, written, rejected]) map.delete(key)
      }
      for (const status of changed) {
        const key = keyFor(status.kind, status.namespace ?? '', status.name)
        desired.set(key, status)
        check(key)
      }
    },
    recheck: ({ kind, metadata }) => check(keyFor(kind, metadata.namespace, metadata.name)),
    recheckAll() {
      for (const key of desired.keys()) check(key)
    },
    writes: () => writes,
    close: () => queue.clear(),
  }
}

interface StatusDifference {
  /** Statuses of objects that have none any more. */
  readonly removed: readonly ObjectStatus[]
  readonly changed: readonly ObjectStatus[]
}

/** Compares two sorted lists: by identity first, so that an edit costs no more than a glance at each status that it does not change. */
function compareStatuses(before: readonly ObjectStatus[], after: readonly ObjectStatus[]): StatusDifference {
  const removed: ObjectStatus[] = []
  const changed: ObjectStatus[] = []
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    const [old, now] = [before[i], after[j]]
    const order = old === now ? 0 : compareObjects(old, now)
    if (order <= 0) i += 1
    if (order >= 0) j += 1
    if (order < 0 && old) removed.push(old)
    else if (old !== now && now) changed.push(now)
  }
  return { removed, changed }
}

/** Orders statuses by their objects, as a translation does; a missing one is after all others. */
function compareObjects(a: ObjectStatus | undefined, b: ObjectStatus | undefined): number {
  if (!a || !b) return a ? -1 : 1
  for (const field of ['kind', 'namespace', 'name'] as const) {
    const [left = '', right = ''] = [a[field], b[field]]
    if (left !== right) return left < right ? -1 : 1
  }
  return 0
}

const keyFor = (kind: string, namespace: string, name: string): string => `${kind}/${namespace}/${name}`
const toBase = ({ status, metadata }: RawStored): Base => ({ status, resourceVersion: metadata.resourceVersion ?? '' })
