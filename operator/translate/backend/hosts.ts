import { AddressRanges, literalAddresses, refuseHost, type DialRules } from '#api/address.ts'
import { listHosts, type BackendHost } from '#api/backend-hosts.ts'
import { withCode } from '#api/messages/code.ts'
import { RESERVED_PORTS } from '#api/names.ts'
import type { Backend } from '#gen/config/types.ts'
import type { Service } from '../../source/objects.ts'
import type { BackendTarget } from '../common/backend-ref.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { keysOf } from './servers.ts'

/** A backend in the config's form, and the Gateways that reach it. */
interface Reached {
  readonly message?: Backend
  readonly gateways: ReadonlySet<GatewayState>
}

/** Hosts whose addresses need no DNS and are refused by data planes (traffic.md §13.2). */
export function findRefusedHosts({ message, gateways }: Reached): string[] {
  if (message === undefined || gateways.size === 0) return []
  return listHosts(message).flatMap((place) => {
    if (literalAddresses(place.host).length === 0) return []
    const refusing = new Set([...gateways].filter(({ upstreams }) => upstreams && refuseHost(place.host, place.port, upstreams.rules) !== undefined))
    const [first] = refusing
    if (first?.upstreams === undefined) return []
    const reason = refuseHost(place.host, place.port, first.upstreams.rules) ?? ''
    return describeRefusal(place, reason, `Gateways ${keysOf(refusing).join(', ')} do`)
  })
}

/** What pods may connect to, without what is known of one pod only. */
const rulesInPods = (permitted: Iterable<string>): DialRules => ({
  isLoopbackAllowed: false,
  permitted: new AddressRanges(permitted),
  ports: () => RESERVED_PORTS,
  addresses: () => [],
})

/** Hosts that are refused in pods only, unless `addresses` permit them: loopback addresses. */
export function findHostsRefusedInPods(backend: Parameters<typeof listHosts>[0], addresses: Iterable<string>): string[] {
  const pod = rulesInPods(addresses)
  return listHosts(backend).flatMap((place) => {
    const reason = refuseHost(place.host, place.port, pod)
    if (reason === undefined || refuseHost(place.host, place.port, { ...pod, isLoopbackAllowed: true }) !== undefined) return []
    return describeRefusal(place, reason, 'data planes in pods do')
  })
}

/** An ExternalName Service whose name is an address that is refused in pods, unless `addresses` permit it. */
export function findExternalNameRefusedInPods({ type, externalName = '', ports = [] }: Service['spec'], addresses: Iterable<string>): string | undefined {
  if (type !== 'ExternalName' || literalAddresses(externalName).length === 0) return undefined
  const pod = rulesInPods(addresses)
  for (const { port } of ports.length === 0 ? [{ port: 80 }] : ports) {
    const reason = refuseHost(externalName, port, pod)
    const place = { path: 'externalName', host: externalName, port, section: '', policies: undefined, identity: undefined }
    if (reason !== undefined) return describeRefusal(place, reason, 'data planes in pods do')
  }
  return undefined
}

/** ExternalName Services of a route whose name is an address that the data planes of a Gateway refuse (traffic.md §13.2). */
export function findRefusedExternalNames(targets: readonly BackendTarget[], gateway: GatewayState): string[] {
  const rules = gateway.upstreams?.rules
  const found = targets.flatMap(({ key, port = 80, externalName }) => {
    if (rules === undefined || externalName === undefined || literalAddresses(externalName).length === 0) return []
    const reason = refuseHost(externalName, port, rules)
    const place = { path: `externalName of Service ${key}`, host: externalName, port, section: '', policies: undefined, identity: undefined }
    return reason === undefined ? [] : describeRefusal(place, reason, `Gateways ${gateway.key} do`)
  })
  return [...new Set(found)]
}

/** `gateways`: what refuses it, as `Gateways a, b do`. */
function describeRefusal({ path, host, port }: BackendHost, reason: string, gateways: string): string {
  const [address = host] = literalAddresses(host)
  const what = `${path}: requests to ${host}:${port} fail with 503, because it is ${reason}`
  // No parameter permits these.
  if (!reason.endsWith(' address')) return withCode(`${what}; use another port`, 'PX1361')
  const fix = `use another host, or add ${address} to spec.upstreams.addresses in the ProxyParameters of the Gateway or of its class`
  return withCode(`${what}, which ${gateways} not permit; ${fix}`, 'PX1361')
}
