import type { KubeConnection } from '../kube/connection.ts'
import { watchOwned, type OwnedObject, type OwnedObjects, type OwnerKind } from '../kube/owned.ts'
import { createQueue, type Queue } from '../kube/queue.ts'
import type { ReconcileMetrics } from '../runtime/metrics.ts'
import type { Clock } from '../serve/debounce.ts'
import { Applier } from './applier.ts'

export interface ReconcilerOptions {
  readonly connection: KubeConnection
  readonly clock: Clock
  readonly isLeader: () => boolean
  readonly metrics: ReconcileMetrics
  readonly onError: (subject: string, error: unknown) => void
}

/** The owners of one kind, by their keys `<namespace>/<name>`. */
export interface Owners {
  readonly owner: OwnerKind
  /** Whether an owner exists: only then it has counts of reconciles. */
  readonly exists: (key: string) => boolean
  /** Makes the objects of an owner what they should be. A rejection is tried again. */
  readonly reconcile: (key: string) => Promise<void>
  /** An object of an owner changed, or went. */
  readonly onChange: (key: string, object: OwnedObject) => void
  /** All objects were listed once: from now on owners are reconciled. */
  readonly onSynced: () => void
  /** Names an owner in messages. */
  readonly describe: (key: string) => string
  /** Names the watch of a kind of objects in messages. */
  readonly describeWatch: (kind: string) => string
}

/** Watches the objects of owners of one kind, and reconciles each owner that changed or whose objects did, on the leader only. Construction starts the watches. */
export class Reconciler {
  readonly owned: OwnedObjects
  readonly applier: Applier
  readonly #options: ReconcilerOptions
  readonly #owners: Owners
  readonly #queue: Queue
  #isSynced = false

  constructor(options: ReconcilerOptions, owners: Owners) {
    const { connection, clock, onError } = options
    this.#options = options
    this.#owners = owners
    this.#queue = createQueue({
      work: (key) => this.#work(key),
      concurrency: 4,
      intervalMs: 50,
      backoff: { firstMs: 500, maxMs: 10_000 },
      clock,
      onError: (key, error) => onError(owners.describe(key), error),
    })
    this.owned = watchOwned({
      connection,
      clock,
      owner: owners.owner,
      onChange: (key, object, isGone) => {
        if (isGone) this.applier.forget(object)
        owners.onChange(key, object)
      },
      onSynced: () => {
        this.#isSynced = true
        owners.onSynced()
      },
      onError: (kind, error) => onError(owners.describeWatch(kind), error),
    })
    this.applier = new Applier(connection, owners.owner, this.owned)
  }

  async #work(key: string): Promise<void> {
    const [namespace = '', name = ''] = key.split('/')
    try {
      await this.#options.metrics.measure(namespace, name, () => this.#owners.reconcile(key))
    } finally {
      // It may have been deleted meanwhile.
      if (!this.#owners.exists(key)) this.forgetDeleted()
    }
  }

  /** Forgets the counts of owners that no longer exist. */
  forgetDeleted(): void {
    this.#options.metrics.retain(this.#owners.exists)
  }

  /** Reconciles an owner. */
  add(key: string): void {
    if (this.#isSynced && this.#options.isLeader()) this.#queue.add(key)
  }

  /** As `add`, for an owner whose input changed: a failed one is tried at once. */
  renew(key: string): void {
    if (this.#isSynced && this.#options.isLeader()) this.#queue.renew(key)
  }

  close(): void {
    this.#queue.clear()
    this.owned.close()
  }
}
