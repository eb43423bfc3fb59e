import { CUSTOM_SYSTEM, PRESET_NAMES, systemOf } from './llm-presets.ts'

/**
 * Prices in US dollars per million tokens, search units, images, seconds of audio and characters. Kinds of tokens without a price of their own cost what input
 * or output tokens cost (llm.md §18).
 */
export interface CatalogRates {
  readonly input: string
  readonly output: string
  readonly cacheRead?: string
  readonly cacheWrite?: string
  readonly reasoning?: string
  readonly inputAudio?: string
  readonly outputAudio?: string
  readonly inputImage?: string
  readonly outputImage?: string
  readonly searches?: string
  readonly images?: string
  readonly seconds?: string
  readonly characters?: string
}

/** Prices of requests whose context, in tokens, exceeds `contextOver`. They replace those of the model, field by field. */
interface CatalogTier {
  readonly contextOver: number
  readonly rates: Partial<CatalogRates>
}

/** Prices of a service tier. They replace those of the model, field by field; `tiers` replaces its `tiers`. */
interface CatalogServiceTier {
  readonly rates: Partial<CatalogRates>
  readonly tiers?: CatalogTier[]
}

/** What a model demands of requests and accepts, where the rules of its family do not hold (llm.md §7.15). */
export interface ModelCapabilities {
  /** Id of a model whose rules hold. */
  readonly family?: string
  /** How the model reasons: not, by an effort (Claude: adaptive thinking), or with a budget of tokens. */
  readonly reasoning?: (typeof REASONING)[number]
  /** Values of the effort, in rising order. */
  readonly efforts?: string[]
  /** Whether sampling parameters are accepted: always, never, or only while the model does not reason. */
  readonly sampling?: (typeof SAMPLING)[number]
  readonly maxTemperature?: number
  /** Field of the token limit of Chat Completions. */
  readonly tokenLimit?: (typeof TOKEN_LIMITS)[number]
  readonly tools?: boolean
  readonly images?: boolean
}

export interface CatalogModel {
  readonly rates: CatalogRates
  /** By `contextOver`, increasing. */
  readonly tiers?: CatalogTier[]
  /** By the service tier that the response names, such as `flex` and `priority`. */
  readonly serviceTiers?: Record<string, CatalogServiceTier>
  /** What the model can do, such as `tools` and `vision`. */
  readonly tags?: string[]
  readonly capabilities?: ModelCapabilities
  /** Tokens of the longest input. */
  readonly contextWindow?: number
  /** Tokens of the longest output. */
  readonly maxOutput?: number
  /** Where the prices come from, and the day of their last change (YYYY-MM-DD). */
  readonly source?: string
  readonly date?: string
}

/** A price catalog (llm.md §18). */
export interface PriceCatalog {
  /** Models by `gen_ai.provider.name`. */
  readonly providers: Readonly<Record<string, { readonly models: Readonly<Record<string, CatalogModel>> }>>
}

/** Values of `gen_ai.provider.name`. */
const PRICED_PROVIDERS = ['openai', 'azure', 'anthropic', 'gcp.gemini', 'gcp.vertex_ai', 'aws.bedrock', ...PRESET_NAMES.map(systemOf), CUSTOM_SYSTEM]

export const REASONING = ['None', 'Effort', 'Budget'] as const
export const SAMPLING = ['Any', 'Fixed', 'FixedWhileReasoning'] as const
export const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens'] as const
/** Tags of capabilities that the choice of a model reads. */
const CAPABILITY_TAGS = { tools: 'tools', images: 'vision' } as const

/** Kinds of tokens with a price. */
export const TOKEN_RATES = ['input', 'output', 'cacheRead', 'cacheWrite', 'reasoning', 'inputAudio', 'outputAudio', 'inputImage', 'outputImage'] as const
/** What has a price beside tokens. */
export const PRICED_UNITS = ['searches', 'images', 'seconds', 'characters'] as const
/** All that has a price. */
export const PRICED_RATES = [...TOKEN_RATES, ...PRICED_UNITS] as const
const RATE_PATTERN = /^\d{1,9}(\.\d{1,6})?$/
const MAX_MODELS = 10_000
const MAX_NAME_LENGTH = 256
const MAX_LIST = 32
const MAX_SOURCE_LENGTH = 512
const DATE_PATTERN = /^\d{4}-\d{2}-\d{2}$/
const MODEL_FIELDS = ['rates', 'tiers', 'serviceTiers', 'tags', 'capabilities', 'contextWindow', 'maxOutput', 'source', 'date'] as const

