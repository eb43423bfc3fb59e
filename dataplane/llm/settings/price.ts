import type { ModelPrice } from '#gen/config/types.ts'
import type { ResponseFacts } from '../common/types.ts'
import { createNameTable } from './patterns.ts'

/** Prices of one model per million tokens. */
export interface Rates {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning: number
}

/** Returns the prices of a model; undefined if none match. */
export type PriceTable = (model: string) => Rates | undefined

const MILLION = 1_000_000

/** Compiles the price table, whose model names may contain `*`; undefined if prices are not configured. */
export function compilePrices(prices: Readonly<Record<string, ModelPrice>> | undefined): PriceTable | undefined {
  if (prices === undefined) return undefined
  return createNameTable(Object.fromEntries(Object.entries(prices).map(([model, price]) => [model, ratesOf(price)])))
}

function ratesOf({ input, output, cacheRead, cacheWrite, reasoning }: ModelPrice): Rates {
  const rate = (text: string | undefined, fallback: string): number => Number(text ?? fallback)
  return {
    input: Number(input),
    output: Number(output),
    cacheRead: rate(cacheRead, input),
    cacheWrite: rate(cacheWrite, input),
    reasoning: rate(reasoning, output),
  }
}

/** The cost of a response in the currency of the price table; undefined if the provider did not report input tokens. */
export function costOf({ usage }: ResponseFacts, rates: Rates): number | undefined {
  const { inputTokens, outputTokens = 0, cachedInputTokens = 0, cacheCreationInputTokens = 0, reasoningTokens = 0 } = usage
  if (inputTokens === undefined) return undefined
  const uncached = Math.max(0, inputTokens - cachedInputTokens - cacheCreationInputTokens)
  const visible = Math.max(0, outputTokens - reasoningTokens)
  const sum =
    uncached * rates.input +
    cachedInputTokens * rates.cacheRead +
    cacheCreationInputTokens * rates.cacheWrite +
    visible * rates.output +
    reasoningTokens * rates.reasoning
  return Math.round((sum / MILLION) * 1e12) / 1e12
}

/** The price of tokens of which none are cached. */
export function priceOf(inputTokens: number, outputTokens: number, { input, output }: Rates): number {
  return (inputTokens * input + outputTokens * output) / MILLION
}
