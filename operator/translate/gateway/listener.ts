import { GATEWAY_GROUP, RESERVED_PORTS } from '#api/names.ts'
import type { ListenerTls, Secret as SecretMessage } from '#gen/config/types.ts'
import type { ListenerSpec } from '../../source/gateway-api.ts'
import type { Gateway, ListenerSet } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition, conditionOf, fault, faultBy, type Fault } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import { lowerHostname } from '../common/hostname.ts'
import { describeTlsOptions } from '../common/tls-options.ts'
import { resolveServerTls, type FrontendSource } from './tls.ts'
import type { Condition } from '../../model/translation.ts'

type RouteKind = 'HTTPRoute' | 'GRPCRoute' | 'TLSRoute' | 'TCPRoute'
export type Protocol = 'HTTP' | 'HTTPS' | 'TLS' | 'TCP'

/** A listener of a Gateway or ListenerSet, with its faults. Faults and `attached` are filled in during translation. */
export interface ListenerState {
  readonly owner: Gateway | ListenerSet
  readonly spec: ListenerSpec
  /** Key of the Listener message. */
  readonly key: string
  readonly port: number
  /** Absent when it is not one of ours. */
  readonly protocol: Protocol | undefined
  readonly hostname: string | undefined
  readonly supportedKinds: readonly RouteKind[]
  readonly tls?: ListenerTls
  /** Certificates and trust anchors that `tls` names. */
  readonly secrets: readonly SecretMessage[]
  /** The listener cannot exist as written: it is not programmed and accepts no routes. */
  rejected?: Fault
  /** Set with `rejected` when another listener is the reason. */
  isConflicted: boolean
  /** It is programmed, but handshakes fail. */
  readonly broken?: Fault
  /** Accepted=False although programmed: no client certificate can be verified. */
  readonly unacceptable?: Fault
  readonly unresolved?: Fault
  /** Routes with an accepted parentRef for this listener. */
  attached: number
}

const protocols: Readonly<Record<string, { kinds: readonly RouteKind[]; defaultPort?: number }>> = {
  HTTP: { kinds: ['HTTPRoute', 'GRPCRoute'], defaultPort: 80 },
  HTTPS: { kinds: ['HTTPRoute', 'GRPCRoute'], defaultPort: 443 },
  TLS: { kinds: ['TLSRoute'] },
  TCP: { kinds: ['TCPRoute'] },
}

function kindsOf(spec: ListenerSpec): readonly RouteKind[] {
  const kinds = protocols[spec.protocol]?.kinds ?? []
  return spec.protocol === 'TLS' && spec.tls?.mode !== 'Passthrough' ? [...kinds, 'TCPRoute'] : kinds
}

function rejectionOf(spec: ListenerSpec, port: number | undefined): Fault | undefined {
  if (!Object.hasOwn(protocols, spec.protocol)) {
    const upper = spec.protocol.toUpperCase()
    const hint = Object.hasOwn(protocols, upper) ? `; write ${upper}` : '; use HTTP, HTTPS, TLS or TCP'
    return fault('UnsupportedProtocol', `protocol ${spec.protocol} is not supported${hint}`, 'PX1009')
  }
  if (port === undefined) return fault('UnsupportedProtocol', `port is not set and protocol ${spec.protocol} has no default port; set port`, 'PX1010')
  if (RESERVED_PORTS.includes(port)) {
    return fault('PortUnavailable', `port ${port} is reserved for the data plane itself (${RESERVED_PORTS.join(', ')}); use another port`, 'PX1011')
  }
  return undefined
}

