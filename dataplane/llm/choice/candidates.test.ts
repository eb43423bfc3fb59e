import { expect, test } from '@jest/globals'
import { chooseCandidate, explainNoCandidate, newProviderState, type Candidate } from './candidates.ts'

const evicted = (): Candidate => ({ state: { ...newProviderState(), evicted: { untilMs: 1000, health: 1 } } })

test.each<[string, Candidate[][], string]>([
  ['the backend has no groups', [], 'no provider is left: none of the backend has a known kind'],
  ['every provider was filtered', [[], []], 'no provider is left: none of the backend has a known kind'],
  [
    'the first group is empty and the others are evicted',
    [[], [evicted()]],
    'every provider is evicted, and the first group, which is used nevertheless, has none',
  ],
])('no candidate is chosen when %s, and the explanation says so', (_, groups, explanation) => {
  expect([chooseCandidate(groups, 0, () => 0), explainNoCandidate(groups)]).toEqual([undefined, explanation])
})

test('a first group whose providers are all evicted is used nevertheless', () => {
  expect(chooseCandidate([[evicted()]], 0, () => 0)).toBeDefined()
})
