import { expect, test } from '@jest/globals'
import { findLimits } from './limits.ts'

test('the operator divides budgets with scope Gateway, unless Redis counts them', () => {
  const limits = [{ requests: 1, window: 'Day' }]
  const budgets = [
    { name: 'replica', limits },
    { name: 'gateway', scope: 'Gateway', limits },
    { name: 'redis', scope: 'Gateway', store: 'Redis', limits },
  ]
  const found = findLimits([{ kind: 'policy', message: { policy: { namespace: 'ns', name: 'p' }, traffic: { budgets } } }])
  expect([...found.keys()]).toEqual(['ns/p gateway requests Day'])
})
