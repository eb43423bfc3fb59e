import { FIELD_MANAGER, GATEWAY_GROUP, GROUP, MCP_BACKEND_LABEL } from '#api/names.ts'
import type { Clock } from '../serve/debounce.ts'
import { ApiError, type KubeConnection } from './connection.ts'
import type { RawObject } from './normalize.ts'
import { objectPath } from './resources.ts'
import { watchCollection } from './watch.ts'

/** An object of a Gateway's data planes or of an MCP server, as stored or as wanted. */
export interface OwnedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly OwnerReference[]
  }
  readonly [field: string]: unknown
}

interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
}

/** Kinds that are made -> where they are served. */
const collections: Readonly<Record<string, string>> = {
  ServiceAccount: '/api/v1/serviceaccounts',
  ConfigMap: '/api/v1/configmaps',
  Secret: '/api/v1/secrets',
  Service: '/api/v1/services',
  Deployment: '/apis/apps/v1/deployments',
  PodDisruptionBudget: '/apis/policy/v1/poddisruptionbudgets',
  HorizontalPodAutoscaler: '/apis/autoscaling/v2/horizontalpodautoscalers',
}

/** A kind of owners. */
export interface OwnerKind {
  readonly kind: string
  readonly group: string
  /** Label that all their objects have. */
  readonly label: string
  /** Kinds that are made for them. */
  readonly made: readonly string[]
}

export const gatewayOwner: OwnerKind = { kind: 'Gateway', group: GATEWAY_GROUP, label: `${GATEWAY_GROUP}/gateway-name`, made: Object.keys(collections) }
/** Owner of the objects of MCP servers. */
export const backendOwner: OwnerKind = { kind: 'ProxyBackend', group: GROUP, label: MCP_BACKEND_LABEL, made: ['ServiceAccount', 'Service', 'Deployment'] }

/** A watch of all objects with the label of a kind of owners. */
export interface OwnedObjects {
  find(kind: string, namespace: string, name: string): OwnedObject | undefined
  list(namespace: string): readonly OwnedObject[]
  listAll(): readonly OwnedObject[]
  missing(): readonly string[]
  close(): void
}

export interface OwnedOptions {
  readonly connection: KubeConnection
  readonly clock: Clock
  readonly owner: OwnerKind
  /** An object of the owner `<namespace>/<name>` changed or went; `isGone` with the object as it was. */
  readonly onChange: (owner: string, object: OwnedObject, isGone: boolean) => void
  /** Everything was listed once. */
  readonly onSynced: () => void
  readonly onError: (kind: string, error: unknown) => void
}

export function watchOwned(options: OwnedOptions): OwnedObjects {
  const { connection, clock, owner } = options
  const objects = new Map<string, OwnedObject>()
  const waiting = new Set(owner.made)

  const watches = owner.made.map((kind) => {
    const collection = collectionOf(kind)
    const apiVersion = collection.split('/').slice(2, -1).join('/')
    const read = (raw: RawObject): OwnedObject => ({ ...raw, apiVersion, kind }) as unknown as OwnedObject
    const notify = (object: OwnedObject, isGone: boolean, before?: OwnedObject): void => {
      // If a user removes the ownerReference, the object that owned it is reconciled.
      const name = ownerOf(object, owner) ?? (before && ownerOf(before, owner))
      if (name !== undefined) options.onChange(`${object.metadata.namespace}/${name}`, object, isGone)
    }
    const put = (raw: RawObject): void => {
      const object = read(raw)
      const before = objects.get(keyOf(object))
      objects.set(keyOf(object), object)
      if (before?.metadata.resourceVersion !== object.metadata.resourceVersion) notify(object, false, before)
    }
    const remove = (object: OwnedObject): void => {
      objects.delete(keyOf(object))
      notify(object, true)
    }
    return watchCollection({
      connection,
      clock,
      paths: [collection],
      query: { labelSelector: owner.label },
      onList(items) {
        const listed = new Set(items.map((raw) => keyOf(read(raw))))
        for (const object of objects.values()) if (object.kind === kind && !listed.has(keyOf(object))) remove(object)
        for (const raw of items) put(raw)
        if (waiting.delete(kind) && waiting.size === 0) options.onSynced()
      },
      onUpsert: put,
      onDelete: (raw) => remove(read(raw)),
      onError: (error) => options.onError(kind, error),
    })
  })

  return {
    find: (kind, namespace, name) => objects.get(`${kind}/${namespace}/${name}`),
    listAll: () => [...objects.values()],
    list: (namespace) => [...objects.values()].filter(({ metadata }) => metadata.namespace === namespace),
    missing: () => [...waiting],
    close() {
      for (const each of watches) each.close()
    },
  }
}

/** Identifies an object among those that are made. */
export const keyOf = ({ kind, metadata }: OwnedObject): string => `${kind}/${metadata.namespace}/${metadata.name}`

/** Name of the owner of this kind that an object belongs to; it is in the same namespace. */
export function ownerOf({ metadata }: OwnedObject, owner: OwnerKind): string | undefined {
  return metadata.ownerReferences?.find(
    ({ controller, kind, apiVersion }) => controller === true && kind === owner.kind && apiVersion.startsWith(`${owner.group}/`),
  )?.name
}

/** Path of an object of one of the kinds above. */
const pathOf = (kind: string, namespace: string, name: string): string => objectPath(collectionOf(kind), namespace, name)

function collectionOf(kind: string): string {
  const collection = collections[kind]
  if (collection === undefined) throw new Error(`the operator makes no objects of kind ${kind}`)
  return collection
}

/** Applies an object server-side with our field manager (operator.md §3.4): fields that we no longer set are removed, those of others stay. */
export async function applyObject(connection: KubeConnection, object: OwnedObject): Promise<OwnedObject> {
  const { kind, metadata } = object
  const query = new URLSearchParams({ fieldManager: FIELD_MANAGER, force: 'true' }).toString()
  try {
    return await connection.request<OwnedObject>('PATCH', `${pathOf(kind, metadata.namespace, metadata.name)}?${query}`, {
      body: object,
      contentType: 'application/apply-patch+yaml',
    })
  } catch (error) {
    // The message of a rejected Secret may quote it.
    if (kind === 'Secret' && error instanceof ApiError)
      throw new ApiError(error.status, error.reason, `Secret ${metadata.name}: ${error.reason || error.status}`)
    throw error
  }
}

/** Deletes exactly this object. One that no longer exists, or was created again, is ignored. */
export async function deleteObject(connection: KubeConnection, { kind, metadata }: OwnedObject): Promise<void> {
  const preconditions = metadata.uid === undefined ? {} : { preconditions: { uid: metadata.uid } }
  try {
    await connection.request('DELETE', pathOf(kind, metadata.namespace, metadata.name), {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', ...preconditions },
    })
  } catch (error) {
    if (!(error instanceof ApiError) || (error.status !== 404 && error.status !== 409)) throw error
  }
}

/** Reads an object from the API server, not from a cache; undefined if it does not exist. */
export async function readObject(connection: KubeConnection, kind: string, namespace: string, name: string): Promise<OwnedObject | undefined> {
  return connection.request<OwnedObject>('GET', pathOf(kind, namespace, name)).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  })
}
