import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Balancer, isOut, type EvictionEvent } from './balancer.ts'
import type { Eviction } from './health.ts'

const eviction = (limits: Partial<Eviction>): Eviction => ({
  durationMs: 3000,
  restoreHealth: undefined,
  consecutiveFailures: undefined,
  healthThreshold: undefined,
  ...limits,
})

/** Plays steps on endpoint a of a and b: `+` and `-` are outcomes, a number is seconds that pass. `isUsed`: whether a is available afterwards. */
function play(policy: Eviction | undefined, steps: string): { balancer: Balancer; isUsed: () => boolean; health: () => number | undefined } {
  let nowMs = 0
  // Draws 0 and 0.5, which are a and b if both are available.
  let draw = 0
  const balancer = new Balancer({ random: () => (draw++ % 2) / 2, nowMs: () => nowMs })
  const endpoints = ['a', 'b'].map((address) => ({ address, port: 80 }))
  balancer.update(endpoints)
  const [a] = balancer.endpoints
  if (a === undefined) throw new Error('two endpoints expected')
  const look = (): void => void balancer.pick()
  for (const step of steps.split(' ')) {
    if (step === '+' || step === '-') balancer.record(a, step === '+', 0, policy)
    else nowMs += Number(step) * 1000
    look()
  }
  // The avoided endpoint is picked only if there is no other.
  const b = balancer.endpoints[1]
  return { balancer, isUsed: () => balancer.pick(b) === a, health: () => a.health }
}

