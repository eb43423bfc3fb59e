import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { runImport } from './testing.ts'

const failures = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable', 'Auth', 'ModelNotFound', 'Budget']

interface Llm {
  readonly models: Record<
    string,
    { to?: { model: string; weight?: number }[]; fallback?: { on: string[]; to: { model: string }[] }[]; by?: string; policies?: object }
  >
  readonly policies?: { budgets?: { key: string; models: string; limits: object[] }[]; retry?: object; timeouts?: object }
}

const gpt = (name: string, more: object = {}): object => ({ model_name: name, litellm_params: { model: 'gpt-4o', api_key: 'os.environ/KEY', ...more } })

async function importModels(models: object[], more: object = {}) {
  const { config, lost } = await runImport(JSON.stringify({ model_list: models, ...more }))
  return { llm: (config as { llm: Llm }).llm, lost }
}

test.each([
  ['weight', [{ weight: 3, rpm: 5 }, { weight: 1 }], [3, 1]],
  ['rpm', [{ rpm: 900 }, { rpm: 100 }], [900, 100]],
  ['tpm, one without', [{ tpm: 20_000 }, {}], [20_000, 0]],
  ['fractions', [{ weight: 0.9 }, { weight: 0.1 }], [1_000_000, 111_111]],
  ['nothing', [{}, {}], [undefined, undefined]],
])('deployments of one name are targets with shares by %s', async (_, params, weights) => {
  const { llm, lost } = await importModels(params.map((one) => gpt('a', one)))
  expect({ to: llm.models['a']?.to, lost }).toEqual({
    to: weights.map((weight, index) => ({ model: `a-${index + 1}`, ...(weight !== undefined && { weight }) })),
    lost: [],
  })
  // A request that fails at one deployment is sent to the other, as a retry of LiteLLM is.
  expect(llm.models['a']?.fallback).toEqual([{ on: failures, to: llm.models['a']?.to }])
})

test('deployments of a higher order are used after those of a lower one', async () => {
  const { llm } = await importModels([gpt('a', { order: 2 }), gpt('a', { order: 1 }), gpt('a')])
  expect(llm.models['a']).toEqual({ to: [{ model: 'a-2' }], fallback: [[{ model: 'a-1' }], [{ model: 'a-3' }]].map((to) => ({ on: failures, to })) })
})

test('fallbacks are kept by cause and in order, and models may be fallbacks of each other', async () => {
  const { llm, lost } = await importModels(
    ['a', 'b', 'c', 'd'].map((name) => gpt(name)),
    {
      router_settings: {
        fallbacks: [{ a: ['b', 'c'] }, { b: ['a'] }],
        context_window_fallbacks: [{ a: ['c'] }],
        content_policy_fallbacks: [{ a: ['d'] }],
        default_fallbacks: ['d'],
      },
    },
  )
  const on = (causes: string[], model: string): object => ({ on: causes, to: [{ model }] })
  expect(lost).toEqual([])
  expect(llm.models['a']?.fallback).toEqual([on(['ContextLength'], 'c-1'), on(['ContentFilter'], 'd'), on(failures, 'b-1'), on(failures, 'c-1')])
  expect(llm.models['b']?.fallback).toEqual([on(failures, 'a-1')])
  expect(llm.models['c']?.fallback).toEqual([on(failures, 'd')])
  expect(llm.models['d']?.fallback).toBeUndefined()
})

test('other names lead to the model, and limits hold for requests of all of them', async () => {
  const { llm, lost } = await importModels([gpt('a', { rpm: 10 })], {
    router_settings: { model_group_alias: { b: 'a', c: { model: 'a', hidden: true }, d: 'x' } },
  })
  expect(lost).toEqual(['router_settings.model_group_alias.c.hidden', 'router_settings.model_group_alias.d'])
  expect(llm.models).toMatchObject({ a: { to: [{ model: 'a-1' }] }, b: { to: [{ model: 'a' }] }, c: { to: [{ model: 'a' }] } })
  expect(llm.policies?.budgets).toMatchObject([
    { key: 'llm.target', models: 'has(llm.target) && llm.target in ["default/llm.a-1"]', limits: [{ requests: 10 }] },
  ])
})

test('retries, times and cooldowns of the router are carried over', async () => {
  const { llm, lost } = await importModels([gpt('a', { timeout: 5, stream_timeout: 2, cooldown_time: 60 }), gpt('a')], {
    router_settings: { routing_strategy: 'latency-based-routing', num_retries: 2, retry_after: 1, timeout: 30, cooldown_time: 10, allowed_fails: 1 },
  })
  expect(llm.policies).toMatchObject({ retry: { attempts: 2, backoff: '1000ms' }, timeouts: { request: '30000ms' } })
  expect(llm.models).toMatchObject({
    a: { by: 'LeastLatency' },
    'a-1': {
      policies: {
        http: { requestTimeout: '5000ms' },
        ai: { firstTokenTimeout: '2000ms' },
        health: { eviction: { duration: '60000ms', consecutiveFailures: 2 } },
      },
    },
    'a-2': { policies: { health: { eviction: { duration: '10000ms', consecutiveFailures: 2 } } } },
  })
  expect(lost).toEqual(['router_settings.allowed_fails'])
  const slow = await importModels([gpt('a', { timeout: 600 })], { litellm_settings: { num_retries: 1, request_timeout: 6000 } })
  expect(slow.llm).toMatchObject({ models: { a: { policies: { http: { requestTimeout: '600s' } } } }, policies: { timeouts: { request: '6000s' } } })
  const without = await importModels([gpt('a'), gpt('a')], { router_settings: { disable_cooldowns: true, routing_strategy: 'usage-based-routing-v2' } })
  expect({ policies: without.llm.models['a-1']?.policies, lost: without.lost }).toEqual({ policies: undefined, lost: ['router_settings.routing_strategy'] })
})

test('the result of any names, numbers and lists of the router is valid', async () => {
  const name = fc.constantFrom('a', 'b', 'a-1', 'b-1', 'c*', '', 'x', 'a b')
  const number = fc.constantFrom(0, 1, -1, 0.5, 7, 1e9, 1e300, 'os.environ/X', null)
  const params = fc.record({ weight: number, rpm: number, tpm: number, order: number, timeout: number, cooldown_time: number }, { requiredKeys: [] })
  const lists = fc.array(fc.dictionary(name, fc.array(fc.oneof(name, fc.constant({ model: 'a' })), { maxLength: 10 }), { maxKeys: 2 }), { maxLength: 4 })
  const settings = fc.record(
    {
      fallbacks: lists,
      context_window_fallbacks: lists,
      default_fallbacks: fc.array(name, { maxLength: 3 }),
      model_group_alias: fc.dictionary(name, fc.oneof(name, fc.record({ model: name, hidden: fc.boolean() })), { maxKeys: 3 }),
      cooldown_time: number,
      allowed_fails: number,
    },
    { requiredKeys: [] },
  )
  const models = fc.array(fc.tuple(name, params), { minLength: 1, maxLength: 70 })
  await fc.assert(
    fc.asyncProperty(models, settings, async (list, router) => {
      // `runImport` expects that lint accepts the result.
      await runImport(JSON.stringify({ model_list: [gpt('z'), ...list.map(([own, more]) => gpt(own, more))], router_settings: router }))
    }),
    { numRuns: 25 },
  )
})
