import type { MessageCode } from '#api/messages/code.ts'
import type { CORS, HeaderModifier, PathModifier as PathModifierMessage, RequestMirror, RequestRedirect, RouteFilters, UrlRewrite } from '#gen/config/types.ts'
import type { CorsFilter, HeaderFilter, MirrorFilter, PathModifier, RedirectFilter, RewriteFilter, RouteFilter } from '../../source/gateway-api.ts'
import { fault, type Fault } from '../../model/conditions.ts'
import { resolveBackend, type RefSink } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import { compileExternalAuth } from './external-auth.ts'
import type { Referrer } from '../common/reference-grant.ts'

const headerTypes = ['RequestHeaderModifier', 'ResponseHeaderModifier', 'RequestMirror']
/** Filter types that each place supports (traffic.md §7). */
const supportedFilters = {
  HTTPRoute: new Set([...headerTypes, 'RequestRedirect', 'URLRewrite', 'CORS', 'ExternalAuth']),
  GRPCRoute: new Set(headerTypes),
  'backendRef of HTTPRoute': new Set([...headerTypes, 'RequestRedirect']),
  'backendRef of GRPCRoute': new Set(headerTypes),
} as const
export type FilterPlace = keyof typeof supportedFilters

/** Messages for a list of filters; `fault` when it cannot be honoured as written. */
export interface CompiledFilters {
  readonly filters: RouteFilters
  readonly fault?: Fault
}

export function compileFilters(context: Context, from: Referrer, filters: readonly RouteFilter[], place: FilterPlace, refs: RefSink): CompiledFilters {
  const result: RouteFilters = {}
  const reject = (message: string, code: MessageCode): CompiledFilters => ({ filters: {}, fault: fault('IncompatibleFilters', message, code) })
  for (const filter of filters) {
    if (!supportedFilters[place].has(filter.type))
      return reject(`filter ${filter.type} is not supported (${place}); supported: ${[...supportedFilters[place]].join(', ')}`, 'PX1109')
    if (filter.requestHeaderModifier) (result.requestHeaders ??= []).push(toHeaderModifier(filter.requestHeaderModifier))
    else if (filter.responseHeaderModifier) (result.responseHeaders ??= []).push(toHeaderModifier(filter.responseHeaderModifier))
    else if (filter.requestMirror) {
      const mirror = toRequestMirror(context, from, filter.requestMirror, refs)
      if (mirror) (result.mirrors ??= []).push(mirror)
    } else if (filter.requestRedirect) {
      if (result.redirect) return reject('more than one RequestRedirect filter', 'PX1110')
      result.redirect = toRequestRedirect(filter.requestRedirect)
    } else if (filter.urlRewrite) {
      if (result.urlRewrite) return reject('more than one URLRewrite filter', 'PX1110')
      result.urlRewrite = toUrlRewrite(filter.urlRewrite)
    } else if (filter.cors) {
      if (result.cors) return reject('more than one CORS filter', 'PX1110')
      result.cors = toCors(filter.cors)
    } else if (filter.externalAuth) {
      if (result.extAuth) return reject('more than one ExternalAuth filter', 'PX1110')
      result.extAuth = compileExternalAuth(context, from, filter.externalAuth, refs)
    } else return reject(`filter of type ${filter.type} has no ${filter.type} settings`, 'PX1111')
  }
  if (result.redirect && result.urlRewrite) return reject('RequestRedirect and URLRewrite cannot be used together', 'PX1110')
  return { filters: result }
}

function toHeaderModifier({ add = [], set = [], remove = [] }: HeaderFilter): HeaderModifier {
  const values = (list: NonNullable<HeaderFilter['add']>): { name: string; value: string }[] => list.map(({ name, value }) => ({ name, value }))
  return {
    ...(add.length > 0 ? { add: values(add) } : {}),
    ...(set.length > 0 ? { set: values(set) } : {}),
    ...(remove.length > 0 ? { remove: [...remove] } : {}),
  }
}

/** Absent when the backend does not resolve: a mirror never touches the request itself. */
function toRequestMirror(context: Context, from: Referrer, mirror: MirrorFilter, refs: RefSink): RequestMirror | undefined {
  const backend = resolveBackend(context, from, mirror.backendRef)
  if ('fault' in backend) {
    refs.unresolved.push(backend.fault)
    return undefined
  }
  refs.targets.push(backend.target)
  return { backend: backend.ref, numerator: mirror.fraction?.numerator ?? mirror.percent ?? 100, denominator: mirror.fraction?.denominator ?? 100 }
}

function toPathModifier(path: PathModifier): PathModifierMessage {
  return path.type === 'ReplaceFullPath'
    ? { type: 'ReplaceFullPath', value: path.replaceFullPath ?? '' }
    : { type: 'ReplacePrefixMatch', value: path.replacePrefixMatch ?? '' }
}

/** The API's enum values reach the message unchecked: both schemas list the same ones. */
function toRequestRedirect({ scheme, hostname, path, port, statusCode }: RedirectFilter): RequestRedirect {
  return {
    ...(scheme === undefined ? {} : { scheme: scheme as NonNullable<RequestRedirect['scheme']> }),
    ...(hostname === undefined ? {} : { hostname }),
    ...(path ? { path: toPathModifier(path) } : {}),
    ...(port === undefined ? {} : { port }),
    statusCode: (statusCode ?? 302) as NonNullable<RequestRedirect['statusCode']>,
  }
}

function toUrlRewrite({ hostname, path }: RewriteFilter): UrlRewrite {
  return { ...(hostname === undefined ? {} : { hostname }), ...(path ? { path: toPathModifier(path) } : {}) }
}

function toCors(filter: CorsFilter): CORS {
  const list = (field: 'allowOrigins' | 'allowMethods' | 'allowHeaders' | 'exposeHeaders'): object =>
    filter[field]?.length ? { [field]: [...filter[field]] } : {}
  return {
    ...list('allowOrigins'),
    ...(filter.allowCredentials === undefined ? {} : { allowCredentials: filter.allowCredentials }),
    ...list('allowMethods'),
    ...list('allowHeaders'),
    ...list('exposeHeaders'),
    maxAge: filter.maxAge ?? 5,
  }
}
