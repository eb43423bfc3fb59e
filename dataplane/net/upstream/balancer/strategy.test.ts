import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { testConnection, testExchange, testRequest } from '../../../testing/exchange.ts'
import { Balancer } from './balancer.ts'
import { hashKeyOf, hashText, newCookieOf, rendezvousScore, type ConsistentHash } from './hash.ts'
import type { LoadBalancing } from './strategy.ts'

const endpoints = (...ports: number[]) => ports.map((port) => ({ address: '10.0.0.1', port }))
const hashing = (maxLoad?: number): LoadBalancing => ({
  type: 'ConsistentHash',
  hash: { type: 'Header', name: 'x', ttlSeconds: undefined, maxLoad },
  slowStartMs: undefined,
})
const keys = Array.from({ length: 2000 }, (_, i) => hashText(`user-${i}`))

function balancerOf(ports: readonly number[], balancing: LoadBalancing, nowMs = () => 0): Balancer {
  const balancer = new Balancer({ nowMs })
  balancer.update(endpoints(...ports), balancing)
  return balancer
}
const portOf = (balancer: Balancer, key: number): number => balancer.pick(undefined, undefined, key)?.port ?? 0
const share = (ports: readonly number[], port: number): number => ports.filter((one) => one === port).length / ports.length

describe('ConsistentHash', () => {
  test('all workers and replicas agree, whatever the order of the endpoints', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 65_535 }), { minLength: 1, maxLength: 20 }), fc.string(), (ports, text) => {
        const sorted = balancerOf(
          ports.toSorted((a, b) => a - b),
          hashing(),
        )
        expect(portOf(balancerOf(ports, hashing()), hashText(text))).toBe(portOf(sorted, hashText(text)))
      }),
    )
    // Other versions must agree too: a replica may be older.
    const ports = Array.from({ length: 16 }, (_, i) => portOf(balancerOf([1, 2, 3], hashing()), hashText(`cart-${i}`)))
    expect(ports).toEqual([1, 2, 2, 1, 2, 2, 2, 3, 3, 3, 1, 1, 2, 1, 2, 1])
  })

  test('spreads keys evenly, and an endpoint that leaves moves only its own', () => {
    const before = keys.map((key) => portOf(balancerOf([1, 2, 3, 4, 5], hashing()), key))
    for (const port of [1, 2, 3, 4, 5]) expect(share(before, port)).toBeCloseTo(0.2, 1)
    const after = keys.map((key) => portOf(balancerOf([1, 2, 4, 5], hashing()), key))
    before.forEach((port, i) => port !== 3 && expect(after[i]).toBe(port))
    expect(
      share(
        after.filter((_, i) => before[i] === 3),
        1,
      ),
    ).toBeCloseTo(0.25, 0)
  })

  test('a retry goes to another endpoint, always the same one', () => {
    const balancer = balancerOf([1, 2, 3], hashing())
    const [key = 0] = keys
    const first = balancer.pick(undefined, undefined, key)
    const seconds = Array.from({ length: 20 }, () => balancer.pick(first, undefined, key))
    expect(new Set(seconds).size).toBe(1)
    expect(seconds[0]).not.toBe(first)
  })

  test('no endpoint has more than its share of the load with maxLoad', () => {
    const balancer = balancerOf([1, 2, 3, 4], hashing(1.25))
    const [key = 0] = keys
    for (let i = 1; i <= 100; i++) {
      const endpoint = balancer.pick(undefined, undefined, key)
      if (endpoint !== undefined) endpoint.pending++
      const pending = balancer.endpoints.map((one) => one.pending)
      expect(pending.reduce((sum, one) => sum + one)).toBe(i)
      expect(Math.max(...pending)).toBeLessThanOrEqual(Math.ceil((1.25 * i) / 4))
    }
  })

  test('weights are shares of the keys', () => {
    const members = [hashText('ns/a'), hashText('ns/b')] as const
    const first = keys.filter((key) => rendezvousScore(key, members[0], 9) > rendezvousScore(key, members[1], 1)).length
    expect(first / keys.length).toBeCloseTo(0.9, 1)
  })

  test('a request without a key gets any endpoint', () => {
    const balancer = balancerOf([1, 2, 3], hashing())
    expect(new Set(Array.from({ length: 200 }, () => balancer.pick()?.port)).size).toBe(3)
  })
})

