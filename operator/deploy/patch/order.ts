import type { Json } from './json.ts'

/**
 * The order that strategic merge gives a list: items that the patch names stand in its order, the others in the order that
 * they had. Where both kinds meet, two items of before keep their order; an item that is new goes first.
 * `patchOrder` and `serverOrder` are keys; `keyOf` gives the key of an item.
 */
export function orderItems<T>(merged: readonly T[], patchOrder: readonly Json[], serverOrder: readonly Json[], keyOf: (item: T) => Json | undefined): T[] {
  const placeIn = (order: readonly Json[], item: T): number => order.indexOf(keyOf(item) ?? null)
  const named = new Set(patchOrder)
  const isNamed = (item: T): boolean => named.has(keyOf(item) ?? null)
  const right = merged.filter(isNamed).toSorted((a, b) => placeIn(patchOrder, a) - placeIn(patchOrder, b))
  const left = sortKnown(
    merged.filter((item) => !isNamed(item)),
    (item) => placeIn(serverOrder, item),
  )

  const result: T[] = []
  let [i, j] = [0, 0]
  while (i < left.length || j < right.length) {
    const [ours, theirs] = [left[i], right[j]]
    const [ourPlace, theirPlace] = [ours === undefined ? -1 : placeIn(serverOrder, ours), theirs === undefined ? -1 : placeIn(serverOrder, theirs)]
    const isOursNext = j >= right.length || (i < left.length && ourPlace >= 0 && theirPlace >= 0 && ourPlace < theirPlace)
    result.push(...(isOursNext ? left.slice(i, i + 1) : right.slice(j, j + 1)))
    if (isOursNext) i += 1
    else j += 1
  }
  return result
}

/** Those with a place by place, then the others as they stand. */
function sortKnown<T>(items: readonly T[], placeOf: (item: T) => number): T[] {
  const known = items.filter((item) => placeOf(item) >= 0).toSorted((a, b) => placeOf(a) - placeOf(b))
  return [...known, ...items.filter((item) => placeOf(item) < 0)]
}

/** Whether `list` is `order` with some items left out. */
export function isSubsequence(list: readonly Json[], order: readonly Json[]): boolean {
  let place = 0
  for (const item of list) {
    const found = order.indexOf(item, place)
    if (found < 0) return false
    place = found + 1
  }
  return true
}
