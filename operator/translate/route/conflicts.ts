import { compareAge } from '../../source/snapshot.ts'
import { fault, joinFaults, type Fault } from '../../model/conditions.ts'
import { coversOf, intersects } from '../common/hostname.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import type { ListenerState } from '../gateway/listener.ts'
import { hostnamesOf, type AnyRoute, type Attachment } from './attach.ts'

/** A route with the listeners that its parentRefs select. */
interface Candidate {
  readonly route: AnyRoute
  /** A route without valid rules is not accepted, so that no other route loses against it. */
  readonly compiled: { readonly rejected?: Fault }
  readonly listeners: ReadonlyMap<GatewayState, ReadonlySet<ListenerState>>
}

/** Why listeners do not accept a route that they match: key of the listener -> fault. */
export type RouteConflicts = ReadonlyMap<string, Fault>

interface Claim {
  readonly route: AnyRoute
  readonly hostname: string
}

/** Hostnames of a listener that routes of one kind have. The first route of a hostname is remembered. */
class Claims {
  readonly #byHostname = new Map<string, Claim>()
  /** Also under the wildcards that cover the hostname. */
  readonly #byCover = new Map<string, Claim>()

  add(hostname: string, route: AnyRoute): void {
    const claim = { route, hostname }
    if (!this.#byHostname.has(hostname)) this.#byHostname.set(hostname, claim)
    for (const cover of coversOf(hostname)) if (!this.#byCover.has(cover)) this.#byCover.set(cover, claim)
  }

  /** A claim that intersects with `hostname`. */
  find(hostname: string): Claim | undefined {
    const wider = coversOf(hostname).find((cover) => this.#byHostname.has(cover))
    return wider === undefined ? this.#byCover.get(hostname) : this.#byHostname.get(wider)
  }
}

/** The hostnames of a route on a listener; '' is any. */
function hostnamesOn(listener: ListenerState, hostnames: readonly string[]): readonly string[] {
  return hostnames.length === 0 ? [listener.hostname ?? ''] : hostnames.filter((hostname) => intersects(listener.hostname, hostname))
}

const describe = (hostname: string): string => (hostname === '' ? 'any hostname' : `hostname ${hostname}`)

function conflict(listener: ListenerState, hostname: string, winner: Claim): Fault {
  const { kind, metadata } = winner.route
  const rival = `${kind} ${metadata.namespace}/${metadata.name}`
  const overlap = hostname === winner.hostname ? `is also of ${rival}` : `overlaps with ${describe(winner.hostname)} of ${rival}`
  return fault(
    'HostnameConflict',
    `listener ${listener.spec.name} does not accept the route: ${describe(hostname)} ${overlap}, which is older or first by name; use another hostname or listener, or one kind for both routes`,
    'PX1117',
  )
}

/**
 * Finds HTTPRoutes and GRPCRoutes that share a hostname of a listener, which accepts one of them: the oldest, then the first by namespace and
 * name (Gateway API, `hostnames` of GRPCRoute), then the HTTPRoute.
 * @param candidates the routes of the Gateway by key
 * @returns the routes that lose, by key
 */
export function findRouteConflicts(gateway: string, candidates: ReadonlyMap<string, Candidate>): ReadonlyMap<string, RouteConflicts> {
  const lost = new Map<string, Map<string, Fault>>()
  const kinds = new Set<string>()
  for (const { route } of candidates.values()) kinds.add(route.kind)
  if (!kinds.has('HTTPRoute') || !kinds.has('GRPCRoute')) return lost
  const claims = { HTTPRoute: new Map<ListenerState, Claims>(), GRPCRoute: new Map<ListenerState, Claims>() }
  for (const [key, { route, compiled, listeners }] of [...candidates].toSorted(([, a], [, b]) => compare(a.route, b.route))) {
    if (route.kind !== 'HTTPRoute' && route.kind !== 'GRPCRoute') continue
    const own = claims[route.kind]
    const rivals = claims[route.kind === 'HTTPRoute' ? 'GRPCRoute' : 'HTTPRoute']
    const all = hostnamesOf(route)
    for (const listener of [...listeners].flatMap(([{ key: parent }, selected]) => (parent === gateway ? [...selected] : []))) {
      const hostnames = hostnamesOn(listener, all)
      const failure = findFault(listener, hostnames, rivals.get(listener))
      if (failure) lost.set(key, (lost.get(key) ?? new Map<string, Fault>()).set(listener.key, failure))
      else if (!compiled.rejected) {
        const known = own.get(listener) ?? new Claims()
        own.set(listener, known)
        for (const hostname of hostnames) known.add(hostname, route)
      }
    }
  }
  return lost
}

const compare = (a: AnyRoute, b: AnyRoute): number => compareAge(a, b) || Number(b.kind === 'HTTPRoute') - Number(a.kind === 'HTTPRoute')

function findFault(listener: ListenerState, hostnames: readonly string[], rivals: Claims | undefined): Fault | undefined {
  for (const hostname of hostnames) {
    const winner = rivals?.find(hostname)
    if (winner) return conflict(listener, hostname, winner)
  }
  return undefined
}

/** The attachment without the listeners that accept another route in place of this one. */
export function withoutConflicts(attachment: Attachment, conflicts: RouteConflicts): Attachment {
  const failure = joinFaults(attachment.listeners.flatMap(({ key }) => conflicts.get(key) ?? []))
  if (!failure) return attachment
  const listeners = attachment.listeners.filter(({ key }) => !conflicts.has(key))
  return { ...attachment, listeners, ...(listeners.length === 0 ? { fault: failure } : { partial: failure }) }
}
