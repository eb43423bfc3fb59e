import { expect, test } from '@jest/globals'
import { newProviderState, recordOutcome } from '../../backend/llm/choice/candidates.ts'
import { createConfigStore } from '../../config/store.ts'
import { testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'
import { Balancer } from '../../net/upstream/balancer/balancer.ts'
import type { Measured } from '../../net/upstream/destination.ts'
import { listEndpoints } from './endpoints.ts'
import { listBackends } from './graph.ts'

const eviction = { durationMs: 60_000, restoreHealth: undefined, consecutiveFailures: 2, healthThreshold: undefined }

function nodesOf(balancer: Balancer, measured?: Measured) {
  const list = () =>
    [{ name: 'ns/b', endpoints: balancer.all, measured }].values() as Generator<{ name: string; endpoints: Balancer['all']; measured: Measured | undefined }>
  return listEndpoints({ list })[0]?.endpoints
}

function balancerOf(...ports: number[]): Balancer {
  const balancer = new Balancer()
  balancer.update(ports.map((port) => ({ address: '10.0.0.1', port })))
  return balancer
}

test('an evicted endpoint has the number of its failures and the status of the last one', () => {
  const balancer = balancerOf(1, 2, 3)
  const [one, two] = balancer.endpoints
  if (one === undefined || two === undefined) throw new Error('endpoints expected')
  for (const status of [500, 503]) balancer.record(one, false, 0, eviction, status)
  for (let i = 0; i < 2; i++) balancer.record(two, false, 0, { ...eviction, consecutiveFailures: undefined })
  expect(nodesOf(balancer)?.map(({ evictedBecause }) => evictedBecause)).toEqual([
    '2 unhealthy calls in a row, the last with status 503',
    'an unhealthy call without a response',
    null,
  ])
})

test('an endpoint whose checks fail has the cause', () => {
  const balancer = balancerOf(1, 2)
  const [one] = balancer.endpoints
  if (one !== undefined) one.check = { isDown: true, problem: 'status 503' }
  expect(nodesOf(balancer)?.map(({ failedCheck }) => failedCheck)).toEqual(['status 503', null])
})

test('the endpoint of an LLM provider has the health and eviction of the provider', () => {
  const state = newProviderState()
  for (let i = 0; i < 2; i++) recordOutcome(state, false, undefined, eviction, performance.now(), 429)
  state.pending = 3
  expect(nodesOf(balancerOf(443), state)).toMatchObject([
    { health: expect.closeTo(0.49), evictedForMs: expect.any(Number), evictedBecause: '2 unhealthy calls in a row, the last with status 429', pending: 3 },
  ])
})

test('a backend with models has these, and the endpoints of the backends that they lead to', async () => {
  const store = createConfigStore()
  replaceMessages(store, [
    testRoute({ backend: 'ns/models' }),
    {
      kind: 'backend',
      message: {
        key: 'ns/models',
        ai: {
          models: [
            {
              name: 'm',
              rules: [
                { when: 'true', to: [{ backendRef: { backend: 'ns/team' } }] },
                { to: [{ backendRef: { service: 'ns/s', port: 80 }, model: 'x', weight: 2 }] },
              ],
            },
            {
              name: 'n',
              visibility: 'Internal',
              sticky: 'jwt.sub',
              to: [{ backendRef: { backend: 'ns/team' } }],
              fallback: [{ on: ['Quota'], to: [{ backendRef: { backend: 'ns/b' } }] }],
            },
          ],
        },
      },
    },
    { kind: 'backend', message: { key: 'ns/team', ai: { models: [{ name: 'm', to: [{ backendRef: { backend: 'ns/b' } }] }] } } },
    { kind: 'backend', message: { key: 'ns/b', ai: { provider: { providerA: {} } } } },
    { kind: 'service', message: { key: 'ns/s', ports: [{ port: 80, endpoints: [{ address: '10.0.0.1', port: 8000 }] }] } },
  ])
  const state = { ...nodesOf(balancerOf(443))?.[0], address: 'api.openai.com:443' } as NonNullable<ReturnType<typeof nodesOf>>[number]
  const [node] = await listBackends(store.snapshot(), [[{ backend: 'ns/b/backend', endpoints: [state] }]])
  expect(node?.endpoints.map(({ address }) => address)).toEqual(['api.openai.com:443', '10.0.0.1:8000'])
  expect(node?.models).toEqual([
    {
      name: 'm',
      visibility: 'Public',
      by: 'Weight',
      sticky: null,
      rules: [
        { when: 'true', to: [{ target: 'ns/team', weight: 1 }], rollout: null },
        { when: null, to: [{ target: 'ns/s:80 x', weight: 2 }], rollout: null },
      ],
      fallback: [],
      shadow: null,
    },
    {
      name: 'n',
      visibility: 'Internal',
      by: 'Weight',
      sticky: 'jwt.sub',
      rules: [{ when: null, to: [{ target: 'ns/team', weight: 1 }], rollout: null }],
      fallback: [{ on: ['Quota'], to: [{ target: 'ns/b', weight: 1 }] }],
      shadow: null,
    },
  ])
})
