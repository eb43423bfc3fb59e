import { hash } from 'node:crypto'
import { ApiError, type KubeConnection } from '../kube/connection.ts'
import { applyObject, keyOf, ownerOf, readObject, type OwnedObject, type OwnedObjects, type OwnerKind } from '../kube/owned.ts'

/** The object as last applied, and as the API server stored it. */
interface Applied {
  readonly wanted: string
  readonly stored: string
  /** resourceVersion in the cache at that time: as long as it is still that one, the cache has not caught up. */
  readonly cached: string | undefined
}

/** Applies the objects of owners of one kind, each only if it differs from what is stored. */
export class Applier {
  readonly #connection: KubeConnection
  readonly #owner: OwnerKind
  readonly #owned: Pick<OwnedObjects, 'find'>
  readonly #applied = new Map<string, Applied>()
  /** Number of objects applied since the start. */
  applies = 0

  constructor(connection: KubeConnection, owner: OwnerKind, owned: Pick<OwnedObjects, 'find'>) {
    this.#connection = connection
    this.#owner = owner
    this.#owned = owned
  }

  /** The object was deleted. */
  forget(object: OwnedObject): void {
    this.#applied.delete(keyOf(object))
  }

  /** Rejects with an ApiError if the API server rejects the object, or if it belongs to another owner or to a user. */
  async apply(object: OwnedObject): Promise<void> {
    const { kind } = this.#owner
    const key = keyOf(object)
    const live = this.#owned.find(object.kind, object.metadata.namespace, object.metadata.name)
    const rival = live && ownerOf(live, this.#owner)
    // Gateways `a` and `a-xds-ca` both want ConfigMap a-xds-ca: without this check, each would take it from the other again and again.
    if (rival !== undefined && rival !== ownerOf(object, this.#owner))
      throw new ApiError(409, 'AlreadyExists', `${object.kind} ${object.metadata.name} belongs to ${kind} ${rival}; give one of the two another name`)
    const wanted = hash('sha256', JSON.stringify(object))
    const last = this.#applied.get(key)
    const isStored = last?.wanted === wanted && (live?.metadata.resourceVersion === last.cached || (live !== undefined && fingerprint(live) === last.stored))
    if (isStored) return
    if (last === undefined) await this.#checkFree(object, live)
    const stored = await applyObject(this.#connection, object)
    this.applies += 1
    this.#applied.set(key, { wanted, stored: fingerprint(stored), cached: live?.metadata.resourceVersion })
  }

  /** Rejects for an object that a user created under the same name: a Service of theirs would lose its pods. */
  async #checkFree({ kind, metadata }: OwnedObject, live: OwnedObject | undefined): Promise<void> {
    // An existing session key is kept (operator.md §2.8).
    if (kind === 'Secret') return
    const stored = live ?? (await readObject(this.#connection, kind, metadata.namespace, metadata.name))
    if (stored && ownerOf(stored, this.#owner) === undefined)
      throw new ApiError(
        409,
        'AlreadyExists',
        `${kind} ${metadata.name} is there already and belongs to no ${this.#owner.kind}; delete it, or give the ${this.#owner.kind} another name`,
      )
  }
}

/** Hash of the fields of a live object that edits of users change: without its status and the fields that the API server maintains. */
function fingerprint(object: OwnedObject): string {
  const { status: _status, kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object
  const {
    resourceVersion: _version,
    managedFields: _managed,
    generation: _generation,
    ...kept
  } = metadata as OwnedObject['metadata'] & {
    managedFields?: unknown
    generation?: unknown
  }
  return hash('sha256', JSON.stringify([kept, rest]))
}
