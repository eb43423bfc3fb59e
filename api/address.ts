import { BlockList, isIP } from 'node:net'

/** Why an address is no destination by default. */
type AddressKind = 'loopback' | 'unspecified' | 'link-local' | 'metadata' | 'multicast or reserved' | 'translated'

/**
 * Addresses that no object of a user may lead to: they mean this machine, its link, or the platform that it runs on. A table, so that the data plane
 * and the operator judge alike.
 */
const special: Readonly<Record<AddressKind, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  // Linux connects them to this machine.
  unspecified: ['0.0.0.0/8', '::/128'],
  // AWS instances, ECS, EKS over IPv4; AWS over IPv6; Alibaba Cloud; Azure; Oracle Cloud; Google Cloud over IPv6.
  metadata: [
    '169.254.169.254/32',
    '169.254.170.0/24',
    'fd00:ec2::/32',
    '100.100.100.200/32',
    '168.63.129.16/32',
    '192.0.0.192/32',
    'fd00:c1::a9fe:a9fe/128',
    'fd20:ce::254/128',
  ],
  'link-local': ['169.254.0.0/16', 'fe80::/10', 'fec0::/10'],
  'multicast or reserved': ['224.0.0.0/3', 'ff00::/8'],
  // NAT64 of a network's own (RFC 8215) and Teredo: where they end cannot be told from the address.
  translated: ['64:ff9b:1::/48', '2001::/32'],
}

/** Whether a text is an address, or a range of them as `address/prefix length`. */
export function isAddressRange(text: string): boolean {
  const [net = '', bits, ...rest] = text.split('/')
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(net)] ?? -1
  return most >= 0 && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most))
}

/** Whether an address is in one of the ranges as they are written: an IPv4 address within an IPv6 one is not. Ranges are valid. */
export function compileRanges(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return (address) => list.check(address, address.includes(':') ? 'ipv6' : 'ipv4')
}

/** A set of addresses, with the IPv6 forms of those that are IPv4. */
export class AddressRanges {
  readonly #list = new BlockList()

  /** @param ranges addresses, with `/<bits>` or without */
  constructor(ranges: Iterable<string>) {
    for (const range of ranges) this.#add(range)
  }

  has(address: string): boolean {
    // A zone (`fe80::1%eth0`) is not part of the address.
    const bare = address.split('%', 1)[0] ?? ''
    return this.#list.check(bare, isIP(bare) === 6 ? 'ipv6' : 'ipv4')
  }

  #add(range: string): void {
    const [net = '', prefix] = range.split('/')
    const bits = Number(prefix ?? (isIP(net) === 6 ? 128 : 32))
    if (isIP(net) === 6) return this.#list.addSubnet(net, bits, 'ipv6')
    // BlockList itself reads the IPv4-mapped form (::ffff:0:0/96) as IPv4.
    this.#list.addSubnet(net, bits, 'ipv4')
    // IPv4-compatible (RFC 4291), translated by SIIT (RFC 2765), NAT64 (RFC 6052).
    for (const form of ['::', '::ffff:0:', '64:ff9b::']) this.#list.addSubnet(`${form}${net}`, 96 + bits, 'ipv6')
    // 6to4 (RFC 3056).
    const [a = 0, b = 0, c = 0, d = 0] = net.split('.').map(Number)
    this.#list.addSubnet(`2002:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}::`, 16 + bits, 'ipv6')
  }
}

const kinds = Object.entries(special).map(([kind, ranges]) => [kind as AddressKind, new AddressRanges(ranges)] as const)

const kindOf = (address: string): AddressKind | undefined => (isIP(address) === 0 ? undefined : kinds.find(([, ranges]) => ranges.has(address))?.[0])

/** The IPv4 address that an ISATAP address of any prefix is tunnelled to (RFC 5214). */
function isatapTarget(address: string): string | undefined {
  if (!/5efe/i.test(address)) return undefined
  const canonical = URL.parse(`http://[${address.split('%', 1)[0]}]`)?.hostname ?? ''
  const [found, high = '0', low = '0'] = /(?::|:0|:200):5efe:(?:([0-9a-f]{1,4}):([0-9a-f]{1,4})|:)\]$/.exec(canonical) ?? []
  if (found === undefined) return undefined
  const bits = (Number.parseInt(high, 16) << 16) | Number.parseInt(low, 16)
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.')
}

/**
 * The addresses that a host means without DNS: as the system reads numbers (`127.1`, `0x7f000001`, `2130706433`), and the loopback addresses for `localhost` and
 * the names under it (RFC 6761). Empty: the addresses are known when a connection is opened.
 */
export function literalAddresses(host: string): readonly string[] {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) !== 0) return [bare]
  const name = URL.parse(`http://${bare}`)?.hostname.replace(/\.$/, '') ?? ''
  if (isIP(name) !== 0) return [name]
  return /^(?:.*\.)?localhost$/.test(name) ? ['127.0.0.1', '::1'] : []
}

/** Why no connection may be opened to a host, whatever DNS responds; undefined: it may, or its addresses decide. */
export function refuseHost(host: string, port: number, rules: DialRules): string | undefined {
  const refusals = literalAddresses(host).map((address) => refuseAddress(address, port, rules))
  return refusals.every((reason) => reason !== undefined) ? refusals[0] : undefined
}

/** The process that connects, and what its owner permits. */
export interface DialRules {
  /** Where upstreams run on the same machine, loopback addresses are destinations. */
  readonly isLoopbackAllowed: boolean
  /** Addresses that the owner of the process permits although they are special. */
  readonly permitted?: AddressRanges | undefined
  /** Ports of this process that nothing may lead to, permitted or not. */
  ports(): Iterable<number>
  /** Addresses of this machine other than loopback. */
  addresses(): Iterable<string>
  /** The operator: its IP addresses and its port. Undefined: there is none, or it is this process. */
  operator?(): { readonly addresses: Iterable<string>; readonly port: number } | undefined
}

/**
 * Why no connection may be opened to an IP address on behalf of a user's object; undefined: it may. Every connection of the data plane and of the
 * operator for such an object asks this function, with the address that it then connects to (traffic.md §13.2).
 */
export function refuseAddress(address: string, port: number, rules: DialRules): string | undefined {
  if (isIP(address) === 0) return 'not an IP address'
  const kind = kindOf(address) ?? kindOf(isatapTarget(address) ?? '')
  if (isOwnPort(address, kind, port, rules)) return 'a port of this gateway or of its operator'
  if (kind === undefined || (kind === 'loopback' && rules.isLoopbackAllowed) || rules.permitted?.has(address) === true) return undefined
  return `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind} address`
}

function isOwnPort(address: string, kind: AddressKind | undefined, port: number, rules: DialRules): boolean {
  const isOwn = (): boolean => kind === 'loopback' || kind === 'unspecified' || new AddressRanges(rules.addresses()).has(address)
  for (const own of rules.ports()) if (own === port) return isOwn()
  const operator = rules.operator?.()
  if (operator === undefined || !new AddressRanges(operator.addresses).has(address)) return false
  // On this machine the operator is one of many programs; elsewhere its address is its own, unless the owner of the process knows better.
  return port === operator.port || (!isOwn() && rules.permitted?.has(address) !== true)
}
