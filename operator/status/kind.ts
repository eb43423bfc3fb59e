import type { ObjectStatus } from '../model/translation.ts'

/**
 * Replaces the statuses of one kind in a list that is sorted by kind; `change` returns [] to leave one out. Statuses of other kinds are copied unseen: of
 * 10,000 routes, each look costs a cache miss.
 */
export function changeKind(
  statuses: readonly ObjectStatus[],
  kind: string,
  change: (status: ObjectStatus) => ObjectStatus | readonly ObjectStatus[],
): readonly ObjectStatus[] {
  const from = findFirst(statuses, (each) => each >= kind)
  const to = findFirst(statuses, (each) => each > kind)
  return from === to ? statuses : statuses.slice(0, from).concat(statuses.slice(from, to).flatMap(change), statuses.slice(to))
}

/** Index of the first status with such a kind, which all that follow have as well. */
function findFirst(statuses: readonly ObjectStatus[], isReached: (kind: string) => boolean): number {
  let [low, high] = [0, statuses.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(statuses[middle]?.kind ?? '')) high = middle
    else low = middle + 1
  }
  return low
}
