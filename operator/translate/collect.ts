import type { Listener, Route, TcpRoute } from '#gen/config/types.ts'
import type { KubeObject } from '../source/objects.ts'
import type { AnyRoute } from './route/attach.ts'
import type { BackendTarget } from './common/backend-ref.ts'
import type { Context } from './common/context.ts'
import { servedListeners, type GatewayState } from './gateway/gateway.ts'
import { compileGrpcRoute } from './route/grpc-route.ts'
import { compileHttpRoute } from './route/http-route.ts'
import type { ListenerState } from './gateway/listener.ts'
import { Messages } from './common/messages.ts'
import type { CompiledRoute } from './route/route.ts'
import { compileTcpRoute } from './route/tcp-route.ts'
import { compileTlsRoute } from './route/tls-route.ts'

/** Messages of a Gateway so far, and the backends of its routes, before policies are applied. */
interface Collected {
  readonly messages: Messages
  readonly nodes: string[]
  readonly targets: BackendTarget[]
}

/** Binds, listeners and certificates of a Gateway. */
export function collectGateway(gateway: GatewayState): Collected {
  const messages = new Messages()
  for (const listener of servedListeners(gateway)) {
    const bind = `${listener.port}/${gateway.key}`
    messages.add('bind', { key: bind, port: listener.port })
    messages.add('listener', listenerMessage(listener, bind, gateway))
    for (const secret of listener.secrets) messages.add('secret', secret)
  }
  const sets = gateway.sets.filter((set) => !set.refused).map((set) => `ListenerSet/${set.key}`)
  return { messages, nodes: [`Gateway/${gateway.key}`, ...sets], targets: [] }
}

function listenerMessage(listener: ListenerState, bind: string, { gateway: { metadata }, permitsInProcess }: GatewayState): Listener {
  const { owner, hostname, tls, protocol } = listener
  return {
    key: listener.key,
    bind,
    gateway: { namespace: metadata.namespace, name: metadata.name },
    ...(owner.kind === 'ListenerSet' ? { listenerSet: { namespace: owner.metadata.namespace, name: owner.metadata.name } } : {}),
    name: listener.spec.name,
    ...(hostname === undefined ? {} : { hostname }),
    protocol: protocol ?? 'TCP',
    ...(tls ? { tls } : {}),
    ...(permitsInProcess ? { inProcessPlugins: true } : {}),
  }
}

/** Compiles the rules of a route of any kind. */
export function compileRoute(context: Context, route: AnyRoute): CompiledRoute {
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

/** The listeners of one Gateway that accept a route, and the messages for those of them that are served. */
export interface Attached {
  readonly listeners: ReadonlySet<ListenerState>
  readonly isServed: boolean
  readonly messages: readonly ({ readonly kind: 'route'; readonly message: Route } | { readonly kind: 'tcpRoute'; readonly message: TcpRoute })[]
}

/** Binds the messages of a route to listeners. This is done once per version of the route, so that the messages keep their identity in each config. */
export function bindRoute({ messages }: CompiledRoute, listeners: ReadonlySet<ListenerState>): Attached {
  const keys = [...listeners].flatMap(({ rejected, key }) => (rejected ? [] : key)).toSorted()
  const isServed = keys.length > 0
  const bound = messages.map((each) =>
    each.kind === 'route'
      ? { kind: each.kind, message: { ...each.message, listeners: keys } }
      : { kind: each.kind, message: { ...each.message, listeners: keys } },
  )
  return { listeners, isServed, messages: isServed ? bound : [] }
}

/** Adds a route to the messages of a Gateway, and counts it on the listeners that accept it. */
export function addRoute(route: AnyRoute, compiled: CompiledRoute, { listeners, isServed, messages }: Attached, into: Collected): void {
  if (!compiled.rejected) for (const listener of listeners) listener.attached++
  if (!isServed) return
  for (const each of messages) {
    if (each.kind === 'route') into.messages.add(each.kind, each.message)
    else into.messages.add(each.kind, each.message)
  }
  // The messages of a rejected route respond 500, so that its backends and policies are not needed.
  if (compiled.rejected) return
  into.nodes.push(nodeOf(route))
  into.targets.push(...compiled.targets)
}

const nodeOf = (object: KubeObject): string => `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`
