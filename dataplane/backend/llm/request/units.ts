import { pathOf } from '../../../http/message.ts'
import { numberOf } from '../common/read.ts'
import type { JsonObject, Units } from '../common/types.ts'
import { comparablePath } from '../settings/routes.ts'

/** What OpenAI bills by in place of tokens, by the path of a request: images that it asks for, characters that it lets speak (pricing of OpenAI). */
export function unitsOf(target: string, body: JsonObject): Units | undefined {
  const path = comparablePath(pathOf(target))
  if (/\/images\/(?:generations|edits|variations)$/.test(path)) return { images: Math.max(1, Math.ceil(countIn(body['n']))) }
  if (path.endsWith('/audio/speech') && typeof body['input'] === 'string') return { characters: body['input'].length }
  return undefined
}

/** A number, which fields of forms have as text. */
function countIn(value: unknown): number {
  const count = typeof value === 'string' ? Number(value) : numberOf(value)
  return count !== undefined && Number.isFinite(count) ? count : 1
}
