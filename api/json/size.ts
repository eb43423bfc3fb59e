/** Values that are at most this large are counted, printed or converted at once. */
export const SMALL_SIZE = 262_144
/** What a value adds to the size besides its characters: small values have at most 2,048 values. */
export const SIZE_PER_VALUE = 128
/** Deeper values are large: functions that visit small ones may be recursive. */
const MAX_DEPTH = 64

/** Arrays and objects that are large, and the keys of such objects: reading those of a wide one takes milliseconds. */
export type LargeJson = Map<object, readonly string[] | undefined>

/** Whether parsed JSON is so small that it is printed in two milliseconds at most. If not, it and the large values seen within it are added to `large`. */
export const isSmallJson = (value: unknown, large?: LargeJson): boolean => sizeOfJson(value, large) <= SMALL_SIZE

/** The size of a small value, in characters and `SIZE_PER_VALUE`; otherwise a number above `SMALL_SIZE`. Visits few values, but reads all the keys of an object. */
export const sizeOfJson = (value: unknown, large?: LargeJson): number => SMALL_SIZE - subtractSize(SMALL_SIZE, value, MAX_DEPTH, large)

/** What is left of a size after a value; negative if the value is larger, or nests deeper than `depth`. */
function subtractSize(size: number, value: unknown, depth: number, large: LargeJson | undefined): number {
  let left = size - SIZE_PER_VALUE
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  if (depth === 0) return -1
  let keys: readonly string[] | undefined
  if (Array.isArray(value)) {
    for (const item of value) if ((left = subtractSize(left, item, depth - 1, large)) < 0) break
  } else {
    keys = Object.keys(value)
    for (const key of keys) if ((left = subtractSize(left - key.length, (value as Record<string, unknown>)[key], depth - 1, large)) < 0) break
  }
  if (left < 0) large?.set(value, keys)
  return left
}