/** A catalog that cannot be used. The message names the field, its value and the fix. */
export class PriceCatalogError extends Error {}

/**
 * Reads a parsed document as a price catalog.
 *
 * @throws PriceCatalogError for the first field that is wrong
 * @example
 * readPriceCatalog({ providers: { openai: { models: { 'gpt-4o': { rates: { input: '2.5', output: '10' } } } } } })
 */
export function readPriceCatalog(document: unknown): PriceCatalog {
  const root = objectAt(document, '', ['providers'])
  let models = 0
  const providers = Object.entries(objectAt(root['providers'], 'providers', PRICED_PROVIDERS)).map(([provider, value]) => {
    const path = `providers.${provider}`
    const entries = Object.entries(objectAt(objectAt(value, path, ['models'])['models'], `${path}.models`))
    models += entries.length
    if (models > MAX_MODELS) throw new PriceCatalogError(`it has more than ${MAX_MODELS} models`)
    return [provider, { models: Object.fromEntries(entries.map(([name, model]) => [name, readModel(name, model, `${path}.models`)])) }] as const
  })
  return { providers: Object.fromEntries(providers) }
}

function readModel(name: string, value: unknown, parent: string): CatalogModel {
  if (name === '' || name.length > MAX_NAME_LENGTH)
    throw new PriceCatalogError(`${parent} has a name of ${name.length} characters; use 1 to ${MAX_NAME_LENGTH}`)
  const path = `${parent}[${JSON.stringify(name)}]`
  const fields = objectAt(value, path, MODEL_FIELDS)
  const { rates, tiers, serviceTiers = {}, tags = [], capabilities, contextWindow, maxOutput, source, date } = fields
  if (!Array.isArray(tags) || tags.length > MAX_LIST || !tags.every((tag) => typeof tag === 'string' && tag.length <= MAX_NAME_LENGTH))
    throw new PriceCatalogError(`${path}.tags must be a list of at most ${MAX_LIST} texts`)
  const own = readRates(rates, `${path}.rates`)
  for (const field of ['input', 'output'] as const) if (own[field] === undefined) throw new PriceCatalogError(`${path}.rates.${field} is missing`)
  const read = readTiers(tiers, path)
  const services = Object.entries(objectAt(serviceTiers, `${path}.serviceTiers`)).map(([tier, each]) => [
    tier,
    readServiceTier(each, `${path}.serviceTiers.${tier}`),
  ])
  if (services.length > MAX_LIST) throw new PriceCatalogError(`${path}.serviceTiers has ${services.length} tiers; use at most ${MAX_LIST}`)
  for (const [field, count] of Object.entries({ contextWindow, maxOutput }))
    if (count !== undefined && !(Number.isSafeInteger(count) && Number(count) > 0))
      throw new PriceCatalogError(`${path}.${field} is ${show(count)}; write a number of tokens above 0`)
  if (source !== undefined && (typeof source !== 'string' || source.length > MAX_SOURCE_LENGTH))
    throw new PriceCatalogError(`${path}.source is ${show(source)}; write a text of at most ${MAX_SOURCE_LENGTH} characters`)
  if (date !== undefined && (typeof date !== 'string' || !DATE_PATTERN.test(date)))
    throw new PriceCatalogError(`${path}.date is ${show(date)}; write a day such as "2026-01-31"`)
  const can = capabilities === undefined ? undefined : readCapabilities(capabilities, `${path}.capabilities`)
  const allTags = can === undefined ? (tags as string[]) : tagsOf(tags as string[], can)
  return {
    rates: own as CatalogRates,
    ...(read.length > 0 && { tiers: read }),
    ...(services.length > 0 && { serviceTiers: Object.fromEntries(services) as Record<string, CatalogServiceTier> }),
    ...(allTags.length > 0 && { tags: allTags }),
    ...(can !== undefined && { capabilities: can }),
    ...(contextWindow !== undefined && { contextWindow: contextWindow as number }),
    ...(maxOutput !== undefined && { maxOutput: maxOutput as number }),
    ...(source !== undefined && { source }),
    ...(date !== undefined && { date }),
  }
}

