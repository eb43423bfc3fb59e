import type { PathMatch } from '#gen/config/types.ts'
import { pathOf } from '../http/message.ts'

/** Path of a match that has none. */
export const everyPath: PathMatch = { type: 'PathPrefix', value: '/' }

/** Path that matches are compared with: undecoded, without query; `/` for CONNECT, which has none (traffic.md §7). */
export function matchablePath(target: string): string {
  return target === '' ? '/' : pathOf(target)
}
