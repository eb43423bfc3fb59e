import { describe, expect, test } from '@jest/globals'
import { planRetry, planTimeouts } from './call-plan.ts'

// Timers of Node reach 2^31 - 1 ms. A longer one fires immediately, so that every request would time out.
const longest = 2_147_483_647

describe('limits in plans', () => {
  test.each([
    ['a request timeout of a policy', planTimeouts(undefined, { request: '1000h' }).requestMs, longest],
    ['a request timeout of a rule', planTimeouts({ requestMs: 3_600_000_000 }, undefined).requestMs, longest],
    ['a timeout of an attempt', planTimeouts({ backendRequestMs: 3_600_000_000 }, undefined).backendRequestMs, longest],
    ['a backoff of a policy', planRetry(undefined, { backoff: '99999h' })?.backoffMs, longest],
    ['a backoff of a rule', planRetry({ backoffMs: 3_600_000_000 }, undefined)?.backoffMs, longest],
    ['0 of a rule, which overrides the policy', planTimeouts({ requestMs: 0 }, { request: '1s' }).requestMs, undefined],
    ['a short timeout, which is unchanged', planTimeouts(undefined, { request: '1m' }).requestMs, 60_000],
  ])('fit into a timer: %s', (_, actual, expected) => expect(actual).toBe(expected))
})