function readCapabilities(value: unknown, path: string): ModelCapabilities {
  const fields = objectAt(value, path, Object.keys(capabilityFields))
  for (const [field, given] of Object.entries(fields)) {
    const { isValid, fix } = capabilityFields[field as keyof ModelCapabilities]
    if (!isValid(given)) throw new PriceCatalogError(`${path}.${field} is ${show(given)}; ${fix}`)
  }
  return fields
}

const isName = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= MAX_NAME_LENGTH
const oneOf = (values: readonly string[]) => ({ isValid: (value: unknown) => values.includes(value as string), fix: `use ${values.join(', ')}` })
const flag = { isValid: (value: unknown) => typeof value === 'boolean', fix: 'use true or false' }

const capabilityFields: Readonly<Record<keyof ModelCapabilities, { readonly isValid: (value: unknown) => boolean; readonly fix: string }>> = {
  family: { isValid: isName, fix: `write the id of a model with the same rules, of at most ${MAX_NAME_LENGTH} characters` },
  reasoning: oneOf(REASONING),
  efforts: { isValid: (value) => Array.isArray(value) && value.length <= MAX_LIST && value.every(isName), fix: `write a list of at most ${MAX_LIST} texts` },
  sampling: oneOf(SAMPLING),
  maxTemperature: { isValid: (value) => typeof value === 'number' && value > 0 && value <= 2, fix: 'write a number above 0, at most 2' },
  tokenLimit: oneOf(TOKEN_LIMITS),
  tools: flag,
  images: flag,
}

/** The tags of a model, as its capabilities correct them. */
function tagsOf(tags: readonly string[], capabilities: ModelCapabilities): string[] {
  const corrected = new Set(tags)
  for (const [field, tag] of Object.entries(CAPABILITY_TAGS)) {
    const can = capabilities[field as keyof typeof CAPABILITY_TAGS]
    if (can === true) corrected.add(tag)
    else if (can === false) corrected.delete(tag)
  }
  return [...corrected]
}

function readServiceTier(value: unknown, path: string): CatalogServiceTier {
  const { rates = {}, tiers } = objectAt(value, path, ['rates', 'tiers'])
  const read = readTiers(tiers, path)
  return { rates: readRates(rates, `${path}.rates`), ...(read.length > 0 && { tiers: read }) }
}

function readTiers(tiers: unknown = [], path: string): CatalogTier[] {
  if (!Array.isArray(tiers) || tiers.length > MAX_LIST) throw new PriceCatalogError(`${path}.tiers must be a list of at most ${MAX_LIST} tiers`)
  let last = 0
  return tiers.map((tier: unknown, index) => {
    const at = `${path}.tiers[${index}]`
    const { contextOver, rates: above } = objectAt(tier, at, ['contextOver', 'rates'])
    if (typeof contextOver !== 'number' || !Number.isSafeInteger(contextOver) || contextOver <= last)
      throw new PriceCatalogError(`${at}.contextOver is ${show(contextOver)}; write a number of tokens above ${last}`)
    last = contextOver
    return { contextOver, rates: readRates(above, `${at}.rates`) }
  })
}

function readRates(value: unknown, path: string): Partial<CatalogRates> {
  const rates = objectAt(value, path, PRICED_RATES)
  for (const [field, rate] of Object.entries(rates)) {
    if (typeof rate === 'string' && RATE_PATTERN.test(rate)) continue
    throw new PriceCatalogError(`${path}.${field} is ${show(rate)}; write US dollars per million as text, such as "2.5", with at most 6 decimals`)
  }
  return rates
}

function objectAt(value: unknown, path: string, fields?: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new PriceCatalogError(path === '' ? 'it is not an object' : `${path} is ${show(value)}; it must be an object`)
  const unknown = fields && Object.keys(value).find((field) => !fields.includes(field))
  if (unknown !== undefined) throw new PriceCatalogError(`${path === '' ? '' : `${path}.`}${unknown.slice(0, 64)} is unknown; use ${fields?.join(', ')}`)
  return value
}

const show = (value: unknown): string => (value === undefined ? 'missing' : (JSON.stringify(value) ?? '').slice(0, 64))

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)
