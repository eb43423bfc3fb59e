import type { Listener } from '#gen/config/types.ts'
import type { KubeObject } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { attach, indexParents, type AnyRoute } from './route/attach.ts'
import { backendTlsStatus, readBackendTlsPolicies } from './policy/backend-tls-policy.ts'
import type { BackendTarget } from './common/backend-ref.ts'
import { createContext, type Context, type TranslateOptions } from './common/context.ts'
import { gatewayStatus, readGateways, servedListeners, type GatewayState } from './gateway/gateway.ts'
import { gatewayClassStatus, readClasses } from './gateway/gateway-class.ts'
import { compileGrpcRoute } from './route/grpc-route.ts'
import { compileHttpRoute } from './route/http-route.ts'
import { findKeySets } from './reach/key-sets.ts'
import { poolStatus, readPools } from './inference/inference-pool.ts'
import type { ListenerState } from './gateway/listener.ts'
import { listenerSetStatus } from './gateway/listener-set.ts'
import { Messages } from './common/messages.ts'
import { findOverrides, indexPolicies } from './policy/overrides.ts'
import { indexOwned } from './policy/policy-targets.ts'
import { backendStatus, readBackends } from './backend/proxy-backend.ts'
import { findUnguardedPaths } from './backend/unguarded.ts'
import { policyStatus, readPolicies } from './policy/proxy-policy.ts'
import { walk, type World } from './reach/reach.ts'
import { routeStatus, type CompiledRoute } from './route/route.ts'
import { indexSlices } from './backend/service.ts'
import { compileTcpRoute } from './route/tcp-route.ts'
import { compileTlsRoute } from './route/tls-route.ts'
import type { ObjectStatus, Translation } from '../model/translation.ts'

/** Messages of a Gateway so far, and the backends of its routes, before policies are applied. */
interface Collected {
  readonly messages: Messages
  readonly nodes: string[]
  readonly targets: BackendTarget[]
}

/**
 * Translates a Snapshot to the config of every Gateway of ours and the statuses of the objects that the operator manages.
 * Pure: no clock, no I/O; equal input gives equal output. Users' mistakes end up in statuses and never throw.
 */
export function translate(snapshot: Snapshot, options: TranslateOptions = {}): Translation {
  const context = createContext(snapshot, options)
  const classes = readClasses(snapshot)
  const gateways = readGateways(context, classes)
  const statuses: ObjectStatus[] = [...classes.values()].map(gatewayClassStatus)

  const collected = new Map(gateways.map((gateway) => [gateway, collectGateway(gateway)]))
  statuses.push(...attachRoutes(context, gateways, collected))

  const policies = readPolicies(context, indexOwned(gateways))
  const policyIndex = indexPolicies(policies)
  findOverrides(policyIndex)
  const backends = readBackends(context)
  const backendTls = readBackendTlsPolicies(context)
  const pools = readPools(context)
  const world: World = { context, policies: policyIndex, backendTls: backendTls.index, backends, pools, slices: indexSlices(context) }
  for (const [gateway, { messages, nodes, targets }] of collected) walk(world, gateway, nodes, targets, messages)

  const messages = new Map(gateways.map((gateway) => [gateway.key, collected.get(gateway)?.messages.list() ?? []]))
  const unguarded = findUnguardedPaths(messages.values())

  for (const gateway of gateways) {
    statuses.push(gatewayStatus(gateway), ...gateway.sets.map(listenerSetStatus))
  }
  statuses.push(
    ...policies.map(policyStatus),
    ...[...backends].map(([key, state]) => backendStatus(state, unguarded.get(key))),
    ...[...pools.values()].flatMap((state) => poolStatus(state) ?? []),
    ...backendTls.states.flatMap((state) => backendTlsStatus(state) ?? []),
  )
  return {
    gateways: messages,
    statuses: statuses.toSorted(compareStatuses),
    keySets: findKeySets(world, policies),
  }
}

