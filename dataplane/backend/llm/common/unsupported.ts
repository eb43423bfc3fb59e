import { FormatError, type JsonObject } from './types.ts'

/**
 * The error for a part of a request that the upstream's format cannot express (llm.md §7.1). `place` is the path of the part in the client's body.
 *
 * @example
 * unsupported('messages[1].content[0]', 'a part of type input_audio cannot be sent to this provider')
 */
export function unsupported(place: string, reason: string): FormatError {
  return new FormatError('unsupported', `unsupported conversion: ${place}: ${reason}`)
}

/** The fields in use that are not in `carried`: no other format has them. */
export function findOmitted(body: JsonObject, carried: ReadonlySet<string>): string[] {
  return Object.keys(body).filter((field) => !carried.has(field) && isUsed(body[field]))
}

/** Throws a FormatError for the first of the fields that is in use: not null, false, 0, or an empty list or object. */
export function rejectFields(body: JsonObject, fields: readonly string[]): void {
  for (const field of fields) if (isUsed(body[field])) throw unsupported(field, 'this provider does not support it; remove the field')
}

/** Whether a value asks for anything: not null, false, 0, or an empty list or object. */
export function isUsed(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0
  return value !== undefined && value !== null && value !== false && value !== 0
}
