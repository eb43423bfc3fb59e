import { expect, test } from '@jest/globals'
import { chooseCandidate, explainCandidate, explainNoCandidate, hasLimits, isLimited, limitModel, newProviderState, type Candidate } from './candidates.ts'

const evicted = (): Candidate => ({ state: { ...newProviderState(), evicted: { untilMs: 1000, health: 1, status: 0 } } })

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

const named = (name: string, isEvicted = false) => ({ name, ...(isEvicted ? evicted() : { state: newProviderState() }) })
const [a, b, c, out] = [named('a'), named('b'), named('c'), named('out', true)]

test.each<[string, (typeof a)[][], typeof a, typeof a | undefined, string]>([
  ['the only provider', [[a]], a, undefined, 'a, the only provider'],
  ['one of a group', [[a, b]], b, undefined, 'b, the best of two random ones of 2 providers'],
  ['one of a group with an evicted one', [[a, b, out]], a, undefined, 'a, the best of two random ones of 2 providers; out evicted'],
  ['one of a later group', [[out], [c]], c, undefined, 'c, the only one of the providers of group 2 of 2; out of earlier groups evicted'],
  ['another than the one that failed', [[a, b]], b, a, 'b, the best of two random ones of 2 providers; the attempt with a failed'],
  ['an evicted one, because all are', [[out]], out, undefined, 'out, the only provider; out evicted'],
])('a trace explains the choice of %s', (_, groups, picked, avoided, expected) => {
  expect(explainCandidate(groups, picked, avoided)).toBe(expected)
})

test('a provider whose rate for a model is limited is used for other models, and for that one if there is no other', () => {
  const [first, second] = [named('a'), named('b')]
  limitModel(first.state, 'slow', 1000)
  const choose = (groups: (typeof first)[][], model: string, nowMs = 0) =>
    chooseCandidate(
      groups,
      nowMs,
      () => 0,
      undefined,
      () => model,
    )?.name
  expect([choose([[first], [second]], 'slow'), choose([[first], [second]], 'other'), choose([[first]], 'slow')]).toEqual(['b', 'a', 'a'])
  expect([choose([[first], [second]], 'slow', 1000), hasLimits([[first]])]).toEqual(['a', false])
})

test('models whose rate is limited are forgotten beyond 256, the oldest first', () => {
  const { state } = named('a')
  for (let index = 0; index < 1000; index++) limitModel(state, `m${index}`, 1000)
  expect([state.limited.size, isLimited(state, 'm0', 0), isLimited(state, 'm744', 0)]).toEqual([256, false, true])
})
