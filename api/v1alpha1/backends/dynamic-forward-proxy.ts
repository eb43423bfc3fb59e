import { object, set, string, type Definitions } from '../../schema.ts'
import { CIDR } from '../policies/ip-allow-list.ts'

const LABEL = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
const DESTINATION = `^(${CIDR.slice(1, -1)}|(\\*\\.)?${LABEL}(\\.${LABEL})*)$`

export const dynamicForwardProxyDefinitions: Definitions = {
  DynamicForwardProxyBackend: object(
    'Sends each request to the host that its Host header names (for TLS traffic, its SNI). Clients can reach any destination: restrict them with `allow`, or with authorization policies. Ports of the gateway itself and addresses that no backend may have (`upstreams.addresses` of ProxyParameters) are rejected with 403; a request that returns to the gateway with 508.',
    {
      allow: set(
        { $ref: '#/$defs/Destination' },
        'Destinations that are allowed: an address, a range, a host name, or `*.` and a domain. Not set: all.',
        1,
        256,
      ),
      deny: set({ $ref: '#/$defs/Destination' }, 'Destinations that are rejected, even if `allow` contains them.', 1, 256),
    },
  ),
  Destination: string(
    'IPv4 or IPv6 address, a range of them as `address/prefix length`, a host name, or `*.` and a domain, which matches every name below it.',
    {
      minLength: 1,
      maxLength: 253,
      pattern: DESTINATION,
    },
  ),
}
