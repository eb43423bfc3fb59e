import type { PriceCatalog } from '#api/price-catalog.ts'
import type { BackendAI } from '#gen/config/types.ts'
import { createNameTable } from '../common/patterns.ts'
import builtIn from './built-in.json' with { type: 'json' }
import { compilePrice, type Price } from './price.ts'

/** Result of pricing a response (llm.md §18): priced; the model has no price; the response has no usage; no prices are configured. */
export type PriceStatus = 'exact' | 'missing' | 'unpriced' | 'noCatalog'

/** The prices that apply to the requests of one target. */
export interface PriceTable {
  /** Whether there is any price to look up. */
  readonly isEmpty: boolean
  /**
   * The price of the first model that has one in the first source that has one: the prices of the policy, its catalog, the built-in catalog.
   * @param system value of `gen_ai.provider.name`
   * @param models names in order of preference; undefined names are skipped
   */
  find(system: string, ...models: readonly (string | undefined)[]): Price | undefined
}

type Source = (system: string, model: string) => Price | undefined

let builtInSource: Source | undefined

/** Compiles the prices of an `ai` section. */
export function compilePrices({ prices, priceCatalog }: Pick<BackendAI, 'prices' | 'priceCatalog'>): PriceTable {
  const sources: Source[] = []
  if (prices !== undefined) {
    const table = createNameTable(Object.fromEntries(Object.entries(prices).map(([model, rates]) => [model, compilePrice({ rates })])))
    sources.push((_system, model) => table(model))
  }
  const providers = priceCatalog?.configMapRef?.providers
  if (providers !== undefined) sources.push(compileCatalog({ providers }))
  if (priceCatalog?.builtIn !== 'Disabled') sources.push((builtInSource ??= compileCatalog(builtIn)))
  return {
    isEmpty: sources.length === 0,
    find(system, ...models) {
      for (const source of sources) {
        for (const model of models) {
          const price = model === undefined ? undefined : source(system, model)
          if (price !== undefined) return price
        }
      }
      return undefined
    },
  }
}

/** Prices are compiled when they are first used: a process uses few of hundreds. */
function compileCatalog({ providers }: PriceCatalog): Source {
  const tables = new Map(Object.entries(providers).map(([system, { models }]) => [system, createNameTable(models)]))
  const compiled = new WeakMap<object, Price>()
  return (system, name) => {
    const model = tables.get(system)?.(name)
    if (model === undefined) return undefined
    let price = compiled.get(model)
    if (price === undefined) compiled.set(model, (price = compilePrice(model)))
    return price
  }
}
