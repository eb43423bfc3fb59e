import type { TcpRoute, WeightedBackend } from '#gen/config/types.ts'
import type { TCPRoute, TLSRoute } from '../../source/objects.ts'
import { invalidBackend, resolveBackend, type RefSink } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import { outcomeOf, referrerOf, routeRef, ruleKey, type CompiledRoute } from './route.ts'

export function compileTcpRoute(context: Context, route: TCPRoute): CompiledRoute {
  return compileL4(context, route, [], '.tcp')
}

/** A TLSRoute is a TCPRoute with SNI hostnames. */
export function compileL4(context: Context, route: TCPRoute | TLSRoute, hostnames: readonly string[], suffix: '.tcp' | '.tls'): CompiledRoute {
  const refs: RefSink = { unresolved: [], targets: [] }
  const messages = route.spec.rules.map((rule, index) => {
    const backends = (rule.backendRefs ?? []).map((ref): WeightedBackend => {
      const resolved = resolveBackend(context, referrerOf(route), ref)
      if ('fault' in resolved) refs.unresolved.push(resolved.fault)
      else refs.targets.push(resolved.target)
      return { ref: 'fault' in resolved ? invalidBackend : resolved.ref, weight: ref.weight }
    })
    const message: Omit<TcpRoute, 'listeners'> = {
      key: ruleKey(route, index, suffix),
      route: routeRef(route, index, rule.name),
      creationTimestamp: route.metadata.creationTimestamp,
      ...(hostnames.length > 0 ? { hostnames: [...hostnames] } : {}),
      ...(backends.length > 0 ? { backends } : {}),
    }
    return { kind: 'tcpRoute' as const, message }
  })
  return { messages, ...outcomeOf(messages.length, [], refs) }
}
