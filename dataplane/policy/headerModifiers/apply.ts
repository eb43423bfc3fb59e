import type { HeaderModifier } from '#gen/config/types.ts'
import { ProxyError } from '../../error.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { RequestHead } from '../../http/message.ts'
import { framingFields } from '../fields.ts'

/** Several modifiers as one: all additions, then all settings, then all removals. Names are lower case, values are field values. */
interface Edits {
  readonly add: readonly (readonly [string, string])[]
  readonly set: readonly (readonly [string, string])[]
  readonly remove: readonly string[]
  /** Why it cannot be applied. */
  readonly error: string | undefined
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// oxlint-disable-next-line no-control-regex
const FORBIDDEN_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/
const AUTHORITY = /^[A-Za-z0-9\-._~%!$&'()*+,;=:[\]]+$/

const compiled = new WeakMap<readonly HeaderModifier[], Edits>()

/**
 * Applies header filters, in the order add, set, remove (traffic.md §7). With `request`, `host` rewrites its authority, and
 * the result says so. Throws FILTER_FAILED for names and values that are no header fields.
 */
export function applyHeaderModifiers(headers: HeaderList, modifiers: readonly HeaderModifier[], request?: RequestHead): { isAuthoritySet: boolean } {
  const edits = compiled.get(modifiers) ?? compile(modifiers)
  if (edits.error !== undefined) throw new ProxyError('FILTER_FAILED', { detail: edits.error })
  let authority: string | undefined
  for (const [name, value] of edits.add) {
    if (name === 'host' && request !== undefined) authority = value
    else headers.append(name, value)
  }
  for (const [name, value] of edits.set) {
    if (name === 'host' && request !== undefined) authority = value
    else headers.set(name, value)
  }
  for (const name of edits.remove) headers.remove(name)
  if (authority === undefined || request === undefined) return { isAuthoritySet: false }
  if (!AUTHORITY.test(authority)) throw new ProxyError('FILTER_FAILED', { detail: `${JSON.stringify(authority)} is not a host` })
  request.authority = authority
  return { isAuthoritySet: true }
}

function compile(modifiers: readonly HeaderModifier[]): Edits {
  const pairs = (kind: 'add' | 'set') =>
    modifiers.flatMap((modifier) => modifier[kind] ?? []).map(({ name, value }) => [name.toLowerCase(), toFieldValue(value)] as const)
  const add = pairs('add')
  const set = pairs('set')
  const remove = modifiers.flatMap((modifier) => modifier.remove ?? []).map((name) => name.toLowerCase())
  const edits: Edits = {
    add,
    set,
    remove: remove.filter((name) => !framingFields.has(name)),
    error: [...add, ...set].map(findError).find((error) => error !== undefined),
  }
  compiled.set(modifiers, edits)
  return edits
}

/** Field values are bytes, which the head keeps as Latin-1; other text travels as UTF-8. */
function toFieldValue(value: string): string {
  return Buffer.from(value.trim()).toString('latin1')
}

function findError([name, value]: readonly [string, string]): string | undefined {
  if (!TOKEN.test(name)) return `${JSON.stringify(name)} is not a header name`
  if (framingFields.has(name)) return `header ${name} cannot be set`
  return FORBIDDEN_IN_VALUE.test(value) ? `the value of header ${name} has control characters` : undefined
}
