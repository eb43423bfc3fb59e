import { describe, expect, test } from '@jest/globals'
import type { ConfigMap } from '../../source/objects.ts'
import { readCatalogSource } from './price-catalog.ts'

const mapOf = (key: string): ConfigMap =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'ns', name: 'm' }, data: { key } }) as unknown as ConfigMap
const model = (fields: object): string => JSON.stringify({ providers: { openai: { models: { m: fields } } } })
const rates = { input: '1', output: '2' }

describe('readCatalogSource', () => {
  test('reads JSON and YAML, once for each object', () => {
    const expected = {
      providers: {
        openai: {
          models: {
            m: {
              rates,
              tiers: [{ contextOver: 5, rates: { input: '3' } }],
              serviceTiers: { flex: { rates: { input: '1' } } },
              tags: ['tools'],
              capabilities: {
                family: 'gpt-5.5',
                reasoning: 'Effort',
                efforts: ['low'],
                sampling: 'Fixed',
                maxTemperature: 1,
                tokenLimit: 'max_tokens',
                tools: true,
              },
              contextWindow: 9,
              maxOutput: 5,
              source: 'https://a',
              date: '2026-01-31',
            },
          },
        },
      },
    }
    const json = mapOf(JSON.stringify(expected))
    expect(readCatalogSource(json, 'key')).toEqual(expected)
    expect(readCatalogSource(json, 'key')).toBe(readCatalogSource(json, 'key'))
    expect(readCatalogSource(mapOf('providers: {openai: {models: {m: {rates: {input: "1", output: "2"}}}}}'), 'key')).toEqual({
      providers: { openai: { models: { m: { rates } } } },
    })
    expect(readCatalogSource(json, 'toString')).toBeUndefined()
  })

  test.each([
    ['{', 'it is neither JSON nor YAML'],
    ['a: [', 'it is neither JSON nor YAML'],
    ['a: &a [x]\nb: *a', 'it is neither JSON nor YAML'],
    ['[]', 'it is not an object'],
    ['{}', 'providers is missing; it must be an object'],
    ['{"providers": {"open": {}}}', 'providers.open is unknown; use openai, azure, anthropic, gcp.gemini, gcp.vertex_ai, aws.bedrock'],
    [model({}), 'providers.openai.models["m"].rates is missing; it must be an object'],
    [model({ rates: { input: '1' } }), 'providers.openai.models["m"].rates.output is missing'],
    [model({ rates: { ...rates, output: 2 } }), 'rates.output is 2; write US dollars per million as text, such as "2.5", with at most 6 decimals'],
    [model({ rates: { ...rates, output: '-1' } }), 'rates.output is "-1"; write US dollars'],
    [model({ rates: { ...rates, output: '0.1234567' } }), 'rates.output is "0.1234567"; write US dollars'],
    [model({ rates: { ...rates, cached: '1' } }), 'rates.cached is unknown; use input, output, cacheRead'],
    [model({ rates, tiers: [{ contextOver: 0, rates }] }), 'tiers[0].contextOver is 0; write a number of tokens above 0'],
    [model({ rates, tiers: [9, 9].map((contextOver) => ({ contextOver, rates })) }), 'tiers[1].contextOver is 9; write a number of tokens above 9'],
    [model({ rates, tiers: {} }), 'tiers must be a list of at most 32 tiers'],
    [model({ rates, serviceTiers: [] }), 'serviceTiers is []; it must be an object'],
    [model({ rates, serviceTiers: { flex: { rates: { input: 1 } } } }), 'serviceTiers.flex.rates.input is 1; write US dollars'],
    [model({ rates, serviceTiers: { flex: { tiers: [{ contextOver: 0, rates }] } } }), 'serviceTiers.flex.tiers[0].contextOver is 0; write a number'],
    [model({ rates, contextWindow: 0 }), 'contextWindow is 0; write a number of tokens above 0'],
    [model({ rates, maxOutput: '8k' }), 'maxOutput is "8k"; write a number of tokens above 0'],
    [model({ rates, source: 1 }), 'source is 1; write a text of at most 512 characters'],
    [model({ rates, date: 'today' }), 'date is "today"; write a day such as "2026-01-31"'],
    [model({ rates, tags: [1] }), 'tags must be a list of at most 32 texts'],
    [model({ rates, capabilities: { reasonig: 'None' } }), 'capabilities.reasonig is unknown; use family, reasoning, efforts'],
    [model({ rates, capabilities: { reasoning: 'none' } }), 'capabilities.reasoning is "none"; use None, Effort, Budget'],
    [model({ rates, capabilities: { efforts: 'low' } }), 'capabilities.efforts is "low"; write a list of at most 32 texts'],
    [model({ rates, capabilities: { sampling: true } }), 'capabilities.sampling is true; use Any, Fixed, FixedWhileReasoning'],
    [model({ rates, capabilities: { maxTemperature: 3 } }), 'capabilities.maxTemperature is 3; write a number above 0, at most 2'],
    [model({ rates, capabilities: { tokenLimit: 'max' } }), 'capabilities.tokenLimit is "max"; use max_tokens, max_completion_tokens'],
    [model({ rates, capabilities: { family: '' } }), 'capabilities.family is ""; write the id of a model with the same rules'],
    [model({ rates, capabilities: { tools: 'no' } }), 'capabilities.tools is "no"; use true or false'],
    [model({ rates, capabilities: [] }), 'capabilities is []; it must be an object'],
    ['x'.repeat(1024 * 1024 + 1), 'it has 1048577 characters; at most 1048576 are read'],
  ])('says what is wrong with %.60s', (text, message) => {
    expect(readCatalogSource(mapOf(text), 'key')).toEqual({ broken: expect.stringContaining(message) })
  })
})
