import type { PathMatch } from '#gen/config/types.ts'
import { pathOf } from '../http/message.ts'

/** Path of a match that has none. */
export const everyPath: PathMatch = { type: 'PathPrefix', value: '/' }

/** Path that matches are compared with: undecoded, without query; `/` for CONNECT, which has none (traffic.md §7). */
export function matchablePath(target: string): string {
  return target === '' ? '/' : pathOf(target)
}

/** Normalizes a prefix to a leading and no trailing slash: `foo/` becomes `/foo`, `/` becomes ''. */
export function normalizePrefix(value: string): string {
  const rooted = value.startsWith('/') ? value : `/${value}`
  return rooted.endsWith('/') ? rooted.slice(0, -1) : rooted
}
