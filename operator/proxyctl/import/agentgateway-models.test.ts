import { expect, test } from '@jest/globals'
import { rejectsAll, runImport } from './testing.ts'

const model = (name: string, more: object = {}): object => ({ name, provider: 'openAI', params: { apiKey: 'k' }, ...more })
const failures = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable']

async function importModels(llm: object) {
  const { config, lost } = await runImport(JSON.stringify({ llm }))
  return { models: (config as { llm: { models: Record<string, object> } }).llm.models, lost, config }
}

/** `ProviderPreset` of agentgateway 75b4e6ce. */
const agentgatewayPresets = 'cohere ollama baseten cerebras deepinfra deepseek groq huggingface mistral openrouter togetherai xai fireworks'.split(' ')

test.each(agentgatewayPresets)('the preset %s is carried over without loss', async (provider) => {
  const { models, lost } = await importModels({ models: [{ name: 'm', provider, params: { model: 'x', apiKey: 'k' } }] })
  expect(lost).toEqual([])
  expect(models).toEqual({ m: { preset: { name: provider === 'togetherai' ? 'together' : provider, model: 'x', apiKey: 'k' } } })
})

test('weighted, failover and conditional models of the published examples are carried over', async () => {
  const { models, lost } = await importModels({
    models: [
      model('anthropic/*', { provider: 'anthropic', visibility: 'internal', transformation: { model: 'llmRequest.model.stripPrefix("anthropic/")' } }),
      model('openai/gpt-5-mini', { params: { model: 'gpt-5-mini', apiKey: 'k' } }),
      model('*', { visibility: 'internal' }),
    ],
    virtualModels: [
      {
        name: 'fast',
        routing: { weighted: { targets: [{ model: 'anthropic/haiku', weight: 60 }, { model: 'openai/gpt-5-mini', weight: 30 }, { model: 'small' }] } },
      },
      {
        name: 'resilient',
        routing: {
          failover: {
            targets: [
              { model: 'anthropic/haiku', priority: 1 },
              { model: 'anthropic/sonnet', priority: 1 },
              { model: 'openai/gpt-5-mini', priority: 0 },
            ],
          },
        },
      },
      {
        name: 'smart',
        routing: {
          conditional: { targets: [{ when: 'default(llmRequest.metadata.cost_tier, "") == "economy"', model: 'small' }, { model: 'openai/gpt-5-mini' }] },
        },
      },
    ],
  })
  expect(lost).toEqual([])
  expect(models).toEqual({
    'openai/gpt-5-mini': { openai: { model: 'gpt-5-mini', apiKey: 'k' } },
    'anthropic/haiku': { anthropic: { model: 'haiku', apiKey: 'k' }, visibility: 'Internal' },
    'anthropic/sonnet': { anthropic: { model: 'sonnet', apiKey: 'k' }, visibility: 'Internal' },
    small: { openai: { model: 'small', apiKey: 'k' }, visibility: 'Internal' },
    fast: {
      to: [
        { model: 'anthropic/haiku', weight: 60 },
        { model: 'openai/gpt-5-mini', weight: 30 },
        { model: 'small', weight: 1 },
      ],
    },
    resilient: {
      to: [{ model: 'openai/gpt-5-mini' }],
      fallback: [{ on: failures, to: [{ model: 'anthropic/haiku' }, { model: 'anthropic/sonnet' }] }],
      by: 'LeastLatency',
    },
    smart: { rules: [{ when: 'default(llmRequest.metadata.cost_tier, "") == "economy"', to: [{ model: 'small' }] }, { to: [{ model: 'openai/gpt-5-mini' }] }] },
  })
})

test('providers that models refer to give them their parameters, and evictions are carried over', async () => {
  const { models, lost } = await importModels({
    providers: [
      { name: 'p', provider: 'bedrock', params: { awsRegion: 'us-east-1', model: 'x' } },
      { name: 'guarded', provider: 'openAI', defaults: { overrides: { max_tokens: 1 } } },
    ],
    models: [
      {
        name: 'a',
        provider: { reference: 'p' },
        params: { model: 'claude' },
        health: { unhealthyExpression: 'response.code == 429', eviction: { duration: '10s', restoreHealth: 0.5 } },
      },
      { name: 'b', provider: { reference: 'guarded' } },
    ],
  })
  expect(models).toEqual({
    a: {
      bedrock: { region: 'us-east-1', model: 'claude' },
      policies: { health: { unhealthyCondition: 'response.code == 429', eviction: { duration: '10s', restoreHealth: 50 } } },
    },
  })
  expect(lost).toEqual(['llm.models[1]', 'llm.providers[1]'])
})

const target = (more: object = {}): object => ({ model: 'a', ...more })
test.each<[string, object]>([
  ['a target that is not carried over', { weighted: { targets: [target(), { model: 'guarded' }] } }],
  ['a target that does not exist', { weighted: { targets: [{ model: 'none' }] } }],
  ['itself as a target', { weighted: { targets: [{ model: 'v' }] } }],
  ['a condition with a variable that does not exist', { conditional: { targets: [target({ when: 'nonsense == 1' })] } }],
  ['two kinds of routing', { weighted: { targets: [target()] }, failover: { targets: [target({ priority: 0 })] } }],
  ['a routing of a later version', { cheapest: { targets: [target()] } }],
  ['a field of a later version', { weighted: { targets: [target({ onlyFor: 'x' })] } }],
  ['a negative weight', { weighted: { targets: [target({ weight: -1 })] } }],
  ['no targets', { weighted: { targets: [] } }],
])('a virtual model with %s is left out as a whole', async (_, routing) => {
  const { models, lost } = await importModels({ models: [model('a'), model('guarded', { overrides: {} })], virtualModels: [{ name: 'v', routing }] })
  expect({ names: Object.keys(models), lost }).toEqual({ names: ['a'], lost: ['llm.models[1]', 'llm.virtualModels[0]'] })
})

test('a field of a virtual model that the import does not know closes the section', async () => {
  const { config } = await importModels({
    models: [model('a')],
    virtualModels: [{ name: 'v', authorization: {}, routing: { weighted: { targets: [target()] } } }],
  })
  expect(config).toMatchObject({ llm: { policies: rejectsAll } })
})
