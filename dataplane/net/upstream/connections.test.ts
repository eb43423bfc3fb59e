import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { connectionLimits, OpenConnections } from './connections.ts'

describe('the limits of connections', () => {
  test('leave descriptors for clients, other backends and files, and one backend with its clients takes at most half', () => {
    fc.assert(
      fc.property(fc.integer({ min: 64, max: 2_000_000 }), fc.integer({ min: 1, max: 8 }), (descriptors, threads) => {
        const { inbound, outbound, backend } = connectionLimits(descriptors, threads)
        expect(2 * backend * threads).toBeLessThanOrEqual(descriptors / 2)
        expect((inbound + outbound) * threads).toBeLessThan(descriptors)
        expect(outbound).toBeGreaterThanOrEqual(backend)
      }),
    )
  })
})

describe('open connections', () => {
  test('of one backend are limited over all of its transports, and the error names the backend and the fix', () => {
    const open = new OpenConnections({ outbound: 10, backend: 2 })
    const [one, same, other] = [open.of('default/a'), open.of('default/a'), open.of('default/b')]
    expect([one.take(), same.take()]).toEqual([undefined, undefined])
    expect(one.take()).toMatchObject({
      failure: 'limit',
      message: expect.stringMatching(/^default\/a: 2 connections are open.*limit of one backend is 2; raise/),
    })
    expect(other.take()).toBeUndefined()
    same.give()
    expect(one.take()).toBeUndefined()
  })

  test('of all backends are limited', () => {
    const open = new OpenConnections({ outbound: 3, backend: 2 })
    const shares = ['a', 'a', 'b'].map((name) => open.of(name))
    expect(shares.map((share) => share.take())).toEqual([undefined, undefined, undefined])
    expect(open.of('c').take()?.message).toContain('the limit of all backends is 3')
    shares[0]?.give()
    expect(open.of('c').take()).toBeUndefined()
  })
})
