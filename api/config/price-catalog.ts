import { ref, type Definitions } from '../schema.ts'
import { PRICED_RATES } from '../price-catalog.ts'
import { integer, list, map, object, string } from './shared.ts'

/** A price catalog that the operator read from a ConfigMap (llm.md §18). */
export const priceCatalogDefinitions: Definitions = {
  ResolvedPriceCatalog: object('A price catalog: exactly one of providers, invalid.', {
    providers: map(ref('CatalogProvider'), 'Models by provider, as in `gen_ai.provider.name`.'),
    invalid: string('Why the catalog is unusable, for logs. It has no prices then.'),
  }),
  CatalogProvider: object('Models of a provider.', { models: map(ref('CatalogModel'), 'Models by name; `*` matches any text.') }, ['models']),
  CatalogModel: object(
    'Prices of a model.',
    {
      rates: ref('CatalogRates'),
      tiers: list(ref('CatalogTier'), 'By contextOver, increasing.'),
      serviceTiers: map(ref('CatalogServiceTier'), 'Prices by the service tier that the response names.'),
      tags: list(string('Tag.'), 'What the model can do.'),
      contextWindow: integer('Tokens of the longest input.'),
      maxOutput: integer('Tokens of the longest output.'),
      source: string('Where the prices come from.'),
      date: string('Day of the last change, YYYY-MM-DD.'),
    },
    ['rates'],
  ),
  CatalogServiceTier: object(
    'Prices of a service tier.',
    { rates: ref('CatalogTierRates'), tiers: list(ref('CatalogTier'), 'By contextOver, increasing. They replace those of the model.') },
    ['rates'],
  ),
  CatalogTier: object(
    'Prices of requests with a larger context.',
    { contextOver: integer('Input tokens above which the prices apply.'), rates: ref('CatalogTierRates') },
    ['contextOver', 'rates'],
  ),
  CatalogRates: object('US dollars per million tokens.', Object.fromEntries(PRICED_RATES.map((name) => [name, string('Price.')])), ['input', 'output']),
  CatalogTierRates: object('US dollars per million tokens, where they differ.', Object.fromEntries(PRICED_RATES.map((name) => [name, string('Price.')]))),
}
