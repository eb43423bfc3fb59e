import { isDeepStrictEqual } from 'node:util'
import { renameInText } from '#api/v1alpha1/real-names.ts'
import type { ObjectStatus } from '../model/translation.ts'

/** The object that a user wrote. */
type FindWritten = (kind: string, namespace: string, name: string) => object | undefined

/** Statuses, sorted by kind, namespace and name while they change one by one. Messages name fields as the object has them, those of other objects by their real names. */
export class StatusList {
  readonly #byKind = new Map<string, ObjectStatus[]>()
  readonly #find: FindWritten

  constructor(find: FindWritten) {
    this.#find = find
  }

  /** Adds or replaces the status of an object; undefined removes it. One that is equal stays, because writers compare by identity. */
  set(kind: string, namespace: string, name: string, found: ObjectStatus | undefined): void {
    const status = found && renameMessages(found, () => this.#find(kind, namespace, name))
    let list = this.#byKind.get(kind)
    if (!list) this.#byKind.set(kind, (list = []))
    const index = findPlace(list, namespace, name)
    const old = list[index]
    const isThere = old !== undefined && (old.namespace ?? '') === namespace && old.name === name
    if (status) {
      if (!isThere || !isDeepStrictEqual(old, status)) list.splice(index, isThere ? 1 : 0, status)
    } else if (isThere) list.splice(index, 1)
  }

  list(): ObjectStatus[] {
    const none: ObjectStatus[] = []
    // concat copies whole lists.
    return none.concat(...[...this.#byKind.keys()].toSorted().map((kind) => this.#byKind.get(kind) ?? []))
  }
}

/** Renames fields in messages of conditions; what does not change keeps its identity. */
function renameMessages<T>(value: T, find: () => object | undefined): T {
  if (typeof value !== 'object' || value === null) return value
  let changed: Record<string, unknown> | undefined
  for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
    const renamed = name === 'message' && typeof inner === 'string' ? renameInText(inner, find) : renameMessages(inner, find)
    if (renamed !== inner) (changed ??= (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>)[name] = renamed
  }
  return (changed as T | undefined) ?? value
}

/** Index of the first status that is not before `namespace` and `name`. */
function findPlace(list: readonly ObjectStatus[], namespace: string, name: string): number {
  const isBefore = (status: ObjectStatus | undefined): boolean => {
    const own = status?.namespace ?? ''
    return status !== undefined && (own < namespace || (own === namespace && status.name < name))
  }
  // Most statuses are added in order.
  if (isBefore(list.at(-1))) return list.length
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(list[middle])) low = middle + 1
    else high = middle
  }
  return low
}
