import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import type { Listener, Policy, PolicyTarget, RouteRef, Traffic } from '#gen/config/types.ts'
import { effectiveBackend, effectiveTraffic, indexPolicies, override } from './merge.ts'

const listener: Listener = { key: 'ns/gw.http', bind: 'b', gateway: { namespace: 'ns', name: 'gw' }, name: 'http', protocol: 'HTTP' }
const ofSet: Listener = { ...listener, key: 'ns/set.http', listenerSet: { namespace: 'ns', name: 'set' } }
const route: RouteRef = { kind: 'HTTPRoute', namespace: 'ns', name: 'r', rule: 'first', ruleIndex: 0 }

const targets = {
  gateway: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
  listener: { kind: 'Gateway', namespace: 'ns', name: 'gw', section: 'http' },
  set: { kind: 'ListenerSet', namespace: 'ns', name: 'set' },
  setSection: { kind: 'ListenerSet', namespace: 'ns', name: 'set', section: 'http' },
  route: { kind: 'HTTPRoute', namespace: 'ns', name: 'r' },
  rule: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', section: 'first' },
  otherRule: { kind: 'HTTPRoute', namespace: 'ns', name: 'r', section: 'second' },
  grpcRoute: { kind: 'GRPCRoute', namespace: 'ns', name: 'r' },
} as const satisfies Record<string, PolicyTarget>

let count = 0
function policy(target: keyof typeof targets, traffic: Traffic, name = `p${count++}`, creationTimestamp = '2026-01-01T00:00:00Z'): Policy {
  return { key: `traffic/ns/${name}:0`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, creationTimestamp, target: targets[target], traffic }
}

const timeouts = (request: string): Traffic => ({ timeouts: { request } })
function merge(policies: readonly Policy[], phase: 'PreRouting' | 'PostRouting' = 'PostRouting', on = listener, rule: RouteRef | undefined = route) {
  return effectiveTraffic(indexPolicies(new Map(policies.map((p) => [p.key, p]))), phase, on, rule)
}

describe('effectiveTraffic', () => {
  test.each<[string, (keyof typeof targets)[], keyof typeof targets]>([
    ['a listener overrides its Gateway', ['gateway', 'listener'], 'listener'],
    ['a route overrides a listener', ['route', 'listener'], 'route'],
    ['a rule overrides its route', ['rule', 'route', 'gateway'], 'rule'],
    ['a policy on another rule is ignored', ['otherRule', 'gateway'], 'gateway'],
    ['a policy on GRPCRoute r is ignored for HTTPRoute r', ['grpcRoute', 'gateway'], 'gateway'],
  ])('%s', (_, attached, winner) => {
    expect(merge(attached.map((target) => policy(target, timeouts(`${attached.indexOf(target) + 1}s`))))).toEqual(timeouts(`${attached.indexOf(winner) + 1}s`))
  })

  test('a listener of a ListenerSet gets policies of Gateway, set and section, not of the Gateway listener of the same name', () => {
    const policies = [policy('gateway', timeouts('1s')), policy('set', timeouts('2s')), policy('listener', timeouts('9s'))]
    expect(merge(policies, 'PostRouting', ofSet)).toEqual(timeouts('2s'))
    expect(merge([...policies, policy('setSection', timeouts('3s'))], 'PostRouting', ofSet)).toEqual(timeouts('3s'))
  })

  test('fields merge, and a stronger field replaces the entire weaker one', () => {
    const weak = { timeouts: { request: '1s' }, retry: { attempts: 3, codes: [503] } }
    expect(merge([policy('gateway', weak), policy('route', { retry: { attempts: 1 } })])).toEqual({ timeouts: { request: '1s' }, retry: { attempts: 1 } })
  })

  test('local and global limits, and the two sides of header modifiers, merge separately', () => {
    const local = [{ requests: 1, unit: 'Seconds' as const }]
    const global = { backendRef: { address: 'a:1' }, domain: 'd', descriptors: [] }
    const merged = merge([
      policy('gateway', { rateLimit: { global }, headerModifiers: { request: { remove: ['a'] } } }),
      policy('route', { rateLimit: { local }, headerModifiers: { response: { remove: ['b'] } } }),
    ])
    expect(merged).toEqual({ rateLimit: { local, global }, headerModifiers: { request: { remove: ['a'] }, response: { remove: ['b'] } } })
  })

  test('the oldest policy on a target wins, then the first by name', () => {
    expect(merge([policy('route', timeouts('1s'), 'a', '2026-02-01T00:00:00Z'), policy('route', timeouts('2s'), 'b', '2026-01-01T00:00:00Z')])).toEqual(
      timeouts('2s'),
    )
    expect(merge([policy('route', timeouts('2s'), 'b'), policy('route', timeouts('1s'), 'a')])).toEqual(timeouts('1s'))
  })

  test('authorization is the union over all levels and all policies of a level', () => {
    const rule = (expression: string): Traffic => ({ authorization: { policy: { matchExpressions: [expression] } } })
    const merged = merge([policy('route', rule('c'), 'b'), policy('gateway', rule('a')), policy('route', rule('b'), 'a'), policy('otherRule', rule('x'))])
    expect(merged?.authorization?.flatMap((set) => set.policy.matchExpressions).toSorted()).toEqual(['a', 'b', 'c'])
    const preRouting = merge([policy('gateway', { phase: 'PreRouting', ...rule('a') }), policy('route', rule('b'))], 'PreRouting', listener, undefined)
    expect(preRouting?.authorization).toEqual([rule('a').authorization])
  })

  test('phases do not mix', () => {
    const policies = [policy('gateway', { phase: 'PreRouting', cors: { maxAge: 1 } }), policy('listener', { cors: { maxAge: 2 } })]
    expect(merge(policies, 'PreRouting', listener, undefined)).toEqual({ cors: { maxAge: 1 } })
    expect(merge(policies)).toEqual({ cors: { maxAge: 2 } })
  })

  test('is undefined if no policy is attached', () => expect(merge([])).toBeUndefined())

  test('does not depend on the order of arrival', () => {
    const one = fc.record({
      target: fc.constantFrom(...(Object.keys(targets) as (keyof typeof targets)[])),
      seconds: fc.integer({ min: 1, max: 9 }),
      month: fc.integer({ min: 1, max: 9 }),
    })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), fc.func(fc.integer()), (drawn, rank) => {
        const policies = drawn.map(({ target, seconds, month }, i) => policy(target, timeouts(`${seconds}s`), `n${i}`, `2026-0${month}-01T00:00:00Z`))
        const shuffled = [...policies].sort((a, b) => rank(a.key) - rank(b.key))
        expect(merge(shuffled)).toEqual(merge(policies))
      }),
    )
  })
})

