import { ref, type Definitions } from '../schema.ts'
import { PRICED_RATES, REASONING, SAMPLING, TOKEN_LIMITS } from '../price-catalog.ts'
import { boolean, integer, list, map, number, object, string } from './shared.ts'

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
      capabilities: ref('ModelCapabilities'),
      contextWindow: integer('Tokens of the longest input.'),
      maxOutput: integer('Tokens of the longest output.'),
      source: string('Where the prices come from.'),
      date: string('Day of the last change, YYYY-MM-DD.'),
    },
    ['rates'],
  ),
  ModelCapabilities: object('What a model accepts, where the rules of its family do not hold.', {
    family: string('Id of a model whose rules hold.'),
    reasoning: string('How the model reasons: not, by an effort, or with a budget of tokens.', { enum: REASONING }),
    efforts: list(string('Effort.'), 'Values of the effort, in rising order.'),
    sampling: string('Whether sampling parameters are accepted: always, never, or only while the model does not reason.', { enum: SAMPLING }),
    maxTemperature: number('Highest temperature.'),
    tokenLimit: string('Field of the token limit of Chat Completions.', { enum: TOKEN_LIMITS }),
    tools: boolean('Whether requests may have tools.'),
    images: boolean('Whether requests may have images.'),
  }),
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
  CatalogRates: object(
    'US dollars per million tokens, search units, images, seconds or characters.',
    Object.fromEntries(PRICED_RATES.map((name) => [name, string('Price.')])),
    ['input', 'output'],
  ),
  CatalogTierRates: object('US dollars per million tokens, where they differ.', Object.fromEntries(PRICED_RATES.map((name) => [name, string('Price.')]))),
}
