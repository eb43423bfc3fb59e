import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { Listener, Policy, PolicyTarget, Route, Traffic } from '#gen/config/types.ts'
import { explainRoute, explainTraffic, type ExplainedTraffic } from './explain.ts'
import { effectiveTraffic, indexPolicies } from './merge.ts'
import { indexInSteps } from './shadows.ts'
import { createConfigStore } from './store.ts'
import { runSync } from '../runtime/cooperative.ts'
import { replaceMessages } from '../testing/store.ts'

const listener: Listener = { key: 'ns/gw.http', bind: 'b', gateway: { namespace: 'ns', name: 'gw' }, name: 'http', protocol: 'HTTP' }
const other: Listener = { ...listener, key: 'ns/gw.other', name: 'other' }
const route: Route = {
  key: 'r0',
  listeners: ['ns/gw.http', 'ns/gw.other'],
  route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', rule: 'first', ruleIndex: 0 },
}

const targets = {
  gateway: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
  listener: { kind: 'Gateway', namespace: 'ns', name: 'gw', section: 'http' },
  route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r' },
  rule: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', section: 'first' },
} as const satisfies Record<string, PolicyTarget>

function policy(target: keyof typeof targets, traffic: Traffic, name: string = target): Policy {
  return { key: `traffic/ns/${name}:0`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, target: targets[target], traffic }
}
const indexOf = (policies: readonly Policy[]) => indexPolicies(new Map(policies.map((p) => [p.key, p])))
const explain = (policies: readonly Policy[], of: Route = route): ExplainedTraffic => explainTraffic(indexOf(policies), 'PostRouting', listener, of)

const timeouts = (request: string): Traffic => ({ timeouts: { request } })
const from = (target: keyof typeof targets, name: string = target) => ({
  from: `ProxyPolicy ns/${name}`,
  target: { gateway: 'Gateway ns/gw', listener: 'Gateway ns/gw http', route: 'HTTPRoute ns/r', rule: 'HTTPRoute ns/r first' }[target],
})
const own = { from: 'HTTPRoute ns/r', target: 'the rule itself' }
const rules = (expression: string): Traffic => ({ authorization: { policy: { matchExpressions: [expression] } } })

test('explains the section backend for each backend, with policies of all levels and its own', () => {
  const store = createConfigStore()
  const section = (target: PolicyTarget, name: string, backend: Policy['backend']): Policy => ({
    key: `backend/ns/${name}:0`,
    policy: { kind: 'ProxyPolicy', namespace: 'ns', name },
    target,
    ...(backend && { backend }),
  })
  replaceMessages(store, [
    { kind: 'bind', message: { key: 'b', port: 80 } },
    { kind: 'listener', message: listener },
    { kind: 'backend', message: { key: 'ns/llm', ai: {}, policies: { ai: { modelAliases: { a: 'b' } } } } },
    { kind: 'route', message: { ...route, listeners: ['ns/gw.http'], backends: [{ ref: { backend: 'ns/llm' } }, { ref: { service: 'ns/web', port: 80 } }] } },
    { kind: 'policy', message: section(targets.gateway, 'all', { ai: { routes: { '*': 'Completions' } } }) },
    { kind: 'policy', message: section({ kind: 'Backend', namespace: 'ns', name: 'llm' }, 'one', { ai: { modelAliases: { a: 'c' } } }) },
    { kind: 'policy', message: section({ kind: 'Service', namespace: 'ns', name: 'web', port: 80 }, 'web', { auth: { key: 'k' } }) },
  ])
  const snapshot = store.snapshot()
  const [explained] = explainRoute(snapshot, indexPolicies(snapshot.policies), runSync(indexInSteps(snapshot)), 'ns', 'r')
  const gateway = { value: { '*': 'Completions' }, sources: [{ from: 'ProxyPolicy ns/all', target: 'Gateway ns/gw' }], overrides: [] }
  expect(explained?.backends).toEqual({
    'ns/llm': {
      'backend.ai.modelAliases': {
        value: { a: 'b' },
        sources: [{ from: 'ProxyBackend ns/llm', target: 'the backend itself' }],
        overrides: [{ from: 'ProxyPolicy ns/one', target: 'Backend ns/llm' }],
      },
      'backend.ai.routes': gateway,
    },
    'ns/web:80': {
      'backend.ai.routes': gateway,
      'backend.auth': { value: { key: 'k' }, sources: [{ from: 'ProxyPolicy ns/web', target: 'Service ns/web' }], overrides: [] },
    },
  })
})

