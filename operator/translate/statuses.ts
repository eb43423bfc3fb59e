import { isDeepStrictEqual } from 'node:util'
import type { ObjectStatus } from '../model/translation.ts'

/** Statuses, sorted by kind, namespace and name while they change one by one. */
export class StatusList {
  readonly #byKind = new Map<string, ObjectStatus[]>()

  /** Adds or replaces the status of an object; undefined removes it. One that is equal stays, because writers compare by identity. */
  set(kind: string, namespace: string, name: string, status: ObjectStatus | undefined): void {
    let list = this.#byKind.get(kind)
    if (!list) this.#byKind.set(kind, (list = []))
    const index = findPlace(list, namespace, name)
    const found = list[index]
    const isThere = found !== undefined && (found.namespace ?? '') === namespace && found.name === name
    if (status) {
      if (!isThere || !isDeepStrictEqual(found, status)) list.splice(index, isThere ? 1 : 0, status)
    } else if (isThere) list.splice(index, 1)
  }

  list(): ObjectStatus[] {
    const none: ObjectStatus[] = []
    // concat copies whole lists.
    return none.concat(...[...this.#byKind.keys()].toSorted().map((kind) => this.#byKind.get(kind) ?? []))
  }
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
