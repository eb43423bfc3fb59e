/**
 * The items of a conversation with added ones at the end, and before each response: there they were at the end of the request that it answers. So the
 * history is that of the earlier requests, as prompt caches and signed thinking demand (llm.md §12).
 */
export function appendAtEnds(items: readonly unknown[], added: readonly unknown[], isResponse: (item: unknown) => boolean): unknown[] {
  if (added.length === 0) return [...items]
  const all: unknown[] = []
  for (const [at, item] of items.entries()) {
    if (at > 0 && isResponse(item) && !isResponse(items[at - 1])) all.push(...added)
    all.push(item)
  }
  return [...all, ...added]
}
