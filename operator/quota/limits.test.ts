import { expect, test } from '@jest/globals'
import { findLimits } from './limits.ts'

test('the operator divides budgets with scope Gateway, unless a store counts them', () => {
  const limits = [{ requests: 1, window: 'Day' }]
  const budgets = [
    { name: 'replica', limits },
    { name: 'gateway', scope: 'Gateway', alertAt: [50, 95, 80], limits },
    { name: 'redis', scope: 'Gateway', store: 'Redis', limits },
    { name: 'postgres', scope: 'Gateway', store: 'Postgres', limits },
  ]
  const found = findLimits([{ kind: 'policy', message: { policy: { namespace: 'ns', name: 'p' }, traffic: { budgets } } }])
  expect([...found.keys()]).toEqual(['ns/p gateway requests Day'])
  expect(found.get('ns/p gateway requests Day')).toMatchObject({ budget: 'gateway', policy: { namespace: 'ns', name: 'p' }, alertAt: [95, 80, 50] })
})

test('the lower one of two limits in one window is divided', () => {
  const policy = { namespace: 'ns', name: 'p' }
  for (const amounts of [
    [9, 4],
    [4, 9],
  ]) {
    const budgets = [{ name: 'pair', scope: 'Gateway', limits: amounts.map((requests) => ({ requests, window: 'Day' })) }]
    const found = findLimits([{ kind: 'policy', message: { policy, traffic: { budgets } } }])
    expect([...found.values()].map(({ name, amount }) => [name, amount])).toEqual([['ns/p pair requests Day', 4]])
  }
})
