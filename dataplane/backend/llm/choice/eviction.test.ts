import { describe, expect, test } from '@jest/globals'
import type { Cause, Scope, Verdict } from '../causes/types.ts'
import { blameOf, evictionOf } from './eviction.ts'

const verdict = (cause: Cause, more: Partial<Verdict> = {}): Verdict => ({ cause, scope: 'endpoint', ...more })

describe('a failure', () => {
  const configured = { durationMs: 3000, restoreHealth: 0.5, consecutiveFailures: 4, healthThreshold: undefined }
  const policy = { condition: undefined, eviction: configured }
  const bare = { condition: undefined, eviction: undefined }

  test('evicts nothing without a policy', () => expect(evictionOf(undefined, verdict('RateLimit', { retryAfterMs: 7000 }), 100)).toBeUndefined())
  test('evicts as configured', () => expect(evictionOf(policy, verdict('Overloaded'), 100)).toBe(configured))
  test('of a rate limit without a hint evicts as configured', () => expect(evictionOf(policy, verdict('RateLimit'), 100)).toBe(configured))
  test('of a rate limit evicts at once, until the hint of the provider', () =>
    expect(evictionOf(policy, verdict('RateLimit', { retryAfterMs: 7000 }), 100)).toEqual({
      durationMs: 7000,
      restoreHealth: 0.5,
      consecutiveFailures: undefined,
      healthThreshold: undefined,
      isExact: true,
    }))
  test('of another cause does not use the hint', () => expect(evictionOf(bare, verdict('Overloaded', { retryAfterMs: 7000 }), undefined)).toBeUndefined())
  test('evicts for the retry backoff otherwise', () => expect(evictionOf(bare, verdict('ServerError'), 100)?.durationMs).toBe(100))
  test('evicts nothing without a hint and a backoff', () => expect(evictionOf(bare, verdict('ServerError'), undefined)).toBeUndefined())
  test.each<[Cause, number]>([
    ['Quota', 300_000],
    ['Auth', 60_000],
    ['ModelNotFound', 60_000],
  ])('of a lasting cause evicts at once and for long: %s', (cause, ms) =>
    expect(evictionOf(policy, verdict(cause), 100)).toMatchObject({ durationMs: ms, consecutiveFailures: undefined }),
  )
})

const shared = { hasOwnModel: false, hasClientCredential: false }
test.each<[Cause, Scope, typeof shared, ReturnType<typeof blameOf>]>([
  ['Invalid', 'request', shared, undefined],
  ['ContextLength', 'request', shared, undefined],
  ['ContentFilter', 'request', shared, undefined],
  ['ServerError', 'endpoint', shared, 'provider'],
  ['Overloaded', 'endpoint', { hasOwnModel: false, hasClientCredential: true }, 'provider'],
  ['Quota', 'account', shared, 'provider'],
  ['Quota', 'account', { hasOwnModel: true, hasClientCredential: true }, undefined],
  ['Auth', 'credential', { hasOwnModel: true, hasClientCredential: true }, undefined],
  ['Auth', 'model', shared, undefined],
  ['Auth', 'model', { hasOwnModel: true, hasClientCredential: false }, 'provider'],
  ['ModelNotFound', 'model', shared, undefined],
  ['ModelNotFound', 'model', { hasOwnModel: true, hasClientCredential: false }, 'provider'],
  ['RateLimit', 'model', shared, 'model'],
  ['RateLimit', 'model', { hasOwnModel: true, hasClientCredential: false }, 'provider'],
  ['RateLimit', 'model', { hasOwnModel: true, hasClientCredential: true }, undefined],
])('%s of scope %s of a provider with %j concerns %s', (cause, scope, provider, expected) => expect(blameOf(provider, { cause, scope })).toBe(expected))
