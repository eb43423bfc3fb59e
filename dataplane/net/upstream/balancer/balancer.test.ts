import { describe, expect, test } from '@jest/globals'
import { Balancer, recordOutcome } from './balancer.ts'

/** A deterministic sequence in [0, 1). */
function sequence(seed = 1): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

const endpoints = (...ports: number[]) => ports.map((port) => ({ address: '127.0.0.1', port }))

describe('Balancer', () => {
  test('picks undefined without endpoints', () => expect(new Balancer().pick()).toBeUndefined())

  test('distributes requests evenly over equal endpoints', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update(endpoints(1, 2, 3))
    const counts = new Map<number, number>()
    for (let i = 0; i < 3000; i++) {
      const port = balancer.pick()?.port ?? 0
      counts.set(port, (counts.get(port) ?? 0) + 1)
    }
    for (const port of [1, 2, 3]) expect(counts.get(port)).toBeGreaterThan(800)
  })

  test('prefers healthy, fast and idle endpoints', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update(endpoints(1, 2))
    const [bad, good] = balancer.endpoints
    if (!bad || !good) throw new Error('two endpoints expected')
    for (let i = 0; i < 5; i++) recordOutcome(bad, false, 0)
    for (let i = 0; i < 5; i++) recordOutcome(good, true, 0.01)
    const picks = Array.from({ length: 1000 }, () => balancer.pick()?.port)
    // Draws with replacement: the bad one is picked only if it is drawn twice.
    expect(picks.filter((port) => port === 1).length).toBeLessThan(350)
  })

  test('a retry avoids the endpoint that failed while another exists', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update(endpoints(1, 2))
    const failed = balancer.endpoints[0]
    for (let i = 0; i < 100; i++) expect(balancer.pick(failed)?.port).toBe(2)
    balancer.update(endpoints(1))
    expect(balancer.pick(balancer.endpoints[0])?.port).toBe(1)
  })

  test('pickOther returns no endpoint that failed', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update(endpoints(1, 2, 3))
    const failed = new Set(balancer.endpoints.slice(0, 2))
    for (let i = 0; i < 100; i++) expect(balancer.pickOther(failed)?.port).toBe(3)
    expect(balancer.pickOther(new Set(balancer.endpoints))).toBeUndefined()
  })

  test('draining endpoints are used only when nothing else is left', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update([{ address: '10.0.0.1', port: 1, draining: true }, ...endpoints(2)])
    for (let i = 0; i < 50; i++) expect(balancer.pick()?.port).toBe(2)
    balancer.update([{ address: '10.0.0.1', port: 1, draining: true }])
    expect(balancer.pick()?.port).toBe(1)
  })

  test('known addresses keep their state over an update', () => {
    const balancer = new Balancer({ random: sequence() })
    balancer.update(endpoints(1, 2))
    const first = balancer.endpoints[0]
    if (first) recordOutcome(first, false, 0)
    balancer.update(endpoints(3, 1))
    expect(balancer.endpoints.find((endpoint) => endpoint.port === 1)?.health).toBeCloseTo(0.7)
    expect(balancer.endpoints.find((endpoint) => endpoint.port === 3)?.health).toBe(1)
  })

  test('health is an EWMA with alpha 0.3', () => {
    const balancer = new Balancer()
    balancer.update(endpoints(1))
    const endpoint = balancer.pick()
    if (!endpoint) throw new Error('an endpoint expected')
    recordOutcome(endpoint, false, 9)
    recordOutcome(endpoint, true, 1)
    expect(endpoint.health).toBeCloseTo(0.79)
    expect(endpoint.latencySeconds).toBeCloseTo(0.3)
  })
})
