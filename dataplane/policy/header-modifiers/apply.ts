import type { HeaderModifier } from '#gen/config/types.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { HeaderList } from '../../http/headers.ts'
import type { RequestHead } from '../../http/message.ts'
import { framingFields } from '../../request/exchange/fields.ts'

interface Field {
  readonly name: string
  readonly value: string
}

/** Combined modifiers: all additions, then all settings, then all removals. Names are in lower case, values are field values. */
export interface Edits {
  readonly add: readonly Field[]
  readonly set: readonly Field[]
  readonly remove: readonly string[]
  /** Why the modifiers are invalid. */
  readonly error: string | undefined
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// oxlint-disable-next-line no-control-regex -- forbidden by RFC 9110 §5.5
const FORBIDDEN_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/
const AUTHORITY = /^[A-Za-z0-9\-._~%!$&'()*+,;=:[\]]+$/

const compiled = new WeakMap<readonly HeaderModifier[], Edits>()

/**
 * Applies header filters in the order add, set, remove (traffic.md §7). With `request`, the header `host` rewrites its authority, which
 * the result reports. Throws FILTER_FAILED for invalid names and values.
 */
export function applyHeaderModifiers(headers: HeaderList, modifiers: readonly HeaderModifier[], request?: RequestHead): { isAuthoritySet: boolean } {
  return { isAuthoritySet: applyEdits(headers, compileEdits(modifiers), request) }
}

/** Like `applyHeaderModifiers`, for compiled modifiers. Returns whether the authority was rewritten. */
export function applyEdits(headers: HeaderList, edits: Edits, request?: RequestHead): boolean {
  if (edits.error !== undefined) throw new ProxyError('FILTER_FAILED', { detail: edits.error })
  let authority: string | undefined
  for (const { name, value } of edits.add) {
    if (name === 'host' && request !== undefined) authority = value
    else headers.add(name, value)
  }
  for (const { name, value } of edits.set) {
    if (name === 'host' && request !== undefined) authority = value
    else headers.set(name, value)
  }
  for (const name of edits.remove) headers.remove(name)
  if (authority === undefined || request === undefined) return false
  if (!AUTHORITY.test(authority)) throw new ProxyError('FILTER_FAILED', { detail: `${JSON.stringify(authority)} is not a host` })
  request.authority = authority
  return true
}

/** Validates and combines modifiers. Invalid ones are reported in `error`. */
export function compileEdits(modifiers: readonly HeaderModifier[]): Edits {
  const known = compiled.get(modifiers)
  if (known !== undefined) return known
  const fields = (kind: 'add' | 'set') =>
    modifiers.flatMap((modifier) => modifier[kind] ?? []).map(({ name, value }) => ({ name: name.toLowerCase(), value: toFieldValue(value) }))
  const add = fields('add')
  const set = fields('set')
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

/** Field values are bytes, stored as Latin-1. Other text is encoded as UTF-8. */
function toFieldValue(value: string): string {
  return Buffer.from(value.trim()).toString('latin1')
}

function findError({ name, value }: Field): string | undefined {
  if (!TOKEN.test(name)) return `${JSON.stringify(name)} is not a header name`
  if (framingFields.has(name)) return `header ${name} cannot be set`
  return FORBIDDEN_IN_VALUE.test(value) ? `the value of header ${name} has control characters` : undefined
}