describe('eviction of endpoints', () => {
  test.each<[string, Eviction | undefined, string, boolean]>([
    ['without a policy no endpoint is evicted', undefined, '- - - - - - - -', true],
    ['without limits one unhealthy response evicts', eviction({}), '-', false],
    ['the first of two consecutive failures does not evict', eviction({ consecutiveFailures: 2 }), '-', true],
    ['the second of two consecutive failures evicts', eviction({ consecutiveFailures: 2 }), '- -', false],
    ['a success between failures resets the count', eviction({ consecutiveFailures: 2 }), '- + -', true],
    ['consecutiveFailures 0 is the same as 1', eviction({ consecutiveFailures: 0 }), '-', false],
    ['threshold 0.5: 0.7 before the second failure is not below it', eviction({ healthThreshold: 0.5 }), '- -', true],
    ['threshold 0.5: 0.49 before the third is', eviction({ healthThreshold: 0.5 }), '- - -', false],
    ['a success between failures delays the threshold', eviction({ healthThreshold: 0.5 }), '- + - -', true],
    ['health 0.7 is not below 0.7', eviction({ healthThreshold: 0.7 }), '- -', true],
    ['health below the threshold does not evict on a success', eviction({ healthThreshold: 0.95 }), '+', true],
    ['either limit suffices: failures', eviction({ consecutiveFailures: 1, healthThreshold: 0.1 }), '-', false],
    ['either limit suffices: health', eviction({ consecutiveFailures: 9, healthThreshold: 0.8 }), '- -', false],
    ['an endpoint does not return before the duration', eviction({}), '- 2.9', false],
    ['an endpoint returns after the duration', eviction({}), '- 3', true],
    ['the second eviction takes at least twice as long', eviction({}), '- 3 - 5.9', false],
    ['the second eviction takes no more than twice as long', eviction({}), '- 3 - 6', true],
    ['the third eviction takes three times as long', eviction({}), '- 3 - 6 - 8.9', false],
    ['after a success an eviction takes the base duration again', eviction({}), '- 3 - 6 + - 3', true],
    ['row 75: 2 failures, back after 3 s', eviction({ consecutiveFailures: 2 }), '- - 3', true],
    ['a return does not reset consecutive failures', eviction({ consecutiveFailures: 2 }), '- - 3 -', false],
    ['a success after the return resets consecutive failures', eviction({ consecutiveFailures: 2 }), '- - 3 + -', true],
    ['row 75: then 6 s', eviction({ consecutiveFailures: 2 }), '- - 3 - 5.9', false],
    ['row 75: and back', eviction({ consecutiveFailures: 2 }), '- - 3 - 6', true],
    ['3 of 4 are not 80 %', eviction({ failureRate: { share: 0.8, intervalMs: 10_000, minRequests: 4 } }), '+ - - -', true],
    ['4 of 5 are 80 %', eviction({ failureRate: { share: 0.8, intervalMs: 10_000, minRequests: 4 } }), '+ - - - -', false],
    ['too few responses have no share', eviction({ failureRate: { share: 0.5, intervalMs: 10_000, minRequests: 4 } }), '- - -', true],
    ['successes count for the number of responses', eviction({ failureRate: { share: 0.5, intervalMs: 10_000, minRequests: 4 } }), '+ + - -', false],
    ['counting begins anew with each interval', eviction({ failureRate: { share: 0.5, intervalMs: 10_000, minRequests: 4 } }), '- - - 10 - +', true],
    ['counting begins anew after an eviction', eviction({ failureRate: { share: 0.5, intervalMs: 60_000, minRequests: 2 } }), '- - 3 -', true],
    ['a share suffices beside other limits', eviction({ consecutiveFailures: 9, failureRate: { share: 1, intervalMs: 10_000, minRequests: 2 } }), '- -', false],
    ['failures during an eviction do not extend it', eviction({}), '- 2 - - 1', true],
    ['a success during an eviction does not shorten it', eviction({}), '- + 2.9', false],
  ])('%s', (_, policy, steps, isUsed) => expect(play(policy, steps).isUsed()).toBe(isUsed))

  test.each<[string, number | undefined, string, number]>([
    ['the health at the eviction', undefined, '- - 3', 0.49],
    ['the health at the eviction and not a later one', undefined, '- - + 3', 0.49],
    ['restoreHealth', 1, '- - 3', 1],
    ['restoreHealth 0', 0, '- - 3', 0],
  ])('an endpoint returns with %s', (_, restoreHealth, steps, health) =>
    expect(play(eviction({ consecutiveFailures: 2, restoreHealth }), steps).health()).toBeCloseTo(health, 10),
  )

  test('all endpoints are used if all are evicted', () => {
    const { balancer } = play(eviction({}), '-')
    const [, b] = balancer.endpoints
    if (b) balancer.record(b, false, 0, eviction({}))
    const picked = new Set(Array.from({ length: 10 }, (_, i) => balancer.pick(balancer.endpoints[i % 2])?.address))
    expect(picked).toEqual(new Set(['a', 'b']))
  })

  test('draining endpoints do not replace evicted ones', () => {
    const balancer = new Balancer()
    balancer.update([
      { address: 'a', port: 80 },
      { address: 'b', port: 80, draining: true },
    ])
    const [a] = balancer.endpoints
    if (a) balancer.record(a, false, 0, eviction({}))
    for (let i = 0; i < 10; i++) expect(balancer.pick()?.address).toBe('a')
  })

  test('an update keeps evictions, and new endpoints are not evicted', () => {
    const { balancer, isUsed } = play(eviction({}), '-')
    balancer.update(['a', 'b', 'c'].map((address) => ({ address, port: 80 })))
    expect([isUsed(), balancer.pick(balancer.endpoints[1])?.address]).toEqual([false, 'c'])
    balancer.update([{ address: 'b', port: 80 }])
    balancer.update(['a', 'b'].map((address) => ({ address, port: 80 })))
    expect(balancer.pick(balancer.endpoints[1])?.address).toBe('a')
  })

  test('evictions end without the policy', () => {
    const { balancer, isUsed } = play(eviction({}), '-')
    balancer.restoreAll()
    expect(isUsed()).toBe(true)
  })
})

