import { createHash } from 'node:crypto'
import type { UserRule } from './types.ts'

const PERSONAL = /[^\s@]+@[^\s@]+\.[^\s@]+|^\+?[\d\s().-]{7,}$/

/** The id of a user as a target accepts it: the same one in every request, so that the provider still tells users apart. */
export function fitUser(user: string, { max, isOpaque }: UserRule): string {
  if (user.length <= max && !(isOpaque && PERSONAL.test(user.slice(0, max)))) return user
  return createHash('sha256').update(user).digest('hex').slice(0, Math.min(64, max))
}
