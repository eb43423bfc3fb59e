import { describe, expect, test } from '@jest/globals'
import { planRetry, planTimeouts } from './call-plan.ts'

// Timers of Node reach 2^31 - 1 ms. A longer one fires immediately, so that every request would time out.
const longest = 2_147_483_647

describe('limits longer than a timer', () => {
  test.each([
    ['of a policy', planTimeouts(undefined, { request: '1000h' }).requestMs, longest],
    ['of a rule', planTimeouts({ requestMs: 3_600_000_000 }, undefined).requestMs, longest],
    ['of an attempt', planTimeouts({ backendRequestMs: 3_600_000_000 }, undefined).backendRequestMs, longest],
    ['between attempts, of a policy', planRetry(undefined, { backoff: '99999h' })?.backoffMs, longest],
    ['between attempts, of a rule', planRetry({ backoffMs: 3_600_000_000 }, undefined)?.backoffMs, longest],
    ['0 of a rule is no limit, whatever the policy says', planTimeouts({ requestMs: 0 }, { request: '1s' }).requestMs, undefined],
    ['shorter ones stay', planTimeouts(undefined, { request: '1m' }).requestMs, 60_000],
  ])('%s', (_, actual, expected) => expect(actual).toBe(expected))
})
