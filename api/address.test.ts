import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { AddressRanges, isAddressRange, literalAddresses, refuseAddress, refuseHost, type DialRules } from './address.ts'

const pod: DialRules = {
  isLoopbackAllowed: false,
  ports: () => [15_000, 15_020],
  addresses: () => ['10.1.0.5', 'fd00::5'],
  operator: () => ({ addresses: ['10.96.0.7'], port: 9978 }),
}
const machine: DialRules = { ...pod, isLoopbackAllowed: true }

const hex = (high: number, low: number): string => ((high << 8) | low).toString(16)
/** The IPv6 forms of an IPv4 address. */
const forms = (address: string): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  const groups = `${hex(a, b)}:${hex(c, d)}`
  return [`::ffff:${address}`, `::ffff:${groups}`, `::ffff:0:${groups}`, `64:ff9b::${groups}`, `64:ff9b::${address}`, `2002:${groups}::1`]
}

describe('an address that connections may go to', () => {
  test.each([
    ['127.0.0.1', 'a loopback address'],
    ['127.255.255.255', 'a loopback address'],
    ['::1', 'a loopback address'],
    ['0.0.0.0', 'an unspecified address'],
    ['0.1.2.3', 'an unspecified address'],
    ['::', 'an unspecified address'],
    ['169.254.1.1', 'a link-local address'],
    ['fe80::1', 'a link-local address'],
    ['fe80::1%eth0', 'a link-local address'],
    ['febf::1', 'a link-local address'],
    ['169.254.169.254', 'a metadata address'],
    ['169.254.170.2', 'a metadata address'],
    ['fd00:ec2::254', 'a metadata address'],
    ['fd20:ce::254', 'a metadata address'],
    ['100.100.100.200', 'a metadata address'],
    ['168.63.129.16', 'a metadata address'],
    ['224.0.0.1', 'a multicast or reserved address'],
    ['255.255.255.255', 'a multicast or reserved address'],
    ['ff02::1', 'a multicast or reserved address'],
    ['64:ff9b:1::a00:1', 'a translated address'],
    ['example.com', 'not an IP address'],
    ['127.1', 'not an IP address'],
  ])('is not %s in a pod: %s', (address, reason) => expect(refuseAddress(address, 80, pod)).toBe(reason))

  test.each([
    '10.0.0.1',
    '192.168.0.1',
    '172.16.0.1',
    '100.64.0.1',
    '8.8.8.8',
    'fd12::1',
    '2001:4860::8888',
    '64:ff9b::808:808',
    '2002:808:808::1',
    '10.1.0.5',
  ])('is %s in a pod', (address) => expect(refuseAddress(address, 80, pod)).toBeUndefined())

  test('is judged alike in all of its forms', () => {
    const special = fc.constantFrom('127.0.0.1', '169.254.169.254', '169.254.0.9', '100.100.100.200', '224.0.0.1', '0.0.0.7', '168.63.129.16')
    fc.assert(
      fc.property(fc.oneof(special, fc.ipV4()), (address) => {
        const expected = refuseAddress(address, 80, pod)
        for (const form of forms(address)) expect([form, refuseAddress(form, 80, pod)]).toEqual([form, expected])
      }),
    )
  })

  test('is loopback outside of pods, and nothing else that is special', () => {
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(refuseAddress(address, 80, machine)).toBeUndefined()
    for (const address of ['0.0.0.0', '169.254.169.254', 'fe80::1']) expect(refuseAddress(address, 80, machine)).toBeDefined()
  })

  test('is one that the owner of the process permits, in all of its forms', () => {
    const rules = { ...pod, permitted: new AddressRanges(['127.0.0.1', '169.254.169.254/32', 'fe80::/64']) }
    for (const address of ['127.0.0.1', ...forms('127.0.0.1'), '169.254.169.254', 'fe80::1']) expect(refuseAddress(address, 80, rules)).toBeUndefined()
    for (const address of ['127.0.0.2', '169.254.169.253', 'fe80:1::1']) expect(refuseAddress(address, 80, rules)).toBeDefined()
  })

  test.each([pod, machine, { ...pod, permitted: new AddressRanges(['0.0.0.0/0', '::/0']) }])(
    'is never a management port of this machine: rules %#',
    (rules) => {
      for (const address of ['127.0.0.1', '127.8.9.1', '0.0.0.0', '::', '::1', '10.1.0.5', 'fd00::5', ...forms('127.0.0.1'), ...forms('10.1.0.5')])
        for (const port of [15_000, 15_020]) expect(refuseAddress(address, port, rules)).toBe('a port of this gateway or of its operator')
      expect(refuseAddress('10.1.0.6', 15_000, rules)).toBeUndefined()
    },
  )

  test('is not the operator, of whose machine no port is reached unless it is this one or permitted', () => {
    for (const port of [9978, 9092]) expect(refuseAddress('10.96.0.7', port, pod)).toBe('a port of this gateway or of its operator')
    const permitted = { ...pod, permitted: new AddressRanges(['10.96.0.0/16']) }
    expect(refuseAddress('10.96.0.7', 9978, permitted)).toBeDefined()
    expect(refuseAddress('10.96.0.7', 9092, permitted)).toBeUndefined()
    const local = { ...machine, operator: () => ({ addresses: ['127.0.0.1'], port: 9978 }) }
    expect(refuseAddress('127.0.0.1', 9978, local)).toBeDefined()
    expect(refuseAddress('127.0.0.1', 9979, local)).toBeUndefined()
  })
})

describe('a host', () => {
  test.each([
    ['127.0.0.1', ['127.0.0.1']],
    ['127.1', ['127.0.0.1']],
    ['0x7f000001', ['127.0.0.1']],
    ['2130706433', ['127.0.0.1']],
    ['[::1]', ['::1']],
    ['::ffff:10.0.0.1', ['::ffff:10.0.0.1']],
    ['LOCALHOST.', ['127.0.0.1', '::1']],
    ['app.localhost', ['127.0.0.1', '::1']],
    ['notlocalhost', []],
    ['localhost.example', []],
    ['example.com', []],
    ['a b', []],
  ])('%s means addresses without DNS', (host, addresses) => expect(literalAddresses(host)).toEqual(addresses))

  test('is refused if all of its addresses are, and never for a name', () => {
    expect(refuseHost('localhost', 80, pod)).toBe('a loopback address')
    expect(refuseHost('localhost', 80, { ...pod, permitted: new AddressRanges(['::1']) })).toBeUndefined()
    expect(refuseHost('example.com', 80, pod)).toBeUndefined()
    expect(refuseHost('10.0.0.1', 80, pod)).toBeUndefined()
  })
})

test.each(['2001:db8::5efe:7f00:1', '2001:db8:0:0:200:5efe:169.254.169.254', '2001:db8:1:2:0:5efe:0:0'])(
  'the ISATAP address %s is judged as the IPv4 address in it',
  (address) => expect(refuseAddress(address, 80, pod)).toBeDefined(),
)
test.each(['2001:db8::5efe:a00:1', '2001:db8::5efe:7f00:1:1', '2001:db8::1:5efe:7f00:1'])('%s is not refused as ISATAP', (address) =>
  expect(refuseAddress(address, 80, pod)).toBeUndefined(),
)

test('a range is an address with or without a length that fits', () => {
  expect(['10.0.0.1', '10.0.0.0/8', '::/0', 'fd00::/128'].filter((text) => !isAddressRange(text))).toEqual([])
  expect(['', 'x', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/a', '/8'].filter(isAddressRange)).toEqual([])
})
