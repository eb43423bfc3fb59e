import { expect, test } from '@jest/globals'
import { Balancer, type PickNotes } from './balancer.ts'
import { explainPick } from './explain.ts'

const endpoints = (...ports: number[]) => ports.map((port) => ({ address: '10.0.0.1', port }))
const eviction = { durationMs: 1000, restoreHealth: undefined, consecutiveFailures: 1, healthThreshold: undefined }

/** A balancer whose random choices are those at the given places of the available endpoints. */
function picking(places: readonly number[], placed: Parameters<Balancer['update']>[0], balancing?: Parameters<Balancer['update']>[1]) {
  const left = [...places]
  const balancer = new Balancer({ random: () => left.shift() ?? 0, nowMs: () => 0 })
  balancer.update(placed, balancing)
  return balancer
}

function reasonOf(balancer: Balancer, avoidedPort?: number): string {
  const notes: PickNotes = { compared: [], endpoints: [], available: [] }
  const avoided = balancer.endpoints.find(({ port }) => port === avoidedPort)
  const picked = balancer.pick(avoided, notes)
  if (picked === undefined) throw new Error('no endpoint')
  return `${picked.port}: ${explainPick(picked, notes, avoided)}`
}

const evict = (balancer: Balancer, ...ports: number[]): Balancer => {
  for (const endpoint of balancer.endpoints) if (ports.includes(endpoint.port)) balancer.record(endpoint, false, 0, eviction)
  return balancer
}

function fail(balancer: Balancer, ...ports: number[]): Balancer {
  for (const endpoint of balancer.endpoints) if (ports.includes(endpoint.port)) endpoint.check = { isDown: true, problem: undefined }
  balancer.refresh()
  return balancer
}

test.each<[string, string, Balancer, number | undefined]>([
  ['the only endpoint', '1: the only endpoint', picking([], endpoints(1)), undefined],
  [
    'the only endpoint that drains',
    '1: the only endpoint, although it is draining',
    picking([], [{ address: '10.0.0.1', port: 1, draining: true }]),
    undefined,
  ],
  [
    'the better of two',
    '1: the better of two random ones of 3 available endpoints: score 1.000 against 1.000 of 10.0.0.1:3',
    picking([0, 0.9], endpoints(1, 2, 3)),
    undefined,
  ],
  ['one that is drawn twice', '2: a random one of 3 available endpoints', picking([0.5, 0.5], endpoints(1, 2, 3)), undefined],
  ['the only one that is not evicted', '2: the only one of 1 available endpoint (2 evicted)', evict(picking([], endpoints(1, 2, 3)), 1, 3), undefined],
  ['one of many, all evicted', '1: a random one of 2 endpoints, all evicted and used nevertheless', evict(picking([0, 0], endpoints(1, 2)), 1, 2), undefined],
  [
    'the only one whose checks pass',
    '2: the only one of 1 available endpoint (1 evicted and 1 failing health checks)',
    fail(evict(picking([], endpoints(1, 2, 3)), 1), 3),
    undefined,
  ],
  [
    'one of many, all out',
    '1: a random one of 2 endpoints, all evicted or failing health checks and used nevertheless',
    fail(picking([0, 0], endpoints(1, 2)), 1, 2),
    undefined,
  ],
  [
    'one of many in panic, by turns',
    '2: the next of 3 available endpoints (2 evicted and used nevertheless, by panicThreshold)',
    evict(picking([0], endpoints(1, 2, 3), { type: 'RoundRobin', hash: undefined, slowStartMs: undefined, panicThreshold: 0.5 }), 1, 3),
    undefined,
  ],
  [
    'a near one',
    '1: a random one of 2 available endpoints (1 farther away)',
    picking([0, 0], [...endpoints(1, 2), { address: '10.0.0.1', port: 3, distance: 2 }]),
    undefined,
  ],
  ['another than the one that failed', '2: one of 2 available endpoints, other than 10.0.0.1:1, whose attempt failed', picking([0, 0], endpoints(1, 2)), 1],
])('a trace explains the choice of %s', (_, expected, balancer, avoided) => {
  expect(reasonOf(balancer, avoided)).toBe(expected)
})
