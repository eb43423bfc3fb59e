import { compileRanges } from '#api/address.ts'
import { Ip } from '#api/cel/index.ts'
import type { IPAllowList } from '#gen/config/types.ts'
import { withSides, type Policy } from '../../request/exchange/context.ts'
import { ProxyError } from '../../request/exchange/error.ts'

/**
 * Admits or rejects requests by the address of the client (traffic.md §8.12): that of the connection, or the one that the PROXY protocol or
 * `frontend.http.clientIP` names. `deny` wins over `allow`; a client whose address is unknown is rejected.
 *
 * @throws ProxyError IP_ALLOW_LIST (403), for each rejected request.
 * @example
 * traffic:
 *   ipAllowList:
 *     allow: [10.0.0.0/8, 2001:db8::/32]
 *     deny: [10.9.0.0/16]
 */
export function compileIpAllowList({ allow, deny = [] }: IPAllowList): Policy {
  const allowed = allow && compileRanges(allow)
  const denied = compileRanges(deny)
  return withSides({
    request({ connection }) {
      const address = Ip.fromSocket(connection.remoteAddress)
      if (address === undefined) throw new ProxyError('IP_ALLOW_LIST')
      const text = address.toString()
      if (denied(text) || allowed?.(text) === false) throw new ProxyError('IP_ALLOW_LIST')
    },
  })
}
