import { describe, expect, test } from '@jest/globals'
import type { AIModel, Backend, BackendAI, Budget } from '#gen/config/types.ts'
import type { Message } from './unguarded.ts'
import { describeUnpricedModels, findUnpricedModels } from './unpriced.ts'

const daily: Budget = { name: 'daily', limits: [{ usd: '10', window: 'Day' }] }
const backend = (name: string, ai: Backend['ai'], own?: BackendAI): Message => ({
  kind: 'backend',
  message: { key: `ns/${name}`, ai, ...(own && { policies: { ai: own } }) },
})
const models = (...list: AIModel[]): Message => backend('models', { models: list })
const openai = backend('openai', { provider: { providerA: {} } })
const to = (model?: string, name = 'openai') => [{ backendRef: { backend: `ns/${name}` }, ...(model && { model }) }]

/** A route to `ns/models` with a policy on its Gateway. */
const around = (budgets: Budget[], ai?: BackendAI): Message[] => [
  { kind: 'route', message: { key: 'r', route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r' }, backends: [{ ref: { backend: 'ns/models' }, weight: 1 }] } },
  {
    kind: 'policy',
    message: {
      key: 'p',
      policy: { kind: 'ProxyPolicy', namespace: 'infra', name: 'limits' },
      target: { kind: 'Gateway', namespace: 'infra', name: 'gw' },
      traffic: { budgets },
      ...(ai && { backend: { ai } }),
    },
  },
]
const find = (...messages: Message[]): Record<string, readonly string[]> => Object.fromEntries(describeUnpricedModels([findUnpricedModels(messages)]))

describe('models without a price under a budget', () => {
  test('the model, the budget and the fix are named', () => {
    expect(find(...around([daily]), openai, models({ name: 'assistant', to: to('my-own') }))).toEqual({
      'ns/models': [
        'ai.models.0.to.0: model "my-own" has no price and is rejected with 403 under budget "daily" of ProxyPolicy infra/limits; add the model to ai.prices or ai.priceCatalog, or set unpriced: Allow in the budget [PX1388]',
      ],
    })
  })

  const lists: [string, Omit<AIModel, 'name'>, string[]][] = [
    ['targets', { to: [...to('gpt-4o'), ...to('a')] }, ['to.1']],
    ['rules', { rules: [{ when: 'true', to: to('gpt-4o') }, { to: to('a') }] }, ['rules.1.to.0']],
    ['fallbacks', { to: to('gpt-4o'), fallback: [{ on: ['Quota'], to: to('a') }] }, ['fallback.0.to.0']],
    ['Services', { to: [{ backendRef: { service: 'ns/vllm', port: 80 }, model: 'a' }] }, ['to.0']],
    ['the name that clients ask for', { to: to() }, ['to.0']],
    ['targets that get no requests', { to: [...to('gpt-4o'), ...to('a').map((each) => ({ ...each, weight: 0 }))] }, []],
  ]
  test.each(lists)('%s are looked at', (_, model, paths) => {
    const lines = find(...around([daily]), openai, models({ name: 'a', ...model }))['ns/models'] ?? []
    expect(lines.map((line) => line.split(':')[0])).toEqual(paths.map((path) => `ai.models.0.${path}`))
  })

  test.each<[string, Message[]]>([
    ['the budget allows them', [...around([{ ...daily, unpriced: 'Allow' }]), openai]],
    [
      'the budget is not in dollars',
      [
        ...around([
          {
            name: 'n',
            limits: [
              { requests: 5, window: 'Day' },
              { tokens: 5, window: 'Day' },
            ],
          },
        ]),
        openai,
      ],
    ],
    ['the budget is for other models', [...around([{ ...daily, models: 'llm.requestModel.startsWith("gpt")' }]), openai]],
    ['the budget depends on the request', [...around([{ ...daily, models: 'request.path == "/a"' }]), openai]],
    ['a policy of the Gateway has the price', [...around([daily], { prices: { 'my-*': { input: '0', output: '0' } } }), openai]],
    [
      'the backend of the target has the price',
      [...around([daily]), backend('openai', { provider: { providerA: {} } }, { prices: { '*': { input: '1', output: '1' } } })],
    ],
    ['an alias has a price', [...around([daily]), backend('openai', { provider: { providerA: {} } }, { modelAliases: { 'my-own': 'gpt-4o' } })]],
    [
      'the model is replaced by an expression',
      [...around([daily]), backend('openai', { provider: { providerA: {} } }, { transformations: [{ field: 'model', expression: '"x"' }] })],
    ],
    ['no route has the backend', [...around([daily]).slice(1), openai]],
  ])('are not reported if %s', (_, messages) => {
    expect(find(...messages, models({ name: 'assistant', to: to('my-own') }))).toEqual({})
  })

  test('the price is that of the provider: another one has none for the model', () => {
    const claude = backend('claude', { provider: { providerC: { model: 'gpt-4o' } } })
    expect(find(...around([daily]), claude, models({ name: 'a', to: to(undefined, 'claude') }))['ns/models']).toEqual([
      expect.stringContaining('model "gpt-4o"'),
    ])
  })

  test('models of other backends are reported at the backend that lists their target, circles end', () => {
    const shared = backend('shared', {
      models: [
        { name: 'own', to: to('my-own') },
        { name: 'unused', to: to('other') },
        { name: 'assistant', to: to('own', 'models') },
      ],
    })
    const found = find(
      ...around([daily]),
      openai,
      shared,
      models({ name: 'assistant', to: to('own', 'shared') }, { name: 'own', to: to('assistant', 'shared') }),
    )
    expect(found).toEqual({ 'ns/shared': [expect.stringMatching(/^ai\.models\.0\.to\.0: model "my-own"/)] })
  })

  test('copies and their judge are under the budget of the shadow, without another one', () => {
    const backendRef = { backend: 'ns/openai' }
    const shadow = { to: { backendRef, model: 'new' }, percent: 5, budget: '1', judge: { to: { backendRef, model: 'judge' }, rubric: 'r' } }
    expect(find(...around([]), openai, models({ name: 'a', to: to('gpt-4o'), shadow }))['ns/models']).toEqual([
      'ai.models.0.shadow.to: model "new" has no price and is not asked under shadow.budget of model "a"; add the model to ai.prices or ai.priceCatalog [PX1388]',
      expect.stringContaining('ai.models.0.shadow.judge.to: model "judge"'),
    ])
  })

  test('providers with a model of their own are reported without models as routes', () => {
    const direct = backend('models', {
      groups: [
        {
          providers: [
            { name: 'one', providerA: { model: 'mine' } },
            { name: 'two', providerA: {} },
          ],
        },
      ],
    })
    expect(find(...around([daily]), direct)['ns/models']).toEqual([expect.stringMatching(/^ai: model "mine" has no price/)])
  })

  test('a status has at most nine lines', () => {
    const many = Array.from({ length: 20 }, (_, index): AIModel => ({ name: `m${index}`, to: to() }))
    const lines = find(...around([daily]), openai, models(...many))['ns/models'] ?? []
    expect([lines.length, lines.at(-1)]).toEqual([9, expect.stringContaining('12 more models')])
  })
})
