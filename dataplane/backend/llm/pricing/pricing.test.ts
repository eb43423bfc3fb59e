import { describe, expect, test } from '@jest/globals'
import { readPriceCatalog } from '#api/price-catalog.ts'
import type { Usage } from '../common/types.ts'
import builtIn from './built-in.json' with { type: 'json' }
import { compilePrice, costOf, priceOf, type Price } from './price.ts'
import { compilePrices } from './table.ts'

const usd = (usage: Usage, price: Price): number | undefined => costOf({ usage } as Parameters<typeof costOf>[0], price)?.cost
const inputRate = (price: Price | undefined): number | undefined => price?.rates.input
const catalog = (model: string, input: string) => ({ providers: { openai: { models: { [model]: { rates: { input, output: '0' } } } } } })

describe('the cost of a response', () => {
  const price = compilePrice({
    rates: { input: '1', output: '10', cacheRead: '0.1', cacheWrite: '2', reasoning: '20', inputAudio: '100', outputAudio: '200', inputImage: '50' },
  })

  test.each([
    ['plain tokens', { inputTokens: 1000, outputTokens: 100 }, 0.002],
    ['cached tokens', { inputTokens: 1000, cachedInputTokens: 600, cacheCreationInputTokens: 100 }, 0.000_56],
    ['reasoning tokens', { inputTokens: 0, outputTokens: 100, reasoningTokens: 40 }, 0.0014],
    ['audio and image tokens', { inputTokens: 100, inputAudioTokens: 10, inputImageTokens: 20, outputTokens: 10, outputAudioTokens: 10 }, 0.004_07],
    ['audio tokens of which some are cached', { inputTokens: 100, cachedInputTokens: 80, inputAudioTokens: 50 }, 0.002_008],
    ['image output, which has no price of its own', { inputTokens: 0, outputTokens: 10, outputImageTokens: 10 }, 0.0001],
  ] as const)('counts %s', (_, usage, expected) => expect(usd(usage, price)).toBeCloseTo(expected, 12))

  test('is that of the highest tier below the context, for all tokens', () => {
    const tiered = compilePrice({
      rates: { input: '1', output: '10', cacheRead: '0.5' },
      tiers: [
        { contextOver: 100, rates: { input: '2' } },
        { contextOver: 200, rates: { input: '3', output: '30' } },
      ],
    })
    const million = (inputTokens: number): number | undefined => usd({ inputTokens, outputTokens: 1 }, tiered)
    expect([million(100), million(101), million(200), million(201)]).toEqual([0.000_11, 0.000_212, 0.000_41, 0.000_633])
    expect(priceOf(201, 1, tiered)).toBe(0.000_633)
  })

  test('is that of the service tier that the response names, with the tiers of the model where it has none', () => {
    const tiered = compilePrice({
      rates: { input: '10', output: '20' },
      tiers: [{ contextOver: 100, rates: { input: '30' } }],
      serviceTiers: { flex: { rates: { input: '5' }, tiers: [{ contextOver: 100, rates: { input: '7' } }] }, priority: { rates: { input: '15' } } },
    })
    const cost = (serviceTier: string | undefined, inputTokens: number): number | undefined =>
      costOf({ usage: { inputTokens, outputTokens: 1 }, serviceTier }, tiered)?.cost
    expect(['flex', 'priority', 'default', undefined].map((tier) => cost(tier, 100))).toEqual([0.000_52, 0.001_52, 0.001_02, 0.001_02])
    expect(['flex', 'priority'].map((tier) => cost(tier, 200))).toEqual([0.001_42, 0.006_02])
  })

  test('is unknown without input tokens', () => expect(usd({ outputTokens: 5 }, price)).toBeUndefined())
})

describe('compilePrices', () => {
  test('looks up models in the prices of the policy, its catalog and the built-in catalog, in this order', () => {
    const table = compilePrices({
      prices: { own: { input: '1', output: '1' } },
      priceCatalog: {
        configMapRef: { providers: { openai: { models: { own: { rates: { input: '7', output: '7' } }, 'gpt-4o': { rates: { input: '2', output: '2' } } } } } },
      },
    })
    expect(inputRate(table.find('openai', 'own'))).toBe(1)
    expect(inputRate(table.find('openai', 'gpt-4o'))).toBe(2)
    expect(inputRate(table.find('openai', 'gpt-4o-mini'))).toBe(0.15)
    expect(inputRate(table.find('openai', 'unknown', undefined))).toBeUndefined()
  })

  test('prefers the price that the policy has for the requested model to the built-in price of the model of the response', () => {
    const table = compilePrices({ prices: { 'gpt-4o': { input: '1', output: '1' } } })
    expect(inputRate(table.find('openai', 'gpt-4o-2024-08-06', 'gpt-4o'))).toBe(1)
  })

  test('does not find models of other providers, or names of the prototype', () => {
    const table = compilePrices({ priceCatalog: { builtIn: 'Disabled', configMapRef: catalog('m', '1') } })
    expect([table.find('openai', 'm'), table.find('anthropic', 'm'), table.find('openai', 'constructor'), table.find('toString', 'm')].map(inputRate)).toEqual([
      1,
      undefined,
      undefined,
      undefined,
    ])
  })

  test('has no built-in prices where they are disabled', () => {
    const table = compilePrices({ priceCatalog: { builtIn: 'Disabled' } })
    expect([table.isEmpty, table.find('openai', 'gpt-4o')]).toEqual([true, undefined])
  })
})

describe('the built-in catalog', () => {
  test('is a valid catalog with models of all providers', () => {
    const { providers } = readPriceCatalog({ providers: builtIn.providers })
    expect(Object.keys(providers).toSorted()).toEqual(['anthropic', 'aws.bedrock', 'azure', 'gcp.gemini', 'gcp.vertex_ai', 'openai'])
    for (const { models } of Object.values(providers)) expect(Object.keys(models).length).toBeGreaterThan(20)
  })

  test.each([
    ['openai', 'gpt-4o', 2.5, 10],
    ['azure', 'gpt-4o', 2.5, 10],
    ['anthropic', 'claude-sonnet-4-5', 3, 15],
    ['gcp.gemini', 'gemini-2.5-pro', 1.25, 10],
    ['gcp.vertex_ai', 'gemini-2.5-pro', 1.25, 10],
    ['aws.bedrock', 'anthropic.claude-sonnet-4-5-20250929-v1:0', 3, 15],
  ])('has the price of %s %s', (system, model, input, output) => expect(compilePrices({}).find(system, model)?.rates).toMatchObject({ input, output }))
})
