import { isRawNumber } from '#api/json/index.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { isObject } from '../message/json.ts'

/** Values between two steps. */
const VALUES_PER_STEP = 500

/**
 * What a hook returned, with each part that it did not change as it was before: hooks see numbers as doubles, and others must not be rounded. Returns `before`
 * itself if nothing changed.
 */
export function mergeUnchanged(before: unknown, after: unknown): Cooperative<unknown> {
  return merge(before, after, { values: 0 })
}

function* merge(before: unknown, after: unknown, state: { values: number }): Cooperative<unknown> {
  if (++state.values % VALUES_PER_STEP === 0) yield
  if (isRawNumber(before)) return Number(before.rawJSON) === after ? before : after
  if (Array.isArray(before) && Array.isArray(after)) {
    let isSame = before.length === after.length
    const merged: unknown[] = []
    for (const [nth, item] of (after as unknown[]).entries()) {
      const known = before[nth] as unknown
      const kept = yield* merge(known, item, state)
      if (kept !== known) isSame = false
      merged.push(kept)
    }
    return isSame ? before : merged
  }
  if (!isObject(before) || !isObject(after)) return after
  const entries: [string, unknown][] = []
  let isSame = Object.keys(before).length === Object.keys(after).length
  for (const [key, item] of Object.entries(after)) {
    const known = Object.hasOwn(before, key) ? before[key] : undefined
    const kept = yield* merge(known, item, state)
    if (kept !== known) isSame = false
    entries.push([key, kept])
  }
  return isSame ? before : Object.fromEntries(entries)
}