function compareStatuses(a: ObjectStatus, b: ObjectStatus): number {
  const [left, right] = [a, b].map(({ kind, namespace = '', name }) => [kind, namespace, name].join('\u0000')) as [string, string]
  return left < right ? -1 : left > right ? 1 : 0
}

/** Binds, listeners and certificates of a Gateway. */
function collectGateway(gateway: GatewayState): Collected {
  const messages = new Messages()
  const { namespace, name } = gateway.gateway.metadata
  for (const listener of servedListeners(gateway)) {
    const bind = `${listener.port}/${gateway.key}`
    messages.add('bind', { key: bind, port: listener.port })
    messages.add('listener', listenerMessage(listener, bind, { namespace, name }))
    for (const secret of listener.secrets) messages.add('secret', secret)
  }
  const sets = gateway.sets.filter((set) => !set.refused).map((set) => `ListenerSet/${set.key}`)
  return { messages, nodes: [`Gateway/${gateway.key}`, ...sets], targets: [] }
}

function listenerMessage(listener: ListenerState, bind: string, gateway: Listener['gateway']): Listener {
  const { owner, hostname, tls, protocol } = listener
  return {
    key: listener.key,
    bind,
    gateway,
    ...(owner.kind === 'ListenerSet' ? { listenerSet: { namespace: owner.metadata.namespace, name: owner.metadata.name } } : {}),
    name: listener.spec.name,
    ...(hostname === undefined ? {} : { hostname }),
    protocol: protocol ?? 'TCP',
    ...(tls ? { tls } : {}),
  }
}

function compile(context: Context, route: AnyRoute): CompiledRoute {
  switch (route.kind) {
    case 'HTTPRoute':
      return compileHttpRoute(context, route)
    case 'GRPCRoute':
      return compileGrpcRoute(context, route)
    case 'TLSRoute':
      return compileTlsRoute(context, route)
    case 'TCPRoute':
      return compileTcpRoute(context, route)
  }
}

/** Adds every route to the Gateways that accept it, counts it on their listeners, and returns the statuses of all routes. */
function attachRoutes(context: Context, gateways: readonly GatewayState[], collected: ReadonlyMap<GatewayState, Collected>): ObjectStatus[] {
  const parents = indexParents(gateways)
  const { snapshot } = context
  const routes: readonly AnyRoute[] = [...snapshot.list('HTTPRoute'), ...snapshot.list('GRPCRoute'), ...snapshot.list('TLSRoute'), ...snapshot.list('TCPRoute')]
  const statuses: ObjectStatus[] = []
  for (const route of routes) {
    const attachments = attach(context, route, parents)
    const compiled: CompiledRoute = attachments.length > 0 ? compile(context, route) : { messages: [], targets: [] }
    const listenersOf = new Map<GatewayState, Set<ListenerState>>()
    for (const { gateway, listeners } of attachments) {
      const known = listenersOf.get(gateway)
      if (listeners.length > 0) listenersOf.set(gateway, known ? known.union(new Set(listeners)) : new Set(listeners))
    }
    for (const [gateway, listeners] of listenersOf) {
      if (!compiled.rejected) for (const listener of listeners) listener.attached++
      addRoute(route, compiled, [...listeners], collected.get(gateway))
    }
    const status = routeStatus(route, attachments, compiled)
    if (status) statuses.push(status)
  }
  return statuses
}

function addRoute(route: AnyRoute, compiled: CompiledRoute, listeners: readonly ListenerState[], into: Collected | undefined): void {
  if (!into) return
  const keys = listeners.filter((listener) => !listener.rejected).map((listener) => listener.key)
  if (keys.length === 0) return
  keys.sort()
  for (const { kind, message } of compiled.messages) {
    if (kind === 'route') into.messages.add('route', { ...message, listeners: keys })
    else into.messages.add('tcpRoute', { ...message, listeners: keys })
  }
  // The messages of a rejected route respond 500, so that its backends and policies are not needed.
  if (compiled.rejected) return
  into.nodes.push(nodeOf(route))
  into.targets.push(...compiled.targets)
}

const nodeOf = (object: KubeObject): string => `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`
