import { parseDuration } from '#api/duration.ts'
import type { Route } from '#gen/config/types.ts'
import type { HTTPRouteRule } from '../../source/gateway-api.ts'
import type { HTTPRoute } from '../../source/objects.ts'
import { fault, type Fault } from '../../model/conditions.ts'
import { hostnamesOf } from './attach.ts'
import type { Context } from '../common/context.ts'
import { compileFilters } from './filters.ts'
import { compileHttpMatches } from '../common/matches.ts'
import { compileL7, referrerOf, type CompiledRoute, type L7Rule } from './route.ts'
import type { RefSink } from '../common/backend-ref.ts'

export function compileHttpRoute(context: Context, route: HTTPRoute): CompiledRoute {
  const refs: RefSink = { unresolved: [], targets: [] }
  const from = referrerOf(route)
  const rules = (route.spec.rules ?? []).map((rule): L7Rule => {
    const faults: Fault[] = []
    const { filters, fault: bad } = compileFilters(context, from, rule.filters ?? [], 'HTTPRoute', refs)
    if (bad) faults.push(bad)
    const prefix = prefixFault(rule)
    if (prefix) faults.push(prefix)
    const more = { ...readTimeouts(rule, faults), ...readRetry(rule, faults) }
    return {
      ...(rule.name === undefined ? {} : { name: rule.name }),
      compiled: compileHttpMatches(rule.matches ?? []),
      filters,
      backendRefs: rule.backendRefs ?? [],
      sessionPersistence: rule.sessionPersistence,
      faults,
      more,
    }
  })
  return compileL7(context, route, hostnamesOf(route), rules, refs, 'backendRef of HTTPRoute', '')
}

/** Gateway API: ReplacePrefixMatch with any other match than PathPrefix makes Accepted False. */
function prefixFault({ filters = [], backendRefs = [], matches = [] }: HTTPRouteRule): Fault | undefined {
  const all = [...filters, ...backendRefs.flatMap((ref) => ref.filters ?? [])]
  const isReplacing = all.some((filter) => (filter.requestRedirect ?? filter.urlRewrite)?.path?.type === 'ReplacePrefixMatch')
  const isPrefix = matches.every((match) => match.path === undefined || match.path.type === 'PathPrefix')
  return isReplacing && !isPrefix ? fault('IncompatibleFilters', 'ReplacePrefixMatch needs matches of type PathPrefix only', 'PX1112') : undefined
}

function readMs(field: string, text: string | undefined, faults: Fault[]): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text)
  if (ms === undefined) faults.push(fault('UnsupportedValue', `${field}: ${text} is not a duration; write for example 500ms or 1m30s`, 'PX1113'))
  return ms
}

function readTimeouts(rule: HTTPRouteRule, faults: Fault[]): Pick<Route, 'timeouts'> {
  if (!rule.timeouts) return {}
  const requestMs = readMs('timeouts.request', rule.timeouts.request, faults)
  const backendRequestMs = readMs('timeouts.backendRequest', rule.timeouts.backendRequest, faults)
  return { timeouts: { ...(requestMs === undefined ? {} : { requestMs }), ...(backendRequestMs === undefined ? {} : { backendRequestMs }) } }
}

function readRetry(rule: HTTPRouteRule, faults: Fault[]): Pick<Route, 'retry'> {
  if (!rule.retry) return {}
  const { codes = [], attempts, backoff } = rule.retry
  const backoffMs = readMs('retry.backoff', backoff, faults)
  return {
    retry: {
      ...(codes.length > 0 ? { codes: [...codes] } : {}),
      ...(attempts === undefined ? {} : { attempts: Math.min(attempts, 254) }),
      ...(backoffMs === undefined ? {} : { backoffMs }),
    },
  }
}
