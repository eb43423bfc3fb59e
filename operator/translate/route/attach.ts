import { withoutCodes } from '#api/messages/code.ts'
import { GATEWAY_GROUP } from '#api/names.ts'
import type { ParentRef } from '../../source/gateway-api.ts'
import { keyOf, type GRPCRoute, type HTTPRoute, type TCPRoute, type TLSRoute } from '../../source/objects.ts'
import { fault, faultBy, type Fault } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { lowerHostname, matchesListener } from '../common/hostname.ts'
import type { ListenerState } from '../gateway/listener.ts'
import { admitsNamespace } from '../../model/selectors.ts'

export type AnyRoute = HTTPRoute | GRPCRoute | TLSRoute | TCPRoute

/** A parent that routes can name: a Gateway of this controller, or a ListenerSet of one. */
interface Parent {
  readonly gateway: GatewayState
  readonly listeners: readonly ListenerState[]
  /** The ListenerSet is not allowed by its Gateway. */
  readonly refused?: Fault
}

/** `<kind>/<namespace>/<name>` -> parent. */
export type Parents = Lookup<Parent>

export function indexParents(gateways: readonly GatewayState[]): ReadonlyMap<string, Parent> {
  const parents = new Map<string, Parent>()
  for (const gateway of gateways) {
    parents.set(`Gateway/${gateway.key}`, { gateway, listeners: gateway.listeners })
    for (const set of gateway.sets)
      parents.set(`ListenerSet/${set.key}`, { gateway, listeners: set.listeners, ...(set.refused ? { refused: set.refused } : {}) })
  }
  return parents
}

/** The outcome of one parentRef of a route. */
export interface Attachment {
  /** As in the spec, with the namespace filled in. */
  readonly parentRef: ParentRef
  readonly gateway: GatewayState
  readonly listeners: readonly ListenerState[]
  readonly fault?: Fault
}

/** Lower-case hostnames of a route. */
export function hostnamesOf(route: AnyRoute): string[] {
  const hostnames = 'hostnames' in route.spec ? (route.spec.hostnames ?? []) : []
  return hostnames.flatMap((hostname) => lowerHostname(hostname) ?? [])
}

/** `status.parents` of a route has room for as many. */
const MAX_PARENTS = 32

/** One entry for each parentRef that names a parent of this controller, and for each Gateway of it that `useDefaultGateways` refers to. */
export function attach(context: Context, route: AnyRoute, parents: Parents): Attachment[] {
  const seen = new Set<string>()
  const attachments = (route.spec.parentRefs ?? []).flatMap((ref) => {
    if (ref.group !== GATEWAY_GROUP || (ref.kind !== 'Gateway' && ref.kind !== 'ListenerSet')) return []
    const parentRef = { ...ref, namespace: ref.namespace ?? route.metadata.namespace }
    const id = `${ref.kind}/${parentRef.namespace}/${ref.name}`
    const parent = parents.get(id)
    const entry = `${id}/${ref.sectionName ?? ''}/${ref.port ?? ''}`
    if (!parent || seen.has(entry)) return []
    seen.add(entry)
    return [attachTo(context, route, parentRef, parent)]
  })
  return [...attachments, ...refuseDefaults(context, route, parents, attachments)].slice(0, MAX_PARENTS)
}

/** Default Gateways are not supported (operator.md §4.5): each says so, except those that the route names. */
function refuseDefaults({ snapshot }: Context, { spec }: AnyRoute, parents: Parents, named: readonly Attachment[]): Attachment[] {
  if (spec.useDefaultGateways !== 'All') return []
  return snapshot.list('Gateway').flatMap((object): Attachment[] => {
    if (object.spec.defaultScope !== 'All') return []
    const gateway = parents.get(`Gateway/${keyOf(object)}`)?.gateway
    if (!gateway || named.some((attachment) => attachment.gateway === gateway)) return []
    const { namespace, name } = object.metadata
    const message = `useDefaultGateways is not supported and has no effect: to be served by Gateway ${namespace}/${name}, name it in parentRefs`
    return [
      { parentRef: { group: GATEWAY_GROUP, kind: 'Gateway', namespace, name }, gateway, listeners: [], fault: fault('UnsupportedValue', message, 'PX1116') },
    ]
  })
}

/** How far a route got with a listener; the furthest explains best why no listener accepted it. */
const stages = { kind: 1, hostname: 2, namespace: 3 }

function attachTo(context: Context, route: AnyRoute, parentRef: ParentRef, parent: Parent): Attachment {
  const refuse = (failure: Fault): Attachment => ({ parentRef, gateway: parent.gateway, listeners: [], fault: failure })
  if (parent.refused) return refuse(faultBy('NoMatchingParent', parent.refused, `ListenerSet ${parentRef.namespace}/${parentRef.name} is not accepted: `))
  const named = parent.listeners.filter((listener) => parentRef.sectionName === undefined || listener.spec.name === parentRef.sectionName)
  if (named.length === 0) return refuse(fault('NoMatchingParent', `sectionName "${parentRef.sectionName ?? ''}" not found`, 'PX1101'))
  const candidates = named.filter((listener) => parentRef.port === undefined || listener.port === parentRef.port)
  if (candidates.length === 0) return refuse(fault('NoMatchingParent', `port ${parentRef.port} not found`, 'PX1102'))
  const live = candidates.filter((listener) => !listener.isConflicted && listener.rejected?.reason !== 'PortUnavailable')
  if (live.length === 0)
    return refuse(
      fault(
        'NoMatchingParent',
        `no listener is accepted: ${candidates.map((listener) => `${listener.spec.name}: ${withoutCodes(listener.rejected?.message ?? '')}`).join('; ')}`,
        'PX1103',
      ),
    )

  const hostnames = hostnamesOf(route)
  const { namespace } = route.metadata
  let stage = 0
  const listeners = live.filter((listener) => {
    const reached = !listener.supportedKinds.includes(route.kind)
      ? stages.kind
      : !matchesListener(listener.hostname, hostnames)
        ? stages.hostname
        : !admitsNamespace(context.snapshot, listener.spec.allowedRoutes.namespaces, listener.owner.metadata.namespace, namespace)
          ? stages.namespace
          : undefined
    stage = Math.max(stage, reached ?? 0)
    return reached === undefined
  })
  if (listeners.length > 0) return { parentRef, gateway: parent.gateway, listeners }
  if (stage === stages.kind)
    return refuse(fault('NotAllowedByListeners', `kind ${route.kind} is not allowed by ${live.map((listener) => listener.spec.name).join(', ')}`, 'PX1104'))
  if (stage === stages.namespace)
    return refuse(fault('NotAllowedByListeners', `namespace ${namespace} is not allowed by the listener's allowedRoutes.namespaces`, 'PX1105'))
  return refuse(fault('NoMatchingListenerHostname', `no listener has a hostname that overlaps with ${hostnames.join(', ')}`, 'PX1106'))
}
