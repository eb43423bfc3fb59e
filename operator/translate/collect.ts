import type { Listener, Route, TcpRoute } from '#gen/config/types.ts'
import type { ConfigMessage } from '../model/translation.ts'
import type { KubeObject } from '../source/objects.ts'
import type { AnyRoute } from './route/attach.ts'
import type { Context } from './common/context.ts'
import { servedListeners, type GatewayState } from './gateway/gateway.ts'
import { compileGrpcRoute } from './route/grpc-route.ts'
import { compileHttpRoute } from './route/http-route.ts'
import type { ListenerState } from './gateway/listener.ts'
import { messageOf } from './common/messages.ts'
import { edgesOf, type Root } from './reach/content.ts'
import type { CompiledRoute } from './route/route.ts'
import { compileTcpRoute } from './route/tcp-route.ts'
import { compileTlsRoute } from './route/tls-route.ts'

/** Binds, listeners and certificates of a Gateway, and the ways to its policies and to those of its ListenerSets. */
export function collectGateway(gateway: GatewayState): Root {
  const messages = servedListeners(gateway).flatMap((listener): ConfigMessage[] => {
    const bind = `${listener.port}/${gateway.key}`
    return [
      messageOf('bind', { key: bind, port: listener.port }),
      messageOf('listener', listenerMessage(listener, bind, gateway)),
      ...listener.secrets.map((secret) => messageOf('secret', secret)),
    ]
  })
  const sets = gateway.sets.filter((set) => !set.refused).map((set) => ({ node: `ListenerSet/${set.key}` }))
  return { messages, edges: [{ node: `Gateway/${gateway.key}` }, ...sets] }
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

/** A route as one Gateway serves it. */
export interface Attached extends Root {
  /** Those that count it: they accept it, and it is not rejected. */
  readonly listeners: ReadonlySet<ListenerState>
  readonly rules: readonly (Route | TcpRoute)[]
}

/** Binds the messages of a route to listeners. This is done once per version of the route, so that the messages keep their identity in each config. */
export function bindRoute(route: AnyRoute, { messages, rejected, targets }: CompiledRoute, accepting: ReadonlySet<ListenerState>): Attached {
  const listeners = [...accepting].flatMap(({ rejected: unserved, key }) => (unserved ? [] : key)).toSorted()
  const counting: ReadonlySet<ListenerState> = rejected ? new Set() : accepting
  if (listeners.length === 0) return { listeners: counting, rules: [], messages: [], edges: [] }
  const bound = messages.map((each) =>
    each.kind === 'route' ? messageOf(each.kind, { ...each.message, listeners }) : messageOf(each.kind, { ...each.message, listeners }),
  )
  return {
    listeners: counting,
    rules: bound.map(({ message }) => message as Route | TcpRoute),
    messages: bound,
    // The messages of a rejected route respond 500, so that its backends and policies are not needed.
    edges: rejected ? [] : [{ node: nodeOf(route) }, ...edgesOf(targets)],
  }
}

const nodeOf = (object: KubeObject): string => `${object.kind}/${object.metadata.namespace}/${object.metadata.name}`
