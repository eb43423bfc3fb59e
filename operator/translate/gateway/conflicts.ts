import { fault } from '../../model/conditions.ts'
import type { ListenerState, Protocol } from './listener.ts'

/** Protocols that can share a port: HTTPS and TLS are distinguished by SNI, the others need the port alone (operator.md §10 case 46). */
type Family = 'HTTP' | 'TLS' | 'TCP'
const familyOf = (protocol: Protocol): Family => (protocol === 'HTTPS' ? 'TLS' : protocol)

/** The listeners that occupy a port. */
interface Claim {
  readonly family: Family
  readonly hostnames: Set<string>
}

function reject(listener: ListenerState, reason: 'HostnameConflict' | 'ProtocolConflict', message: string): void {
  listener.rejected = fault(reason, message, reason === 'ProtocolConflict' ? 'PX1014' : 'PX1015')
  listener.isConflicted = true
}

const describe = ({ port, hostname, protocol }: ListenerState): string =>
  protocol === 'TCP' ? `port ${port}` : `port ${port} with ${hostname === undefined ? 'any hostname' : `hostname ${hostname}`}`

/**
 * Finds listeners that are not distinct. Among a Gateway's own none wins (Gateway API: "MUST NOT pick one conflicting
 * Listener as the winner"); listeners of ListenerSets lose against the Gateway and against earlier sets.
 * @param sets listeners of ListenerSets, the strongest first
 */
export function findConflicts(own: readonly ListenerState[], sets: readonly ListenerState[]): void {
  const claims = new Map<number, Claim>()
  const byPort = Map.groupBy(
    own.filter((listener) => listener.protocol !== undefined),
    (listener) => listener.port,
  )
  for (const [port, listeners] of byPort) {
    const families = new Set(listeners.map((listener) => familyOf(listener.protocol ?? 'HTTP')))
    const byHostname = Map.groupBy(listeners, (listener) => listener.hostname ?? '')
    for (const listener of listeners) {
      const rivals = listeners.filter((each) => each !== listener).map((each) => `${each.spec.name} (${each.spec.protocol})`)
      if (families.size > 1) reject(listener, 'ProtocolConflict', `port ${port} is also used with another protocol: ${rivals.join(', ')}`)
      else if ((byHostname.get(listener.hostname ?? '')?.length ?? 0) > 1) {
        const same = (byHostname.get(listener.hostname ?? '') ?? []).filter((each) => each !== listener).map((each) => each.spec.name)
        reject(listener, 'HostnameConflict', `${describe(listener)} is also taken by listener ${same.join(', ')}`)
      }
    }
    const family = [...families][0]
    if (family) claims.set(port, { family, hostnames: new Set(byHostname.keys()) })
  }
  for (const listener of sets) {
    if (listener.protocol === undefined) continue
    const family = familyOf(listener.protocol)
    const claim = claims.get(listener.port)
    if (!claim) claims.set(listener.port, { family, hostnames: new Set([listener.hostname ?? '']) })
    else if (claim.family !== family) reject(listener, 'ProtocolConflict', `port ${listener.port} is already used with another protocol`)
    else if (claim.hostnames.has(listener.hostname ?? '')) reject(listener, 'HostnameConflict', `${describe(listener)} is already taken`)
    else claim.hostnames.add(listener.hostname ?? '')
  }
}
