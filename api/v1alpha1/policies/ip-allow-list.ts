import { atLeastOneOf, object, set, string, type Definitions } from '../../schema.ts'

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const GROUP = '[0-9A-Fa-f]{1,4}'
const IPV6 = [
  `(${GROUP}:){7}${GROUP}`,
  `(${GROUP}:){1,7}:`,
  ...[6, 5, 4, 3, 2, 1].map((before) => `(${GROUP}:){1,${before}}(:${GROUP}){1,${7 - before}}`),
  `:(:${GROUP}){1,7}`,
  '::',
].join('|')
/** An address, or a range with a prefix length. */
export const CIDR = `^(${OCTET}(\\.${OCTET}){3}(/(3[0-2]|[12]?[0-9]))?|(${IPV6})(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)$`

export const ipAllowListDefinitions: Definitions = {
  CIDR: string('IPv4 or IPv6 address, or a range of them as `address/prefix length`: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`.', {
    minLength: 2,
    maxLength: 43,
    pattern: CIDR,
  }),
  IPAllowList: object(
    'Accepts or rejects requests by the address of the client: that of the connection, or the one that `frontend.proxyProtocol` or `frontend.http.clientIP` finds. Rejected requests get a 403 response.',
    {
      allow: set({ $ref: '#/$defs/CIDR' }, 'Addresses of clients that are accepted. Not set: all.', 1, 256),
      deny: set({ $ref: '#/$defs/CIDR' }, 'Addresses of clients that are rejected, even if `allow` contains them.', 1, 256),
    },
    [],
    [atLeastOneOf('allow', 'deny')],
  ),
}
