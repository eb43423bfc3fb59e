import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Ip } from '#api/cel/index.ts'
import type { DynamicForwardProxyBackend } from '#gen/config/types.ts'
import type { ConnectGuard } from '../upstream/types.ts'

/** What a dynamic destination must know of the process that it runs in. */
export interface OwnProcess {
  /** Ports that this process listens on. */
  ports(): Iterable<number>
  /** Where the operator listens: its IP addresses and its port. Undefined: there is none. */
  operator(): { readonly addresses: Iterable<string>; readonly port: number } | undefined
  /** In a pod, loopback addresses are those of sidecars and of this process. */
  readonly isInPod: boolean
  /** Addresses of this machine other than loopback; default: those of its network interfaces. */
  readonly addresses?: () => Iterable<string>
}

/** Ranges that no client should reach by naming them. */
const loopback = ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128']
const linkLocal = ['169.254.0.0/16', 'fe80::/10']
/** Metadata services outside of the link-local ranges: AWS over IPv6, Alibaba Cloud, Azure. */
const metadata = ['fd00:ec2::254/128', '100.100.100.200/32', '168.63.129.16/32']

/**
 * Judges the destinations that clients of a dynamicForwardProxy backend name (traffic.md §13). In this order: ports of this process and of the
 * operator are rejected, then `deny`, then link-local, metadata and, in a pod, loopback addresses unless a range of `allow` lies within
 * them, then everything that a given `allow` does not contain.
 */
export function compileReach({ allow, deny }: DynamicForwardProxyBackend, own: OwnProcess): ConnectGuard {
  const denied = compileList(deny ?? [])
  const allowed = allow && compileList(allow)
  const special = [...(own.isInPod ? loopback : []), ...linkLocal, ...metadata]
  const isSpecial = blockList(special)
  const lifted = blockList((allow ?? []).filter((entry) => isRange(entry) && special.some((range) => isWithin(entry, range))))
  const loopbacks = blockList(loopback)

  const isOwnAddress = (ip: Ip): boolean => contains(loopbacks, ip) || [...(own.addresses ?? interfaceAddresses)()].some((text) => ip.equals(text))
  const isOwnPort = (ip: Ip, port: number): boolean => {
    const operator = own.operator()
    const isOperator = operator !== undefined && [...operator.addresses].some((text) => ip.equals(Ip.fromSocket(text)?.toString() ?? ''))
    // On this machine the operator is one of many programs; elsewhere its address is its own.
    if (isOperator && (port === operator.port || !isOwnAddress(ip))) return true
    return [...own.ports()].includes(port) && isOwnAddress(ip)
  }

  return {
    key: JSON.stringify([allow, deny]),
    reject(host, address, port) {
      const at = `${host}:${port} (${address})`
      const ip = Ip.fromSocket(address)
      if (ip === undefined) return `${at}: not an IP address`
      if (isOwnPort(ip, port)) return `${at}: a port of this gateway or of its operator`
      const name = host.toLowerCase().replace(/\.$/, '')
      if (denied(name, ip)) return `${at}: in deny`
      if (contains(isSpecial, ip) && !contains(lifted, ip))
        return `${at}: a loopback, link-local or metadata address; a range of allow within it would allow it`
      if (allowed?.(name, ip) === false) return `${at}: not in allow`
      return undefined
    },
  }
}

/** Tells whether a name or its address is in a list. */
function compileList(entries: readonly string[]): (name: string, ip: Ip) => boolean {
  const ranges = blockList(entries.filter(isRange))
  const names = entries.filter((entry) => !isRange(entry)).map((entry) => entry.toLowerCase())
  const exact = new Set(names.filter((name) => !name.startsWith('*.')))
  const suffixes = names.filter((name) => name.startsWith('*.')).map((name) => name.slice(1))
  return (name, ip) => exact.has(name) || suffixes.some((suffix) => name.endsWith(suffix)) || contains(ranges, ip)
}

const isRange = (entry: string): boolean => isIP(entry.split('/', 1)[0] ?? '') !== 0

function isWithin(range: string, outer: string): boolean {
  const [address = '', prefix] = range.split('/')
  const [, outerPrefix] = outer.split('/')
  const ip = Ip.parse(address)
  return ip !== undefined && contains(blockList([outer]), ip) && Number(prefix ?? (ip.family === 4 ? 32 : 128)) >= Number(outerPrefix)
}

function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}

const contains = (list: BlockList, ip: Ip): boolean => list.check(ip.toString(), ip.family === 4 ? 'ipv4' : 'ipv6')

const interfaceAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((entries = []) => entries.map(({ address }) => address.replace(/%.*$/, '')))
