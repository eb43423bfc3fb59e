import type { Chat } from '../common/neutral.ts'
import { objectOf, objectsOf, without } from '../common/read.ts'
import type { JsonObject } from '../common/types.ts'
import { withList } from './lists.ts'
import type { CacheRule } from './types.ts'

/**
 * Breakpoints of prompt caches. With more than a target accepts, those of tools and of the system prompt stay, and the last ones of messages: a breakpoint
 * covers all before it.
 */
class Marks {
  #surplus: number

  constructor(surplus: number) {
    this.#surplus = surplus
  }

  /** Whether the next breakpoint of a message is one too many. */
  isSurplus(): boolean {
    return this.#surplus-- > 0
  }
}

/** A chat whose cache breakpoints the target accepts. */
export function fitMarks(chat: Chat, { marker, max }: CacheRule): Chat {
  if (marker !== 'cache_control') return chat
  const marked = (blocks: readonly object[]): number => blocks.filter((block) => 'cache' in block && block.cache !== undefined).length
  const surplus = marked(chat.tools) + marked(chat.system) + chat.turns.reduce((sum, { blocks }) => sum + marked(blocks), 0) - max
  if (surplus <= 0) return chat
  const marks = new Marks(surplus)
  const turns = chat.turns.map((turn) => ({
    ...turn,
    blocks: turn.blocks.map((block) => {
      if (!('cache' in block) || block.cache === undefined || !marks.isSurplus()) return block
      const { cache: _, ...rest } = block
      return rest
    }),
  }))
  return { ...chat, turns }
}

const isMarked = (item: JsonObject): boolean => objectOf(item['cache_control']) !== undefined

/** A Messages request with at most `max` breakpoints. Blocks in results have none: those belong to the result (caozhiyuan/copilot-api#241). */
export function limitMarks(body: JsonObject, { max }: CacheRule): JsonObject {
  const messages = objectsOf(body['messages'])
  const count = (items: readonly JsonObject[]): number => items.filter(isMarked).length
  const fixed = count(objectsOf(body['tools'])) + count(objectsOf(body['system'])) + (isMarked(body) ? 1 : 0)
  const surplus = fixed + messages.reduce((sum, { content }) => sum + count(objectsOf(content)), 0) - max
  if (surplus <= 0) return body
  const marks = new Marks(surplus)
  return withList(body, 'messages', (message) =>
    withList(message, 'content', (block) => (isMarked(block) && marks.isSurplus() ? without(block, 'cache_control') : block)),
  )
}
