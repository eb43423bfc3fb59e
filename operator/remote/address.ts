import { lookup as lookupName, type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/** Addresses that nothing is fetched from: link-local and cloud metadata services, and addresses that mean no host at all. */
const refused = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 3],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
] as const) {
  refused.addSubnet(net, prefix, 'ipv4')
  // The same address behind NAT64 (RFC 6052). BlockList itself reads the IPv4-mapped form as IPv4.
  refused.addSubnet(`64:ff9b::${net}`, 96 + prefix, 'ipv6')
}
refused.addSubnet('fe80::', 10, 'ipv6')
refused.addSubnet('ff00::', 8, 'ipv6')
refused.addAddress('fd00:ec2::254', 'ipv6')
refused.addAddress('::', 'ipv6')

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Why nothing may be fetched from an IP address, or undefined. */
export function refuseAddress(address: string, isLoopbackAllowed: boolean): string | undefined {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  // A zone index (`fe80::1%eth0`) is not part of the address.
  const bare = address.split('%')[0] ?? ''
  if (refused.check(bare, family)) return `${address} is a link-local, metadata, multicast or unspecified address; nothing is fetched from there`
  if (!isLoopbackAllowed && loopback.check(bare, family)) return `${address} is a loopback address; nothing is fetched from there`
  return undefined
}

/** Resolves names as the system does, and fails when any of the addresses is refused: checked where it is dialled, so that DNS cannot change in between. */
export function createLookup(isLoopbackAllowed: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookupName(hostname, { ...options, all: true }, (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => {
      if (error) return callback(error, [])
      const problem = addresses.map(({ address }) => refuseAddress(address, isLoopbackAllowed)).find((each) => each !== undefined)
      if (problem !== undefined) return callback(new Error(`${hostname}: ${problem}`), [])
      const [first] = addresses
      if (options.all === true || !first) return callback(null, addresses)
      return callback(null, first.address, first.family)
    })
  }
}
