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

/** Number of names in the objects of valid JSON, repeated ones too. */
export function countNames(text: string): number {
  let names = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x3a) names++
    if (code !== 0x22) continue
    while (text.charCodeAt(++at) !== 0x22) if (text.charCodeAt(at) === 0x5c) at++
  }
  return names
}

/** Number of members of the objects in parsed JSON. */
export function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let members = 0
  if (Array.isArray(value)) for (const item of value) members += countMembers(item)
  else for (const key of Object.keys(value)) members += 1 + countMembers((value as Record<string, unknown>)[key])
  return members
}