describe('explainTraffic', () => {
  test.each<[string, Policy[], Partial<Route>, ExplainedTraffic]>([
    ['no policies', [], {}, {}],
    ['one policy', [policy('gateway', timeouts('1s'))], {}, { timeouts: { value: { request: '1s' }, sources: [from('gateway')], overrides: [] } }],
    [
      'levels that override each other, the strongest first',
      [policy('rule', timeouts('4s')), policy('gateway', timeouts('1s')), policy('listener', timeouts('2s')), policy('route', timeouts('3s'))],
      {},
      { timeouts: { value: { request: '4s' }, sources: [from('rule')], overrides: [from('route'), from('listener'), from('gateway')] } },
    ],
    [
      'two policies on one target, the first by name',
      [policy('route', timeouts('2s'), 'b'), policy('route', timeouts('1s'), 'a')],
      {},
      { timeouts: { value: { request: '1s' }, sources: [from('route', 'a')], overrides: [from('route', 'b')] } },
    ],
    [
      'parts that merge separately',
      [
        policy('gateway', { headerModifiers: { request: { remove: ['a'] }, response: { remove: ['b'] } } }),
        policy('route', { headerModifiers: { request: { remove: ['c'] } } }),
      ],
      {},
      {
        'headerModifiers.request': { value: { remove: ['c'] }, sources: [from('route')], overrides: [from('gateway')] },
        'headerModifiers.response': { value: { remove: ['b'] }, sources: [from('gateway')], overrides: [] },
      },
    ],
    [
      'authorization rules that accumulate',
      [policy('route', rules('b')), policy('gateway', rules('a'))],
      {},
      {
        authorization: {
          value: [rules('a').authorization, rules('b').authorization],
          sources: [from('gateway'), from('route')],
          overrides: [],
        },
      },
    ],
    [
      'fields of the rule itself, which override every policy',
      [policy('rule', timeouts('1s')), policy('gateway', timeouts('2s'))],
      { timeouts: { requestMs: 9 }, filters: { cors: { maxAge: 1 } } },
      {
        cors: { value: { maxAge: 1 }, sources: [own], overrides: [] },
        timeouts: { value: { requestMs: 9 }, sources: [own], overrides: [from('rule'), from('gateway')] },
      },
    ],
    ['a policy of the other phase', [policy('gateway', { phase: 'PreRouting', ...timeouts('1s') })], {}, {}],
  ])('explains %s', (_, policies, change, expected) => expect(explain(policies, { ...route, ...change })).toEqual(expected))

  test('reports the values of effectiveTraffic for any policies', () => {
    const traffic = fc.record<Traffic>(
      {
        phase: fc.constantFrom('PreRouting', 'PostRouting'),
        timeouts: fc.record({ request: fc.constantFrom('1s', '2s', '3s') }),
        csrf: fc.record({ additionalOrigins: fc.array(fc.constantFrom('https://a', 'https://b')) }),
        authorization: fc.record({ policy: fc.record({ matchExpressions: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }) }) }),
        headerModifiers: fc.record(
          { request: fc.constantFrom({ remove: ['x'] }, { remove: ['y'] }), response: fc.constant({ remove: ['z'] }) },
          { requiredKeys: ['request'] },
        ),
      },
      { requiredKeys: [] },
    )
    const entry = fc.tuple(fc.constantFrom(...(Object.keys(targets) as (keyof typeof targets)[])), traffic)
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 8 }), fc.constantFrom('PreRouting' as const, 'PostRouting' as const), (entries, phase) => {
        const index = indexOf(entries.map(([target, section], i) => policy(target, section, `p${(i * 5) % 8}`)))
        const said: Record<string, Record<string, unknown>> = {}
        for (const [field, { value, sources }] of Object.entries(explainTraffic(index, phase, listener, route))) {
          expect(sources.length).toBeGreaterThan(0)
          const [section = '', part] = field.split('.')
          if (part === undefined) said[section] = value as Record<string, unknown>
          else (said[section] ??= {})[part] = value
        }
        expect(said).toEqual(effectiveTraffic(index, phase, listener, route.route) ?? {})
      }),
    )
  })
})