describe('the merge of two levels', () => {
  const field = fc.integer({ min: 1, max: 9 })
  const sectionOf = fc.record(
    {
      timeouts: fc.record({ request: field.map((seconds) => `${seconds}s`) }),
      retry: fc.record({ attempts: field }),
      csrf: fc.constant({}),
      rateLimit: fc.record({ local: fc.array(field), global: field }, { requiredKeys: [] }),
      headerModifiers: fc.record({ request: field, response: field }, { requiredKeys: [] }),
      authorization: fc.array(field, { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: [] },
  )

  test('is associative, so that levels may be grouped in any way', () => {
    fc.assert(fc.property(sectionOf, sectionOf, sectionOf, (a, b, c) => expect(override(override(a, b), c)).toEqual(override(a, override(b, c)))))
  })

  test('keeps a level merged with nothing, and each field of the stronger level', () => {
    fc.assert(
      fc.property(sectionOf, sectionOf, (weak, strong) => {
        expect(override({}, weak)).toEqual(weak)
        expect(override(weak, {})).toEqual(weak)
        const { rateLimit, headerModifiers, authorization, ...whole } = strong
        expect(override(weak, strong)).toMatchObject({ ...whole, ...(rateLimit && { rateLimit }), ...(headerModifiers && { headerModifiers }) })
        expect(override(weak, strong)['authorization'] ?? []).toEqual([...(weak.authorization ?? []), ...(authorization ?? [])])
      }),
    )
  })

  test('does not depend on the order in which policies arrive', () => {
    const traffic = sectionOf.map(({ authorization, ...rest }) => ({
      ...rest,
      ...(authorization && { authorization: { policy: { matchExpressions: authorization.map(String) } } }),
    }))
    const one = fc.record({
      target: fc.constantFrom(...(Object.keys(targets) as (keyof typeof targets)[])),
      traffic,
      phase: fc.constantFrom('PreRouting' as const, 'PostRouting' as const),
      month: fc.integer({ min: 1, max: 3 }),
    })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 10 }), fc.func(fc.integer()), fc.constantFrom(listener, ofSet), (drawn, rank, on) => {
        const policies = drawn.map((each, i) =>
          policy(each.target, { ...each.traffic, phase: each.phase } as unknown as Traffic, `n${i}`, `2026-0${each.month}-01T00:00:00Z`),
        )
        const shuffled = [...policies].sort((a, b) => rank(a.key) - rank(b.key))
        for (const phase of ['PreRouting', 'PostRouting'] as const) expect(merge(shuffled, phase, on)).toEqual(merge(policies, phase, on))
      }),
    )
  })
})

describe('effectiveBackend', () => {
  const backend = (target: keyof typeof targets, section: NonNullable<Policy['backend']>, month = 1): Policy => {
    const { traffic: _, ...rest } = policy(target, {}, `b${count++}`, `2026-0${month}-01T00:00:00Z`)
    return { ...rest, backend: section }
  }
  const mergeBackend = (...policies: Policy[]) => effectiveBackend(indexPolicies(new Map(policies.map((p) => [p.key, p]))), listener, route)

  test('a rule overrides its route, a route its listener, a listener its Gateway, field by field', () => {
    expect(
      mergeBackend(
        backend('rule', { http: { version: 'HTTP2' } }),
        backend('gateway', { http: { version: 'HTTP1' }, tcp: { connectTimeout: '1s' } }),
        backend('route', { tls: { sni: 'route' } }),
        backend('listener', { tls: { sni: 'listener' } }),
      ),
    ).toEqual({ http: { version: 'HTTP2' }, tcp: { connectTimeout: '1s' }, tls: { sni: 'route' } })
  })

  test('the oldest policy on a target wins', () => {
    expect(mergeBackend(backend('route', { tls: { sni: 'young' } }, 2), backend('route', { tls: { sni: 'old' } }, 1))).toEqual({ tls: { sni: 'old' } })
  })

  test('is undefined if no policy is attached', () => expect(mergeBackend()).toBeUndefined())
})
