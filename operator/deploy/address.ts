import { withCode } from '#api/messages/code.ts'
import { isIP } from 'node:net'
import { failParameters, type DeployFailure, type DeployGateway } from './types.ts'

/** The address of spec.addresses that is requested of the load balancer, if any (operator.md §2.6); an empty value means an automatic one. */
export function chooseAddress(gateway: DeployGateway): { readonly ok: true; readonly ip?: string } | DeployFailure {
  const addresses = gateway.spec.addresses ?? []
  const unknown = addresses.find(({ type = 'IPAddress' }) => type !== 'IPAddress' && type !== 'Hostname')
  if (unknown)
    return {
      ok: false,
      condition: 'Accepted',
      reason: 'UnsupportedAddress',
      message: withCode(`unknown address kind ${unknown.type}; use IPAddress`, 'PX1018'),
    }

  const ips = addresses.flatMap(({ type = 'IPAddress', value }) => (type === 'IPAddress' && value ? [value] : []))
  const bad = ips.find((value) => isIP(value) === 0)
  if (bad !== undefined) return failParameters(`address ${bad} is not an IP address`, 'PX1019')
  if (ips.length > 1) return failParameters(`multiple addresses: ${ips.join(', ')}; at most one IP address is supported`, 'PX1019')

  const hostname = addresses.find(({ type }) => type === 'Hostname')
  if (hostname) {
    const message = withCode(`address ${hostname.value ?? ''} is a hostname; only an IP address can be assigned`, 'PX1018')
    return { ok: false, condition: 'Programmed', reason: 'AddressNotUsable', message }
  }
  return { ok: true, ...(ips[0] === undefined ? {} : { ip: ips[0] }) }
}
