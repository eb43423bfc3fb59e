import type { GRPCRoute } from '../../source/objects.ts'
import { hostnamesOf } from './attach.ts'
import type { Context } from '../common/context.ts'
import { compileFilters } from './filters.ts'
import { compileGrpcMatches } from '../common/matches.ts'
import { compileL7, referrerOf, type CompiledRoute, type L7Rule } from './route.ts'
import type { RefSink } from '../common/backend-ref.ts'

export function compileGrpcRoute(context: Context, route: GRPCRoute): CompiledRoute {
  const refs: RefSink = { unresolved: [], targets: [] }
  const rules = (route.spec.rules ?? []).map((rule): L7Rule => {
    const { filters, fault } = compileFilters(context, referrerOf(route), rule.filters ?? [], 'GRPCRoute', refs)
    return {
      ...(rule.name === undefined ? {} : { name: rule.name }),
      compiled: compileGrpcMatches(rule.matches ?? []),
      filters,
      backendRefs: rule.backendRefs ?? [],
      sessionPersistence: rule.sessionPersistence,
      faults: fault ? [fault] : [],
    }
  })
  return compileL7(context, route, hostnamesOf(route), rules, refs, 'backendRef of GRPCRoute', '.grpc')
}
