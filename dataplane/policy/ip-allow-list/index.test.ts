import { describe, expect, test } from '@jest/globals'
import type { IPAllowList } from '#gen/config/types.ts'
import { Cidr, Ip } from '#api/cel/index.ts'
import { fc } from '#api/property-testing.ts'
import { mountPolicies } from '../../testing/hono.ts'
import { compileIpAllowList } from './index.ts'

async function send(section: IPAllowList, remoteAddress: string) {
  const prepare = (exchange: object) => void Object.assign(exchange, { connection: { remoteAddress } })
  const { response, isForwarded } = await mountPolicies([compileIpAllowList(section)], { prepare }).request('http://host/')
  return { status: response.status, text: await response.text(), isForwarded }
}

const admitted = { status: 200, text: 'upstream', isForwarded: true }
const rejected = { status: 403, text: 'client address not allowed', isForwarded: false }

describe('ipAllowList', () => {
  test.each<[string, IPAllowList, string, boolean]>([
    ['admits an address of allow', { allow: ['192.0.2.7'] }, '192.0.2.7', true],
    ['rejects an address beside allow', { allow: ['192.0.2.7'] }, '192.0.2.8', false],
    ['admits the first address of a range', { allow: ['10.0.0.0/8'] }, '10.0.0.0', true],
    ['admits the last address of a range', { allow: ['10.0.0.0/8'] }, '10.255.255.255', true],
    ['rejects the address after a range', { allow: ['10.0.0.0/8'] }, '11.0.0.0', false],
    ['ignores bits beyond the prefix', { allow: ['10.1.2.3/8'] }, '10.200.0.1', true],
    ['admits every IPv4 address by 0.0.0.0/0', { allow: ['0.0.0.0/0'] }, '203.0.113.9', true],
    ['rejects IPv6 where only IPv4 is allowed', { allow: ['0.0.0.0/0'] }, '2001:db8::1', false],
    ['admits an IPv6 address of a range', { allow: ['2001:db8::/32'] }, '2001:db8:ffff::1', true],
    ['compares IPv6 addresses by value', { allow: ['2001:DB8:0:0::1'] }, '2001:db8::1', true],
    ['reads an IPv4-mapped address as IPv4', { allow: ['10.0.0.0/8'] }, '::ffff:10.1.2.3', true],
    ['drops the zone of a link-local address', { allow: ['fe80::/10'] }, 'fe80::1%eth0', true],
    ['admits everyone else if there is only deny', { deny: ['10.0.0.0/8'] }, '192.0.2.7', true],
    ['rejects an address of deny', { deny: ['10.0.0.0/8'] }, '10.1.1.1', false],
    ['rejects by deny what allow admits', { allow: ['10.0.0.0/8'], deny: ['10.9.0.0/16'] }, '10.9.0.1', false],
    ['rejects a client whose address is unknown', { deny: ['10.0.0.0/8'] }, '', false],
  ])('%s', async (_, section, address, isAdmitted) => {
    expect(await send(section, address)).toEqual(isAdmitted ? admitted : rejected)
  })

  test('agrees with cidr() of expressions on any range and address', async () => {
    const octet = fc.integer({ min: 0, max: 255 })
    const ip = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'))
    await fc.assert(
      fc.asyncProperty(ip, fc.integer({ min: 0, max: 32 }), ip, async (network, prefix, address) => {
        const range = `${network}/${prefix}`
        const [cidr, parsed] = [Cidr.parse(range), Ip.parse(address)]
        if (cidr === undefined || parsed === undefined) throw new Error('not an address')
        expect((await send({ allow: [range] }, address)).isForwarded).toBe(cidr.contains(parsed))
      }),
    )
  })
})
