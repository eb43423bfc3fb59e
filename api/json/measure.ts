import { tooDeep, tooManyMembers, type JsonLimits } from './limits.ts'

/** Throws a JsonLimitError if parsed JSON exceeds a limit. Visits containers, so it is fast for text and slow for many small values. */
export function checkLimits(value: unknown, limits: JsonLimits): void {
  if (typeof value === 'object' && value !== null) visit(value, 1, 0, limits)
}

/** Returns the number of members so far, including those of `value`. */
function visit(value: object, depth: number, before: number, limits: JsonLimits): number {
  if (depth > limits.maxDepth) throw tooDeep(limits)
  let members = before
  if (Array.isArray(value)) {
    members += value.length
    for (const item of value) if (typeof item === 'object' && item !== null) members = visit(item as object, depth + 1, members, limits)
  } else {
    for (const key in value) {
      members++
      const member = (value as Record<string, unknown>)[key]
      if (typeof member === 'object' && member !== null) members = visit(member, depth + 1, members, limits)
    }
  }
  if (members > limits.maxMembers) throw tooManyMembers(limits)
  return members
}
