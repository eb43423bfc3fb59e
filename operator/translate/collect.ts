import type { Listener } from '#gen/config/types.ts'
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

/** Adds a route to the messages of a Gateway, and counts it on the listeners that accept it. */
export function addRoute(route: AnyRoute, compiled: CompiledRoute, listeners: readonly ListenerState[], into: Collected): void {
  if (!compiled.rejected) for (const listener of listeners) listener.attached++
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
