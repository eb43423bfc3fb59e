import { isRawNumber, parseJson, printJson } from '../common/json.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'

/** A string, number or member name in a JSON value. */
interface Leaf {
  readonly owner: object
  readonly key: string | number
  readonly text: string
  /** The text is the name of the member. */
  readonly isName: boolean
}

/** Values to visit before other events may be processed. */
const VALUES_PER_SLICE = 512

/** Visits the leaves of a value, without recursion. Returns early if `visit` returns false. */
function* walkLeaves(root: object, visit: (leaf: Leaf) => Cooperative<boolean>): Cooperative<void> {
  const open: object[] = [root]
  let visited = 0
  for (let owner = open.pop(); owner !== undefined; owner = open.pop()) {
    const isList = Array.isArray(owner)
    const entries: Iterable<readonly [string | number, unknown]> = isList ? (owner as unknown[]).entries() : Object.entries(owner)
    for (const [key, value] of entries) {
      if (++visited % VALUES_PER_SLICE === 0) yield
      if (typeof key === 'string' && !(yield* visit({ owner, key, text: key, isName: true }))) return
      const text = textOfLeaf(value)
      if (text !== undefined) {
        if (!(yield* visit({ owner, key, text, isName: false }))) return
      } else if (typeof value === 'object' && value !== null) open.push(value)
    }
  }
}

function textOfLeaf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  return isRawNumber(value) ? value.rawJSON : undefined
}

/** Searches and masks text. */
interface Masker {
  mask(text: string): Cooperative<string>
}

/** Masks the leaves of JSON text. Returns the same text if nothing is masked. Text that is not JSON is masked as text. */
export function* maskLeaves(text: string, masker: Masker): Cooperative<string> {
  const root = parse(text)
  if (root === undefined) return yield* masker.mask(text)
  const renamed: { readonly owner: Record<string, unknown>; readonly from: string; readonly to: string }[] = []
  let isMasked = false
  // The value was parsed here, so that it can be changed in place.
  yield* walkLeaves(root, function* ({ owner, key, text: leaf, isName }) {
    const masked = yield* masker.mask(leaf)
    if (masked === leaf) return true
    isMasked = true
    if (isName) renamed.push({ owner: owner as Record<string, unknown>, from: leaf, to: masked })
    else (owner as Record<string | number, unknown>)[key] = masked
    return true
  })
  for (const { owner, from, to } of renamed) {
    owner[to] = owner[from]
    // oxlint-disable-next-line typescript/no-dynamic-delete -- the object was parsed here
    delete owner[from]
  }
  return isMasked ? printJson(root[0]) : text
}

/** The value in a list, so that a single string or number is a leaf too; undefined if the text is not JSON. */
function parse(text: string): [unknown] | undefined {
  try {
    return [parseJson(text)]
  } catch {
    return undefined
  }
}