describe('explainRoute', () => {
  const store = createConfigStore()
  const policies = [policy('gateway', { phase: 'PreRouting', ...timeouts('1s') }, 'pre'), policy('listener', timeouts('2s')), policy('rule', rules('a'))]
  replaceMessages(store, [
    { kind: 'listener', message: listener },
    { kind: 'listener', message: other },
    { kind: 'route', message: route },
    { kind: 'route', message: { key: 'r1', listeners: ['ns/gw.http', 'ns/gone'], route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', ruleIndex: 1 } } },
    { kind: 'route', message: { ...route, key: 'x', route: { ...route.route, namespace: 'else' } } },
    ...policies.map((message) => ({ kind: 'policy', message }) as const),
  ])
  const explainByName = (namespace: string, name: string) =>
    explainRoute(store.snapshot(), indexPolicies(store.snapshot().policies), runSync(indexInSteps(store.snapshot())), namespace, name)

  test('lists the models of the backends of a rule with their targets', () => {
    const withModels = createConfigStore()
    const openai = { backendRef: { backend: 'ns/openai' }, model: 'gpt-5' }
    const vllm = { backendRef: { service: 'ns/vllm', port: 80 }, weight: 3 }
    const models = [
      { name: 'm', rules: [{ when: 'llm.promptTokens > 9', to: [openai] }, { to: [openai, vllm] }], fallback: [{ on: ['Quota' as const], to: [vllm] }] },
      { name: 'n', to: [openai, vllm], sticky: 'jwt.sub', visibility: 'Internal' as const },
    ]
    replaceMessages(withModels, [
      { kind: 'listener', message: listener },
      { kind: 'route', message: { ...route, backends: [{ ref: { backend: 'ns/llm' } }] } },
      { kind: 'backend', message: { key: 'ns/llm', ai: { models } } },
    ])
    const snapshot = withModels.snapshot()
    expect(explainRoute(snapshot, new Map(), runSync(indexInSteps(snapshot)), 'ns', 'r')[0]?.models).toEqual([
      'm when llm.promptTokens > 9 -> ns/openai gpt-5',
      'm -> ns/openai gpt-5 (weight 1), ns/vllm:80 (weight 3), by Weight',
      'm after Quota -> ns/vllm:80',
      'n (internal) -> ns/openai gpt-5 (weight 1), ns/vllm:80 (weight 3), sticky by jwt.sub',
    ])
  })

  test('lists each rule on each of its listeners', () => {
    expect(
      explainByName('ns', 'r').map(({ route: of, rule, ruleIndex, listener: on, preRouting, postRouting }) => [
        `${of} ${rule ?? '-'} ${ruleIndex} ${on}`,
        Object.keys(preRouting),
        Object.keys(postRouting),
      ]),
    ).toEqual([
      ['HTTPRoute ns/r first 0 ns/gw.http', ['timeouts'], ['authorization', 'timeouts']],
      ['HTTPRoute ns/r first 0 ns/gw.other', ['timeouts'], ['authorization']],
      ['HTTPRoute ns/r - 1 ns/gw.http', ['timeouts'], ['timeouts']],
    ])
  })

  test('lists a rule once more for a backend with traffic policies, which only an InferencePool has', () => {
    const backends = [{ ref: { service: 'ns/m.inference', port: 80 } }, { ref: { service: 'ns/a', port: 80 } }]
    const pool: Policy = { ...policy('gateway', timeouts('9s'), 'pool'), target: { kind: 'Service', namespace: 'ns', name: 'm.inference' } }
    const explainRule = (each: Route) => {
      const perRule = createConfigStore()
      replaceMessages(perRule, [
        { kind: 'listener', message: listener },
        { kind: 'route', message: { ...each, listeners: ['ns/gw.http'] } },
        { kind: 'policy', message: pool },
        { kind: 'policy', message: policy('gateway', timeouts('1s')) },
      ])
      return explainRoute(perRule.snapshot(), indexPolicies(perRule.snapshot().policies), runSync(indexInSteps(perRule.snapshot())), 'ns', 'r').map(
        ({ service, postRouting }) => [service, postRouting['timeouts']],
      )
    }
    const gateway = { value: { request: '1s' }, sources: [from('gateway')], overrides: [] }
    const ofPool = { value: { request: '9s' }, sources: [{ from: 'ProxyPolicy ns/pool', target: 'Service ns/m.inference' }], overrides: [from('gateway')] }
    expect(explainRule({ ...route, backends })).toEqual([
      [undefined, gateway],
      ['ns/m.inference', ofPool],
    ])
    expect(explainRule({ ...route, backends: backends.slice(0, 1) })).toEqual([['ns/m.inference', ofPool]])
  })

  test('names the rules that get the requests of a match', () => {
    const winner = 'rule 0 of HTTPRoute else/r has precedence and matches all of them [PX1115]'
    expect(explainByName('ns', 'r').map(({ shadows }) => shadows)).toEqual([
      [`match 0 of rule 0 never gets a request: ${winner}`],
      [`match 0 of rule 0 never gets a request: ${winner}`],
      [`match 0 of rule 1 never gets a request: ${winner}`],
    ])
    expect(explainByName('else', 'r').map(({ shadows }) => shadows)).toEqual([undefined, undefined])
  })

  test('returns nothing for a route that does not exist', () => expect(explainByName('ns', 'gone')).toEqual([]))
})
