import { expect, test } from '@jest/globals'
import { newProviderState, recordOutcome } from '../../backend/llm/choice/candidates.ts'
import { Balancer } from '../../net/upstream/balancer/balancer.ts'
import type { Measured } from '../../net/upstream/destination.ts'
import { listEndpoints } from './endpoints.ts'

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

test('the endpoint of an LLM provider has the health and eviction of the provider', () => {
  const state = newProviderState()
  for (let i = 0; i < 2; i++) recordOutcome(state, false, undefined, eviction, performance.now(), 429)
  state.pending = 3
  expect(nodesOf(balancerOf(443), state)).toMatchObject([
    { health: expect.closeTo(0.49), evictedForMs: expect.any(Number), evictedBecause: '2 unhealthy calls in a row, the last with status 429', pending: 3 },
  ])
})