test('onEviction receives each eviction and return', () => {
  let nowMs = 0
  const events: EvictionEvent[] = []
  const balancer = new Balancer({ random: () => 0, nowMs: () => nowMs, onEviction: (event) => events.push(event) })
  balancer.update(['a', 'b'].map((address) => ({ address, port: 80 })))
  const [a, b] = balancer.endpoints
  if (a === undefined || b === undefined) throw new Error('two endpoints expected')
  const policy = eviction({ restoreHealth: 0.5 })
  balancer.record(a, false, 0, policy)
  balancer.record(a, false, 0, policy)
  nowMs = 3000
  balancer.pick()
  balancer.record(a, false, 0, policy)
  balancer.record(b, false, 0, policy)
  balancer.update([{ address: 'b', port: 80 }])
  balancer.restoreAll()
  expect(events.map(({ kind, endpoint, durationMs, health }) => [kind, endpoint, durationMs, Number(health.toFixed(3))])).toEqual([
    ['evicted', 'a:80', 3000, 0.7],
    ['back', 'a:80', 0, 0.5],
    ['evicted', 'a:80', 6000, 0.35],
    ['evicted', 'b:80', 3000, 0.7],
    ['back', 'a:80', 0, 0.5],
    ['back', 'b:80', 0, 0.5],
  ])
})

describe('the share of endpoints that may be out', () => {
  const outAfterFailuresOf = (count: number, maxEvicted: number | undefined, failing = 0): number => {
    const balancer = new Balancer({ nowMs: () => 0 })
    balancer.update(Array.from({ length: count }, (_, index) => ({ address: `h${index}`, port: 80 })))
    balancer.endpoints.forEach((endpoint, index) => {
      if (index < failing) endpoint.check = { isDown: true, problem: undefined }
    })
    balancer.refresh()
    for (const endpoint of balancer.endpoints) balancer.record(endpoint, false, 0, eviction({ maxEvicted }))
    return balancer.endpoints.filter(isOut).length
  }

  test('limits evictions for any number of endpoints, except that one may always be evicted', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 100 }), (count, percent) => {
        expect(outAfterFailuresOf(count, percent / 100)).toBe(Math.max(1, Math.floor((percent / 100) * count)))
        expect(outAfterFailuresOf(count, undefined)).toBe(count)
      }),
      { numRuns: 200 },
    )
  })

  test('counts endpoints whose checks fail', () => {
    expect([0, 1, 2, 3, 5].map((failing) => outAfterFailuresOf(10, 0.3, failing))).toEqual([3, 3, 3, 3, 5])
  })
})

describe('checks of endpoints', () => {
  const check = (isDown: boolean) => ({ isDown, problem: undefined })
  const usedWith = (down: readonly number[], evicted: readonly number[], panicThreshold?: number): number[] => {
    const balancer = new Balancer({ nowMs: () => 0 })
    balancer.update(
      [1, 2, 3, 4].map((port) => ({ address: 'h', port })),
      { type: 'RoundRobin', hash: undefined, slowStartMs: undefined, panicThreshold },
    )
    for (const endpoint of balancer.endpoints) endpoint.check = check(down.includes(endpoint.port))
    balancer.refresh()
    for (const endpoint of balancer.endpoints) if (evicted.includes(endpoint.port)) balancer.record(endpoint, false, 0, eviction({}))
    return [...new Set(Array.from({ length: 20 }, () => balancer.pick()?.port ?? 0))].toSorted((a, b) => a - b)
  }

  test.each<[string, readonly number[], readonly number[], number | undefined, readonly number[]]>([
    ['one fails', [1], [], undefined, [2, 3, 4]],
    ['one fails, another is evicted', [1], [2], undefined, [3, 4]],
    ['one is both', [1], [1], undefined, [2, 3, 4]],
    ['all fail', [1, 2, 3, 4], [], undefined, [1, 2, 3, 4]],
    ['those that do not fail are evicted', [1, 2], [3, 4], undefined, [1, 2, 3, 4]],
    ['fewer than panicThreshold are left', [1], [2, 3], 0.5, [1, 2, 3, 4]],
    ['as many as panicThreshold are left', [1], [2], 0.5, [3, 4]],
  ])('the endpoints in use if %s', (_, down, evicted, threshold, used) => expect(usedWith(down, evicted, threshold)).toEqual(used))
})
