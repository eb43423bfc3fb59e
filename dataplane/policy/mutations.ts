import { HeaderValueOption_HeaderAppendAction as Action, type HeaderValue, type HeaderValueOption } from '#gen/proto/envoy/config/core/v3/base_pb.js'
import { isUtf8 } from 'node:buffer'
import type { Exchange } from '../request/exchange/exchange.ts'
import { toFieldValue } from '../request/expression/message.ts'
import type { HeaderList } from '../http/headers.ts'
import { isFieldValue, isToken } from '../http/syntax.ts'
import { framingFields } from '../request/exchange/fields.ts'
import { setPseudoHeader } from '../request/exchange/pseudo.ts'

/** A field that a service sets: name in lower case, value as stored in heads. Undefined if services may not set the field. */
export function fieldOf(header: HeaderValue | undefined): { name: string; value: string } | undefined {
  if (header === undefined) return undefined
  const name = header.key.toLowerCase()
  const value = (header.rawValue.length > 0 ? Buffer.from(header.rawValue).toString('latin1') : toFieldValue(header.value)).trim()
  if (!isFieldValue(value)) return undefined
  return name.startsWith(':') || isChangeable(name) ? { name, value } : undefined
}

function isChangeable(name: string): boolean {
  return isToken(name) && !framingFields.has(name)
}

/**
 * Applies the header options of Envoy's services (traffic.md §8.8) by append_action; 0 appends if `append` is set and replaces otherwise.
 * An empty value is ignored unless `keep_empty_value` is set. Pseudo headers and Host are passed to `setPseudo`.
 */
export function setFields(headers: HeaderList, options: readonly HeaderValueOption[], setPseudo: (name: string, value: string) => void): void {
  for (const option of options) {
    const field = fieldOf(option.header)
    if (field === undefined || (field.value === '' && !option.keepEmptyValue)) continue
    const { name, value } = field
    if (name === 'host' || name.startsWith(':')) setPseudo(name === 'host' ? ':authority' : name, value)
    else setField(headers, name, value, option)
  }
}

function setField(headers: HeaderList, name: string, value: string, { appendAction, append }: HeaderValueOption): void {
  const exists = headers.has(name)
  switch (appendAction) {
    case Action.ADD_IF_ABSENT:
      if (!exists) headers.set(name, value)
      return
    case Action.OVERWRITE_IF_EXISTS:
      if (exists) headers.set(name, value)
      return
    case Action.APPEND_IF_EXISTS_OR_ADD:
      if (append === true) headers.add(name, value)
      else headers.set(name, value)
      return
    default:
      headers.set(name, value)
  }
}

/** Removes headers, except for those that frame the message. */
export function removeFields(headers: HeaderList, names: readonly string[]): void {
  for (const rawName of names) {
    const name = rawName.toLowerCase()
    if (name !== 'host' && isChangeable(name)) headers.remove(name)
  }
}

/** Applies the changes of a service to the head of a request. */
export function changeRequest(
  exchange: Exchange,
  { setHeaders, removeHeaders }: { setHeaders: readonly HeaderValueOption[]; removeHeaders: readonly string[] },
): void {
  const { request } = exchange
  removeFields(request.headers, removeHeaders)
  setFields(request.headers, setHeaders, (name, value) => {
    if (setPseudoHeader(request, name, value) && name === ':authority') exchange.isAuthorityFixed = true
  })
}

/** Converts a value from Latin-1, as stored in heads, to text. */
export function decodeFieldValue(value: string): string {
  if (!/[^\0-\x7f]/.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : value
}