/** Reads one listener. `frontend` is the client certificate validation of its Gateway. */
export function readListener(context: Context, owner: Gateway | ListenerSet, spec: ListenerSpec, frontend: FrontendSource): ListenerState {
  const port = spec.port || protocols[spec.protocol]?.defaultPort
  const rejected = rejectionOf(spec, port)
  const available = kindsOf(spec)
  const wanted = spec.allowedRoutes.kinds ?? []
  const isSupported = (each: { group: string; kind: string }): boolean => each.group === GATEWAY_GROUP && available.some((kind) => kind === each.kind)
  const supportedKinds = wanted.length === 0 ? available : available.filter((kind) => wanted.some((each) => each.group === GATEWAY_GROUP && each.kind === kind))
  const unsupported = rejected?.reason === 'UnsupportedProtocol' ? [] : wanted.filter((each) => !isSupported(each))
  const badKinds =
    unsupported.length === 0
      ? undefined
      : fault(
          'InvalidRouteKinds',
          `Invalid route kinds: protocol ${spec.protocol} does not take routes of kind ${unsupported.map((each) => (each.group === GATEWAY_GROUP ? each.kind : `${each.group}/${each.kind}`)).join(', ')}; it takes ${available.join(', ')}`,
          'PX1012',
        )
  const server =
    rejected || spec.tls === undefined || !(spec.protocol === 'HTTPS' || spec.protocol === 'TLS')
      ? undefined
      : resolveServerTls(context, owner, spec, spec.tls, port ?? 0, frontend)
  const unresolved = server?.unresolved ?? badKinds
  // HTTPS without a tls section cannot be served; never in plaintext.
  const missing =
    !rejected && spec.tls === undefined && (spec.protocol === 'HTTPS' || spec.protocol === 'TLS')
      ? fault('Invalid', 'tls is not set; set tls.certificateRefs', 'PX1013')
      : undefined
  const broken = server?.broken ?? missing
  return {
    owner,
    spec,
    key: owner.kind === 'Gateway' ? `${keyOf(owner)}.${spec.name}` : `listenerset/${keyOf(owner)}/${spec.name}`,
    port: port ?? 0,
    protocol: rejected ? undefined : (spec.protocol as Protocol),
    hostname: spec.protocol === 'TCP' ? undefined : lowerHostname(spec.hostname),
    supportedKinds,
    secrets: server?.messages ?? [],
    isConflicted: false,
    attached: 0,
    ...(server ? { tls: server.tls } : missing ? { tls: { mode: 'Terminate' as const, certificates: [] } } : {}),
    ...(rejected ? { rejected } : {}),
    ...(broken ? { broken } : {}),
    ...(server?.unacceptable ? { unacceptable: server.unacceptable } : {}),
    ...(unresolved ? { unresolved } : missing ? { unresolved: faultBy('InvalidCertificateRef', missing) } : {}),
  }
}

/** Accepted=False of the listener, whatever the cause. */
export const notAcceptedOf = (listener: ListenerState): Fault | undefined => listener.rejected ?? listener.unacceptable
/** Programmed=False of the listener. A conflict has the same reason on all conditions; otherwise it is Invalid. */
export function notProgrammedOf(listener: ListenerState): Fault | undefined {
  if (listener.isConflicted) return listener.rejected
  const cause = listener.rejected ?? listener.unacceptable ?? listener.broken
  return cause && faultBy('Invalid', cause)
}

/** `status.listeners[]` entry of a Gateway or ListenerSet. */
export function listenerStatus(listener: ListenerState): object {
  const generation = listener.owner.metadata.generation
  const fine = 'No errors found'
  const conditions: Condition[] = [
    conditionOf('Accepted', notAcceptedOf(listener), 'Accepted', fine, generation),
    listener.isConflicted && listener.rejected
      ? condition('Conflicted', true, listener.rejected.reason, listener.rejected.message, generation)
      : condition('Conflicted', false, 'NoConflicts', fine, generation),
    conditionOf('Programmed', notProgrammedOf(listener), 'Programmed', fine, generation),
    conditionOf('ResolvedRefs', listener.unresolved, 'ResolvedRefs', fine, generation),
    ...(notAcceptedOf(listener)
      ? []
      : describeTlsOptions('tls.options', listener.spec.tls?.options, 'versions and cipher suites are set by frontend.tls of a ProxyPolicy', generation)),
  ]
  return {
    name: listener.spec.name,
    supportedKinds: listener.supportedKinds.map((kind) => ({ group: GATEWAY_GROUP, kind })),
    attachedRoutes: listener.attached,
    conditions,
  }
}
