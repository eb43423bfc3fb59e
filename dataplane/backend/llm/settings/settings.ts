import type { Program } from '#api/cel/index.ts'
import { parseTimeout } from '#api/duration.ts'
import type { BackendAI, BackendFull } from '#gen/config/types.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import type { Enrichment, PromptCaching } from '../common/types.ts'
import { compilePrices, type PriceTable } from '../pricing/table.ts'
import { compileMutations, type Mutations } from './mutate.ts'
import { createNameTable } from '../common/patterns.ts'
import { createRouteTable } from './routes.ts'

/** The compiled `ai` section of one provider. */
export interface LlmSettings {
  readonly section: BackendAI
  readonly routeOf: ReturnType<typeof createRouteTable>
  readonly resolveAlias: (model: string) => string
  readonly mutations: Mutations | undefined
  readonly enrichment: Enrichment | undefined
  readonly promptCaching: PromptCaching | undefined
  readonly prices: PriceTable
  readonly cache: CacheSettings | undefined
  /** Longest time until the first content of a stream; undefined for no limit. */
  readonly firstTokenMs: number | undefined
  /** Longest pause of a stream after its first content; undefined for no limit. */
  readonly streamIdleMs: number | undefined
}

/** The compiled section `ai.cache`. */
interface CacheSettings {
  /** Requests of different tenants never share a response. */
  readonly tenant: Program
  readonly ttlMs: number
  /** Requests with tools of the client are cached. */
  readonly allowsTools: boolean
  /** Responses are stored in Redis, if the process has one. */
  readonly isRemote: boolean
}

const DEFAULT_CACHE_TTL_MS = 5 * 60_000

/**
 * Merges the `ai` sections of all levels, weakest first. Each field comes entirely from the strongest level that sets it; an empty
 * value counts as not set (llm.md §6, D5).
 */
export function mergeAi(sections: readonly BackendFull[]): BackendAI {
  const merged: Record<string, unknown> = {}
  for (const { ai } of sections) {
    if (ai === undefined) continue
    for (const [field, value] of Object.entries(ai)) if (!isEmpty(value)) merged[field] = value
  }
  return merged
}

const isEmpty = (value: unknown): boolean => value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)

/** Compiles a merged `ai` section. */
export function compileSettings(section: BackendAI): LlmSettings {
  const { routes, modelAliases, prompt, promptCaching, cache } = section
  const aliases = createNameTable(modelAliases)
  return {
    section,
    routeOf: createRouteTable(routes),
    resolveAlias: (model) => aliases(model) ?? model,
    mutations: compileMutations(section),
    prices: compilePrices(section),
    cache: cache && {
      tenant: compileExpression(cache.tenant, 'request'),
      ttlMs: parseTimeout(cache.ttl) ?? DEFAULT_CACHE_TTL_MS,
      allowsTools: cache.tools === 'Allow',
      isRemote: cache.store === 'Redis',
    },
    firstTokenMs: parseTimeout(section.firstTokenTimeout),
    streamIdleMs: parseTimeout(section.streamIdleTimeout),
    enrichment: prompt && enrichmentOf(prompt),
    promptCaching: promptCaching && {
      cacheSystem: promptCaching.cacheSystem ?? true,
      cacheMessages: promptCaching.cacheMessages ?? true,
      cacheTools: promptCaching.cacheTools ?? false,
      minTokens: promptCaching.minTokens ?? 1024,
    },
  }
}

/** Writes roles in lower case, because the documentation also uses upper case (llm.md D12). */
function enrichmentOf({ prepend = [], append = [] }: NonNullable<BackendAI['prompt']>): Enrichment {
  const normalize = (messages: typeof prepend) => messages.map(({ role, content }) => ({ role: role.toLowerCase(), content }))
  return { prepend: normalize(prepend), append: normalize(append) }
}
