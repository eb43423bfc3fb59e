import type { PathMatch } from '#gen/config/types.ts'
import { pathOf } from '../http/message.ts'

/** What a match without path stands for. */
export const everyPath: PathMatch = { type: 'PathPrefix', value: '/' }

/** Path that matches are tried on: undecoded, without query; CONNECT has none and is matched as `/` (traffic.md §7). */
export function matchablePath(target: string): string {
  return target === '' ? '/' : pathOf(target)
}

/** A prefix with a leading and without a trailing slash: `foo/` is `/foo`, `/` is ''. */
export function normalizePrefix(value: string): string {
  const rooted = value.startsWith('/') ? value : `/${value}`
  return rooted.endsWith('/') ? rooted.slice(0, -1) : rooted
}