describe('the key of a request', () => {
  const of = (change: Partial<ConsistentHash>): ConsistentHash => ({ type: 'Header', name: 'x', ttlSeconds: undefined, maxLoad: undefined, ...change })

  test.each<[string, ConsistentHash, Exchange, string | undefined]>([
    ['a header', of({}), testExchange({}, { x: 'ann' }), 'ann'],
    ['no header', of({}), testExchange(), undefined],
    ['a query parameter', of({ type: 'QueryParam', name: 'q' }), testExchange({ target: '/?a=1&q=%61nn' }), 'ann'],
    ['no query parameter', of({ type: 'QueryParam', name: 'q' }), testExchange({ target: '/?Q=1' }), undefined],
    ['a cookie', of({ type: 'Cookie', name: 'c' }), testExchange({}, { cookie: 'a=b; c=ann; d' }), 'ann'],
    ['an address', of({ type: 'SourceAddress' }), testExchange(), '127.0.0.1'],
    ['an IPv6 network', of({ type: 'SourceAddress' }), new Exchange({ ...testConnection, remoteAddress: '2001:db8::7' }, testRequest(), 0), '2001:db8::'],
  ])('is %s', (_, hash, exchange, expected) => {
    expect(hashKeyOf(hash, exchange)).toBe(expected === undefined ? undefined : hashText(expected))
    expect(newCookieOf(exchange)).toBeUndefined()
  })

  test('is a new cookie, once per exchange, if the request has none', () => {
    const hash = of({ type: 'Cookie', name: 'c', ttlSeconds: 60 })
    const exchange = testExchange({}, { cookie: 'c=; cc=1' })
    const key = hashKeyOf(hash, exchange)
    expect(hashKeyOf(hash, exchange)).toBe(key)
    const [, value = '', attributes] = /^c=([^;]+); (.*)$/.exec(newCookieOf(exchange) ?? '') ?? []
    expect([hashText(value), attributes]).toEqual([key, 'Path=/; Max-Age=60; HttpOnly; SameSite=Lax'])
    const tls = { sni: undefined, alpn: undefined, protocol: undefined, clientCertificate: undefined }
    const secure = new Exchange({ ...testConnection, tls }, testRequest(), 0)
    hashKeyOf(of({ type: 'Cookie', name: 'c' }), secure)
    expect(newCookieOf(secure)).toMatch(/^c=[^;]+; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
  })
})

describe('panicThreshold', () => {
  const eviction = { durationMs: 60_000, restoreHealth: undefined, consecutiveFailures: 1, healthThreshold: undefined }
  const usedAfter = (evicted: number, panicThreshold: number | undefined): number => {
    const balancer = balancerOf([1, 2, 3, 4], { type: 'RoundRobin', hash: undefined, slowStartMs: undefined, panicThreshold })
    for (const endpoint of balancer.endpoints.slice(0, evicted)) balancer.record(endpoint, false, 0, eviction)
    return new Set(Array.from({ length: 20 }, () => balancer.pick()?.port)).size
  }

  test.each<[string, number | undefined, readonly number[]]>([
    ['none', undefined, [4, 3, 2, 1, 4]],
    ['50 %', 0.5, [4, 3, 2, 4, 4]],
    ['51 %', 0.51, [4, 3, 4, 4, 4]],
    ['100 %', 1, [4, 4, 4, 4, 4]],
  ])('%s: endpoints in use by the number of evicted ones', (_, threshold, expected) =>
    expect([0, 1, 2, 3, 4].map((evicted) => usedAfter(evicted, threshold))).toEqual(expected),
  )
})

describe('other strategies', () => {
  const by = (type: LoadBalancing['type'], slowStartMs?: number): LoadBalancing => ({ type, hash: undefined, slowStartMs })

  test('RoundRobin picks one after the other, and skips the endpoint that failed', () => {
    const balancer = balancerOf([1, 2, 3], by('RoundRobin'))
    const ports = Array.from({ length: 9 }, () => balancer.pick()?.port)
    expect(new Set(ports.slice(0, 3)).size).toBe(3)
    expect(ports.slice(3)).toEqual([...ports.slice(0, 3), ...ports.slice(0, 3)])
    const [failed] = balancer.endpoints
    for (let i = 0; i < 6; i++) expect(balancer.pick(failed)).not.toBe(failed)
  })

  test('Random ignores the load', () => {
    const balancer = balancerOf([1, 2], by('Random'))
    const [first] = balancer.endpoints
    if (first !== undefined) first.pending = 1000
    expect(
      share(
        Array.from({ length: 2000 }, () => balancer.pick()?.port ?? 0),
        1,
      ),
    ).toBeCloseTo(0.5, 1)
  })

  test.each(['LeastRequest', 'RoundRobin', 'Random'] as const)('%s gives an endpoint that joins a growing share', (type) => {
    let nowMs = 0
    const balancer = balancerOf([1, 2], by(type, 1000), () => nowMs)
    const shareOf = (port: number): number =>
      share(
        Array.from({ length: 3000 }, () => balancer.pick()?.port ?? 0),
        port,
      )
    // Endpoints that join together as the first have equal shares.
    expect(shareOf(2)).toBeCloseTo(0.5, 1)
    balancer.update(endpoints(1, 2, 3), by(type, 1000))
    const shares = [0, 500, 999, 2000].map((at) => {
      nowMs = at
      return shareOf(3)
    })
    expect(shares[0]).toBeLessThan(0.2)
    expect(shares[0]).toBeGreaterThan(0)
    expect(shares[3]).toBeCloseTo(1 / 3, 1)
    expect(shares[0]).toBeLessThan(shares[3] ?? 0)
  })
})
