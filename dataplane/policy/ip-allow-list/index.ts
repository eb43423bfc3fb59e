import { BlockList } from 'node:net'
import { Ip } from '#api/cel/index.ts'
import type { IPAllowList } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'

/**
 * Admits or rejects requests by the address of the client (traffic.md §8.12). The address is that of the TCP connection or, where the
 * listener accepts the PROXY protocol, the one that it names. `deny` wins over `allow`; a client whose address is unknown is rejected.
 *
 * @throws ProxyError IP_ALLOW_LIST (403), for each rejected request.
 * @example
 * traffic:
 *   ipAllowList:
 *     allow: [10.0.0.0/8, 2001:db8::/32]
 *     deny: [10.9.0.0/16]
 */
export function compileIpAllowList({ allow, deny = [] }: IPAllowList): Policy {
  const allowed = allow && listOf(allow)
  const denied = listOf(deny)
  return withSides({
    request({ connection }) {
      const address = Ip.fromSocket(connection.remoteAddress)
      if (address === undefined) throw new ProxyError('IP_ALLOW_LIST')
      const text = address.toString()
      const family = address.family === 4 ? 'ipv4' : 'ipv6'
      if (denied.check(text, family) || allowed?.check(text, family) === false) throw new ProxyError('IP_ALLOW_LIST')
    },
  })
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/')
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
