import { definitions } from '#api/v1alpha1/definitions.ts'
import { toNeutralNames } from '#api/v1alpha1/real-names.ts'
import { keyOf, kinds, type Kind, type KubeObject, type ObjectByKind } from './objects.ts'

/** All objects at one moment, immutable. Lists are sorted by namespace and name; objects are shared between snapshots, so identity means "unchanged". */
export interface Snapshot {
  /** `namespace` is empty for cluster-scoped kinds. */
  get<K extends Kind>(kind: K, namespace: string, name: string): ObjectByKind[K] | undefined
  list<K extends Kind>(kind: K): readonly ObjectByKind[K][]
  inNamespace<K extends Kind>(kind: K, namespace: string): readonly ObjectByKind[K][]
}

const none: readonly never[] = []
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Orders by namespace, then name. */
function compareObjects(a: KubeObject, b: KubeObject): number {
  return compareText(a.metadata.namespace, b.metadata.namespace) || compareText(a.metadata.name, b.metadata.name)
}

/** Orders by age, then namespace and name: the oldest wins (traffic.md D4, D6; Gateway API conflict rules). */
export function compareAge(a: KubeObject, b: KubeObject): number {
  return compareText(a.metadata.creationTimestamp, b.metadata.creationTimestamp) || compareObjects(a, b)
}

interface Shelf {
  readonly list: readonly KubeObject[]
  readonly byKey: ReadonlyMap<string, KubeObject>
  byNamespace?: ReadonlyMap<string, readonly KubeObject[]>
}

/** Objects by the object that users wrote, so that identity still means "unchanged". */
const neutral = new WeakMap<KubeObject, KubeObject>()

/** The object with neutral names of fields and values: nothing after this knows the real ones. */
function withNeutralNames(object: KubeObject): KubeObject {
  if (object.kind !== 'ProxyPolicy' && object.kind !== 'ProxyBackend') return object
  const known = neutral.get(object) ?? toNeutralNames(object, object.kind, definitions)
  neutral.set(object, known)
  return known
}

/** Builds a snapshot. Of two objects with the same kind, namespace and name the later one stays. */
export function createSnapshot(objects: Iterable<KubeObject>): Snapshot {
  const maps = new Map<Kind, Map<string, KubeObject>>()
  for (const kind of Object.keys(kinds) as Kind[]) maps.set(kind, new Map())
  for (const object of objects) maps.get(object.kind)?.set(keyOf(object), withNeutralNames(object))
  const shelves = new Map<Kind, Shelf>()
  for (const [kind, byKey] of maps) shelves.set(kind, { byKey, list: [...byKey.values()].toSorted(compareObjects) })

  // A shelf holds the objects of one kind, which the type system cannot follow through the maps.
  return {
    get<K extends Kind>(kind: K, namespace: string, name: string) {
      return shelves.get(kind)?.byKey.get(namespace === '' ? name : `${namespace}/${name}`) as ObjectByKind[K] | undefined
    },
    list<K extends Kind>(kind: K) {
      return (shelves.get(kind)?.list ?? none) as readonly ObjectByKind[K][]
    },
    inNamespace<K extends Kind>(kind: K, namespace: string) {
      const shelf = shelves.get(kind)
      if (!shelf) return none
      shelf.byNamespace ??= Map.groupBy(shelf.list, (object) => object.metadata.namespace)
      return (shelf.byNamespace.get(namespace) ?? none) as readonly ObjectByKind[K][]
    },
  }
}
