import { compileRanges } from '#api/address.ts'
import { Ip } from '#api/cel/index.ts'
import type { ClientIP } from '#gen/config/types.ts'
import type { HeaderList } from '../http/headers.ts'

/** The address of a client, and its port or 0. */
interface ClientAddress {
  readonly address: string
  readonly port: number
}

/** Compiled `frontend.http.clientIP`. */
export interface ClientIpRules {
  /** Lower case. */
  readonly header: string
  readonly failsOpen: boolean
  /** Whether the header may come from this peer. */
  trusts(peer: string): boolean
  /** The client that a trusted peer names; undefined: the peer itself. 'invalid': an entry that decides is no address. */
  find(headers: HeaderList): ClientAddress | 'invalid' | undefined
}

/** Entries that are read at most: no request comes through more trusted proxies. */
const MAX_ENTRIES = 64

/** Compiles the rules that find the client in a header (traffic.md §10). */
export function compileClientIp({ header = 'X-Forwarded-For', trustedHops, trustedCIDRs, failureMode }: ClientIP): ClientIpRules {
  const name = header.toLowerCase()
  const isProxy = trustedCIDRs && compileRanges(trustedCIDRs)
  const read = name === 'forwarded' ? parseForwarded : parseNode
  const isList = name === 'forwarded' || name === 'x-forwarded-for'
  return {
    header: name,
    failsOpen: failureMode === 'FailOpen',
    trusts(peer) {
      const address = Ip.fromSocket(peer)?.toString()
      return isProxy === undefined || (address !== undefined && isProxy(address))
    },
    find(headers) {
      const values = headers.getAll(name)
      if (!isList) return (values.length === 1 && parseNode(values[0] ?? '')) || 'invalid'
      let count = 0
      let last: ClientAddress | undefined
      for (const entry of fromRight(values)) {
        if (++count > MAX_ENTRIES) return 'invalid'
        if (trustedHops !== undefined && count < trustedHops) continue
        last = read(entry)
        if (last === undefined) return 'invalid'
        if (trustedHops !== undefined || isProxy?.(last.address) !== true) return last
      }
      // Only trusted proxies: the first of them sent the request itself.
      return last
    },
  }
}

/**
 * Entries of the lines of a list, the last one first: proxies add theirs at the end, and what clients wrote before must not change how
 * these are read. Empty elements do not count (RFC 9110 §5.6.1).
 */
function* fromRight(values: readonly string[]): Generator<string> {
  for (const value of values.toReversed()) {
    for (let end = value.length; end >= 0;) {
      const comma = end === 0 ? -1 : value.lastIndexOf(',', end - 1)
      const entry = value.slice(comma + 1, end).trim()
      if (entry !== '') yield entry
      end = comma
    }
  }
}

/** The parameter `for` of an element of `Forwarded` (RFC 7239 §4). */
function parseForwarded(element: string): ClientAddress | undefined {
  const nodes = element.split(';').flatMap((pair) => /^\s*for\s*=\s*(?:"([^"\\]*)"|([^"]*))\s*$/i.exec(pair)?.slice(1) ?? [])
  const [node, another] = nodes.filter((value) => value !== undefined)
  return node === undefined || another !== undefined ? undefined : parseNode(node)
}

/** An address in any notation of proxies: with a port, IPv6 in brackets or not, IPv4 in IPv6. No zone: it means nothing on another machine. */
function parseNode(text: string): ClientAddress | undefined {
  const [, bracketed, bracketedPort, plain, plainPort] = /^(?:\[([^\]]*)\](?::(\w+))?|([^:[\]]+)(?::(\w+))?)$/.exec(text.trim()) ?? []
  const host = bracketed ?? plain ?? text.trim()
  const port = portOf(bracketedPort ?? plainPort)
  if (port === undefined || host.includes('%') || (bracketed !== undefined && !bracketed.includes(':'))) return undefined
  const address = Ip.fromSocket(host)?.toString()
  return address === undefined ? undefined : { address, port }
}

/** A port may be hidden (RFC 7239 §6.3). */
function portOf(text = '0'): number | undefined {
  if (/^_\w+$/.test(text)) return 0
  return /^\d{1,5}$/.test(text) && Number(text) < 65_536 ? Number(text) : undefined
}
