import type { CatalogModel, ModelCapabilities, PriceCatalog } from '#api/price-catalog.ts'
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
  /** What the first catalog that has the model says about it. */
  describe(system: string, model: string): ModelDescription | undefined
  /** What the catalog of the policy says that the model accepts; undefined: the rules of its family hold. */
  capabilitiesOf(system: string, model: string): ModelCapabilities | undefined
}

/** What a model can do, as far as a catalog says. */
export type ModelDescription = Pick<CatalogModel, 'tags' | 'contextWindow' | 'maxOutput'>

type Source = (system: string, model: string) => Price | undefined
type Catalog = (system: string, model: string) => CatalogModel | undefined

let builtInSource: { readonly find: Source; readonly describe: Catalog } | undefined

/** Compiles the prices of an `ai` section. */
export function compilePrices({ prices, priceCatalog }: Pick<BackendAI, 'prices' | 'priceCatalog'>): PriceTable {
  const sources: Source[] = []
  const catalogs: Catalog[] = []
  const add = ({ find, describe }: NonNullable<typeof builtInSource>): void => {
    sources.push(find)
    catalogs.push(describe)
  }
  if (prices !== undefined) {
    const table = createNameTable(Object.fromEntries(Object.entries(prices).map(([model, rates]) => [model, compilePrice({ rates })])))
    sources.push((_system, model) => table(model))
  }
  const providers = priceCatalog?.configMapRef?.providers
  const own = providers && compileCatalog({ providers })
  if (own !== undefined) add(own)
  if (priceCatalog?.builtIn !== 'Disabled') add((builtInSource ??= compileCatalog(builtIn)))
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
    capabilitiesOf: (system, model) => own?.describe(system, model)?.capabilities,
    describe(system, model) {
      for (const catalog of catalogs) {
        const described = catalog(system, model)
        if (described !== undefined) return described
      }
      return undefined
    },
  }
}

/** Prices are compiled when they are first used: a process uses few of hundreds. */
function compileCatalog({ providers }: PriceCatalog): { readonly find: Source; readonly describe: Catalog } {
  const tables = new Map(Object.entries(providers).map(([system, { models }]) => [system, createNameTable(models)]))
  const compiled = new WeakMap<object, Price>()
  const describe: Catalog = (system, name) => tables.get(system)?.(name)
  return {
    describe,
    find(system, name) {
      const model = describe(system, name)
      if (model === undefined) return undefined
      let price = compiled.get(model)
      if (price === undefined) compiled.set(model, (price = compilePrice(model)))
      return price
    },
  }
}
