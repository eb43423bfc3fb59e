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
export function compareObjects(a: KubeObject, b: KubeObject): number {
  return compareText(a.metadata.namespace, b.metadata.namespace) || compareText(a.metadata.name, b.metadata.name)
}

/** Orders by age, then namespace and name: the oldest wins (traffic.md D4, D6; Gateway API conflict rules). */
export function compareAge(a: KubeObject, b: KubeObject): number {
  return compareText(a.metadata.creationTimestamp, b.metadata.creationTimestamp) || compareObjects(a, b)
}

/** Objects by the object that users wrote, so that identity still means "unchanged". */
const neutral = new WeakMap<KubeObject, KubeObject>()

/** The objects that users wrote, by those with neutral names. */
const written = new WeakMap<KubeObject, KubeObject>()

/** An object of a snapshot with the names of fields and values that its user wrote. */
export const asWritten = <T extends KubeObject>(object: T): T => (written.get(object) as T | undefined) ?? object

/** The object with neutral names of fields and values: nothing after this knows the real ones. */
function withNeutralNames(object: KubeObject): KubeObject {
  if (object.kind !== 'ProxyPolicy' && object.kind !== 'ProxyBackend') return object
  const known = neutral.get(object) ?? toNeutralNames(object, object.kind, definitions)
  neutral.set(object, known)
  if (known !== object) written.set(known, object)
  return known
}

/** Builds a snapshot. Of two objects with the same kind, namespace and name the later one stays. */
export function createSnapshot(objects: Iterable<KubeObject>): Snapshot {
  const maps = new Map<Kind, Map<string, KubeObject>>()
  for (const kind of Object.keys(kinds) as Kind[]) maps.set(kind, new Map())
  for (const object of objects) maps.get(object.kind)?.set(keyOf(object), withNeutralNames(object))
  return new SortedSnapshot(new Map([...maps].map(([kind, byKey]) => [kind, [...byKey.values()].toSorted(compareObjects)])))
}

/** One difference from a snapshot: an object that was added or replaced, or undefined for one that was deleted. */
export interface ObjectChange {
  readonly kind: Kind
  readonly namespace: string
  readonly name: string
  readonly object: KubeObject | undefined
}

/** The snapshot after `changes`. It costs no more than the changes, and a copy of the lists of the kinds that changed. */
export function updateSnapshot(before: Snapshot, changes: Iterable<ObjectChange>): Snapshot {
  const lists = new Map<Kind, KubeObject[]>()
  for (const { kind, namespace, name, object } of changes) {
    let list = lists.get(kind)
    if (!list) lists.set(kind, (list = [...before.list<Kind>(kind)]))
    const index = findPlace(list, namespace, name)
    const isThere = isAt(list[index], namespace, name)
    if (object) list.splice(index, isThere ? 1 : 0, withNeutralNames(object))
    else if (isThere) list.splice(index, 1)
  }
  return new SortedSnapshot(new Map((Object.keys(kinds) as Kind[]).map((kind) => [kind, lists.get(kind) ?? before.list<Kind>(kind)])))
}

/**
 * Calls `onChange` for every object that differs between two snapshots by identity. Lists of kinds that are identical cost nothing, others
 * one comparison per object.
 */
export function compareSnapshots(before: Snapshot, after: Snapshot, onChange: (old: KubeObject | undefined, now: KubeObject | undefined) => void): void {
  for (const kind of Object.keys(kinds) as Kind[]) {
    const [olds, news] = [before.list<Kind>(kind), after.list<Kind>(kind)]
    if (olds === news) continue
    for (let i = 0, j = 0; i < olds.length || j < news.length;) {
      const [old, now] = [olds[i], news[j]]
      if (old === now) {
        i += 1
        j += 1
        continue
      }
      const order = old && now ? compareObjects(old, now) : old ? -1 : 1
      if (order <= 0) i += 1
      if (order >= 0) j += 1
      onChange(order <= 0 ? old : undefined, order >= 0 ? now : undefined)
    }
  }
}

const isAt = (object: KubeObject | undefined, namespace: string, name: string): boolean =>
  object?.metadata.namespace === namespace && object.metadata.name === name

/** Index of the first object that is not before `namespace` and `name`. */
function findPlace(list: readonly KubeObject[], namespace: string, name: string): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const metadata = list[middle]?.metadata
    if (metadata && (compareText(metadata.namespace, namespace) || compareText(metadata.name, name)) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** The lists of all kinds, sorted. They are searched, because an index of 10,000 objects would have to be copied for every change. */
class SortedSnapshot implements Snapshot {
  readonly #lists: ReadonlyMap<Kind, readonly KubeObject[]>
  readonly #byNamespace = new Map<string, readonly KubeObject[]>()

  constructor(lists: ReadonlyMap<Kind, readonly KubeObject[]>) {
    this.#lists = lists
  }

  // A list holds the objects of one kind, which the type system cannot follow through the map.
  get<K extends Kind>(kind: K, namespace: string, name: string): ObjectByKind[K] | undefined {
    const list = this.#lists.get(kind) ?? none
    const object = list[findPlace(list, namespace, name)]
    return isAt(object, namespace, name) ? (object as ObjectByKind[K]) : undefined
  }

  list<K extends Kind>(kind: K): readonly ObjectByKind[K][] {
    return (this.#lists.get(kind) ?? none) as readonly ObjectByKind[K][]
  }

  inNamespace<K extends Kind>(kind: K, namespace: string): readonly ObjectByKind[K][] {
    const key = `${kind}/${namespace}`
    let found = this.#byNamespace.get(key)
    if (!found) {
      const list = this.#lists.get(kind) ?? none
      const start = findPlace(list, namespace, '')
      let end = start
      while (list[end]?.metadata.namespace === namespace) end += 1
      this.#byNamespace.set(key, (found = list.slice(start, end)))
    }
    return found as readonly ObjectByKind[K][]
  }
}
