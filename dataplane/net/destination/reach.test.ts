import { describe, expect, test } from '@jest/globals'
import type { DynamicForwardProxyBackend } from '#gen/config/types.ts'
import { AddressRanges, type DialRules } from '#api/address.ts'
import { compileReach } from './reach.ts'

const own: DialRules = {
  ports: () => [15_000, 8080],
  operator: () => ({ addresses: ['10.96.0.7'], port: 9978 }),
  isLoopbackAllowed: false,
  addresses: () => ['10.1.0.5', 'fd00::5'],
}
const rejects = (backend: DynamicForwardProxyBackend, address: string, port = 443, host = 'a.example.com', process = own): string | undefined =>
  compileReach(backend, process).reject(host, address, port)

describe('the reach of a dynamicForwardProxy backend', () => {
  test.each([
    ['its admin port on loopback', '127.0.0.1', 15_000],
    ['its admin port by another loopback address', '127.8.9.1', 15_000],
    ['its admin port by the unspecified address', '0.0.0.0', 15_000],
    ['its admin port by IPv6', '::1', 15_000],
    ['its admin port by an IPv4-mapped address', '::ffff:127.0.0.1', 15_000],
    ['a listener at its own address', '10.1.0.5', 8080],
    ['a listener at its own IPv6 address', 'fd00::5', 8080],
    ['the config stream of its operator', '10.96.0.7', 9978],
    ['another port of its operator', '10.96.0.7', 9092],
  ])('never contains %s', (_, address, port) => {
    expect(rejects({}, address, port)).toMatch(/a port of this gateway or of its operator$/)
    expect(rejects({ allow: ['127.0.0.0/8', '10.0.0.0/8', '::1', 'fd00::/8', 'a.example.com'] }, address, port)).toMatch(/a port of this gateway/)
  })

  test('contains another port at its own address', () => expect(rejects({}, '10.1.0.5', 9000)).toBeUndefined())

  test('contains a program beside an operator on this machine, but not the operator', () => {
    const local = { ...own, isLoopbackAllowed: true, operator: () => ({ addresses: ['127.0.0.1'], port: 9978 }) }
    expect(rejects({}, '127.0.0.1', 9001, 'localhost', local)).toBeUndefined()
    expect(rejects({}, '127.0.0.1', 9978, 'localhost', local)).toMatch(/operator/)
  })

  test.each([
    '127.0.0.1',
    '::1',
    '0.0.0.0',
    '169.254.169.254',
    '169.254.1.1',
    'fe80::1',
    'fe80::1%eth0',
    'fd00:ec2::254',
    '100.100.100.200',
    '168.63.129.16',
    '::ffff:169.254.169.254',
  ])('contains %s only if the owner of the gateway permits it, whatever allow says', (address) => {
    const range = address.replace('::ffff:', '').replace(/%.*/, '')
    expect(rejects({}, address)).toMatch(/: an? (?:loopback|unspecified|link-local|metadata) address$/)
    expect(rejects({ allow: [range, '0.0.0.0/0', '::/0', 'a.example.com', '*.example.com'] }, address)).toMatch(/address$/)
    const permitted = { ...own, permitted: new AddressRanges([range]) }
    expect(rejects({}, address, 443, 'a.example.com', permitted)).toBeUndefined()
    expect(rejects({ deny: [range] }, address, 443, 'a.example.com', permitted)).toMatch(/in deny/)
  })

  test('contains loopback addresses outside of a pod', () => expect(rejects({}, '127.0.0.1', 443, 'x', { ...own, isLoopbackAllowed: true })).toBeUndefined())

  test.each<[string, DynamicForwardProxyBackend, string, string, RegExp | undefined]>([
    ['a host that deny names', { deny: ['a.example.com'] }, 'a.example.com', '192.0.2.1', /in deny/],
    ['a host that deny names, in upper case and with a dot', { deny: ['a.example.com'] }, 'A.Example.COM.', '192.0.2.1', /in deny/],
    ['a host below a domain of deny', { deny: ['*.example.com'] }, 'x.a.example.com', '192.0.2.1', /in deny/],
    ['the domain itself, which its pattern does not match', { deny: ['*.example.com'] }, 'example.com', '192.0.2.1', undefined],
    ['an address of deny', { deny: ['192.0.2.0/24'] }, 'a.example.com', '192.0.2.1', /in deny/],
    ['an address of deny, mapped to IPv6', { deny: ['192.0.2.0/24'] }, 'a.example.com', '::ffff:192.0.2.1', /in deny/],
    ['a host of allow', { allow: ['*.example.com'] }, 'a.example.com', '192.0.2.1', undefined],
    ['an address of allow', { allow: ['192.0.2.0/24'] }, 'other.org', '192.0.2.1', undefined],
    ['a host that allow does not name', { allow: ['*.example.com'] }, 'example.com.evil.org', '192.0.2.1', /not in allow/],
    ['a host of allow at an address of deny', { allow: ['*.example.com'], deny: ['192.0.2.1'] }, 'a.example.com', '192.0.2.1', /in deny/],
  ])('judges %s', (_, backend, host, address, expected) => {
    const reason = rejects(backend, address, 443, host)
    if (expected === undefined) expect(reason).toBeUndefined()
    else expect(reason).toMatch(expected)
  })
})
