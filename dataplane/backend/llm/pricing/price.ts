import { PRICED_UNITS, type CatalogModel, type CatalogRates, type TOKEN_RATES } from '#api/price-catalog.ts'
import type { ModelPrice } from '#gen/config/types.ts'
import type { ResponseFacts, Units } from '../common/types.ts'

/** Prices of one model per million tokens. */
export type Rates = Readonly<Record<(typeof TOKEN_RATES)[number], number>>

/** Prices of one model, which may depend on the size of the context. */
export interface Price {
  readonly rates: Rates
  /** Prices per million units; undefined: the model has none. */
  readonly units?: Units | undefined
  /** By `contextOver`, decreasing. */
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[]
  /** By service tier; undefined: none has prices of its own. */
  readonly serviceTiers?: ReadonlyMap<string, Price> | undefined
}

const MILLION = 1_000_000

/** Compiles prices of the policy or of a catalog. Kinds of tokens without a price cost what input or output tokens cost (llm.md §18). */
export function compilePrice(model: Pick<CatalogModel, 'tiers' | 'serviceTiers'> & { readonly rates: ModelPrice & Partial<CatalogRates> }): Price {
  const { rates, tiers = [], serviceTiers } = model
  const services = serviceTiers && Object.entries(serviceTiers)
  return {
    rates: fill(rates),
    units: unitsOf(rates),
    tiers: tiers.map((tier) => ({ contextOver: tier.contextOver, rates: fill({ ...rates, ...tier.rates }) })).toReversed(),
    serviceTiers: services && new Map(services.map(([name, tier]) => [name, compilePrice({ rates: { ...rates, ...tier.rates }, tiers: tier.tiers ?? tiers })])),
  }
}

function unitsOf(rates: Partial<CatalogRates>): Units | undefined {
  const given = PRICED_UNITS.flatMap((unit) => (rates[unit] === undefined ? [] : [[unit, Number(rates[unit])] as const]))
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

function fill(texts: ModelPrice & Partial<CatalogRates>): Rates {
  const input = Number(texts.input)
  const output = Number(texts.output)
  const rate = (text: string | undefined, fallback: number): number => (text === undefined ? fallback : Number(text))
  return {
    input,
    output,
    cacheRead: rate(texts.cacheRead, input),
    cacheWrite: rate(texts.cacheWrite, input),
    reasoning: rate(texts.reasoning, output),
    inputAudio: rate(texts.inputAudio, input),
    outputAudio: rate(texts.outputAudio, output),
    inputImage: rate(texts.inputImage, input),
    outputImage: rate(texts.outputImage, output),
  }
}

/** The rates of a request with so many input tokens: those of the highest tier below it, for all its tokens. */
function ratesFor({ rates, tiers }: Price, inputTokens: number): Rates {
  if (tiers.length === 0) return rates
  return tiers.find(({ contextOver }) => inputTokens > contextOver)?.rates ?? rates
}

/** The cost of units; undefined if the price has none of them. */
function unitCost(units: Units, { units: rates }: Price): number | undefined {
  if (rates === undefined) return undefined
  let cost: number | undefined
  for (const unit of PRICED_UNITS) {
    const rate = rates[unit]
    const count = units[unit]
    if (rate !== undefined && count !== undefined) cost = (cost ?? 0) + (count * rate) / MILLION
  }
  return cost
}

/**
 * The cost of a response in the currency of the price, and its rates; undefined if the provider did not report what has a price. Units count where the tokens
 * cost nothing, because a catalog may have both prices of a model that is billed once.
 */
export function costOf(
  { usage, serviceTier }: Pick<ResponseFacts, 'usage' | 'serviceTier'>,
  price: Price,
): { readonly cost: number; readonly rates: Rates } | undefined {
  const { inputTokens, outputTokens = 0 } = usage
  const ofUnits = unitCost(usage, price)
  if (inputTokens === undefined) return ofUnits === undefined ? undefined : { cost: rounded(ofUnits), rates: price.rates }
  // Parts are no more than the whole, whatever an upstream says.
  const cachedInputTokens = Math.min(inputTokens, usage.cachedInputTokens ?? 0)
  const cacheCreationInputTokens = Math.min(inputTokens - cachedInputTokens, usage.cacheCreationInputTokens ?? 0)
  const reasoningTokens = Math.min(outputTokens, usage.reasoningTokens ?? 0)
  const rates = ratesFor((serviceTier !== undefined && price.serviceTiers?.get(serviceTier)) || price, inputTokens)
  const input = share(Math.max(0, inputTokens - cachedInputTokens - cacheCreationInputTokens), usage.inputAudioTokens, usage.inputImageTokens)
  const output = share(Math.max(0, outputTokens - reasoningTokens), usage.outputAudioTokens, usage.outputImageTokens)
  const sum =
    input.rest * rates.input +
    input.audio * rates.inputAudio +
    input.image * rates.inputImage +
    cachedInputTokens * rates.cacheRead +
    cacheCreationInputTokens * rates.cacheWrite +
    output.rest * rates.output +
    output.audio * rates.outputAudio +
    output.image * rates.outputImage +
    reasoningTokens * rates.reasoning
  return { cost: rounded(sum === 0 && ofUnits !== undefined ? ofUnits : sum / MILLION), rates }
}

const rounded = (cost: number): number => Math.round(cost * 1e12) / 1e12

/** Splits tokens by kind. Some of the audio and image tokens may be cached, so that they cannot be more than the tokens that are left. */
function share(tokens: number, audioTokens = 0, imageTokens = 0): Readonly<Record<'audio' | 'image' | 'rest', number>> {
  const audio = Math.min(tokens, audioTokens)
  const image = Math.min(tokens - audio, imageTokens)
  return { audio, image, rest: tokens - audio - image }
}

/** The price of tokens of which none are cached, and of units. */
export function priceOf(inputTokens: number, outputTokens: number, price: Price, units: Units = {}): number {
  const { input, output } = ratesFor(price, inputTokens)
  return (inputTokens * input + outputTokens * output) / MILLION + (unitCost(units, price) ?? 0)
}
