import { inside, listOf, objectsOf, textOf } from '../../common/read.ts'
import type { JsonObject, PromptCaching } from '../../common/types.ts'
import type { CacheRule } from '../../rules/types.ts'

const point: JsonObject = { cachePoint: { type: 'default' } }

/** The lifetime of a point without `ttl`. */
const DEFAULT_TTL = '5m'

/** Writes cache points where a client set `cache_control`, up to the limit, in the order system, messages, tools (llm.md §7.7). */
export class CacheMarks {
  readonly #rule: CacheRule
  readonly #isOn: boolean
  #used = 0

  constructor(rule: CacheRule, isOn: boolean) {
    this.#rule = rule
    this.#isOn = isOn && rule.marker === 'cachePoint'
  }

  /** Whether the client set a mark. */
  get isUsed(): boolean {
    return this.#used > 0
  }

  /** The cache point after a block, if the block has a mark. */
  after(mark: JsonObject | undefined): JsonObject[] {
    if (mark === undefined || !this.#isOn || this.#used === this.#rule.max) return []
    this.#used++
    const ttl = this.#rule.hasTtl ? textOf(mark['ttl']) : undefined
    return ttl === undefined || ttl === DEFAULT_TTL ? [point] : [{ cachePoint: { type: 'default', ttl } }]
  }
}

/** Adds the cache points of the `promptCaching` policy (llm.md §14). */
export function addCachePoints(body: JsonObject, model: string, caching: PromptCaching | undefined): JsonObject {
  if (caching === undefined || !canCache(model)) return body
  const system = listOf(body['system'])
  const messages = objectsOf(body['messages'])
  const tools = listOf(inside(body['toolConfig'])['tools'])
  const marked = messages.length - 2
  return {
    ...body,
    ...(caching.cacheSystem && system.length > 0 && estimateTokens(system) >= caching.minTokens && { system: [...system, point] }),
    ...(caching.cacheMessages &&
      marked >= 0 && {
        messages: messages.map((message, i) => (i === marked ? { ...message, content: [...listOf(message['content']), point] } : message)),
      }),
    ...(caching.cacheTools && tools.length > 0 && { toolConfig: { ...inside(body['toolConfig']), tools: [...tools, point] } }),
  }
}

/** Whether a model has prompt caching (llm.md §14). Others reject cache points. */
export function canCache(model: string): boolean {
  const id = model.toLowerCase()
  if (/^arn:.*:application-inference-profile\//.test(id) || id.includes('amazon.nova')) return true
  return id.includes('anthropic.claude') && !/anthropic\.claude-(instant|v1|v2)/.test(id)
}

/** Estimates tokens as floor(words × 1.3) (llm.md §14). */
function estimateTokens(system: readonly unknown[]): number {
  const text = system.map((block) => textOf(inside(block)['text']) ?? '').join(' ')
  return Math.floor((text.match(/\S+/g)?.length ?? 0) * 1.3)
}
