import type { RouteFilters, Traffic } from '#gen/config/types.ts'
import type { EffectiveTraffic } from '../config/merge.ts'
import type { Policy } from '../exchange/context.ts'
import { compileAuthorization } from './authorization/index.ts'
import { compileApiKeyAuthentication } from './api-key-authentication/index.ts'
import { compileBasicAuthentication } from './basic-authentication/index.ts'
import { compileCors } from './cors/index.ts'
import { compileCsrf } from './csrf/index.ts'
import { compileDirectResponse } from './direct-response/index.ts'
import { compileExtAuth } from './ext-auth/index.ts'
import { compileExtProc } from './ext-proc/index.ts'
import { compileHeaderModifiers, modifyBackendResponse } from './header-modifiers/index.ts'
import { compileIpAllowList } from './ip-allow-list/index.ts'
import { compileHostRewrite } from './host-rewrite/index.ts'
import { compileJwtAuthentication } from './jwt-authentication/index.ts'
import { compileGlobalRateLimit } from './rate-limit/global.ts'
import { compileLocalRateLimit } from './rate-limit/index.ts'
import { compileRequestRedirect } from './request-redirect/index.ts'
import { createPolicyState, type PolicyState } from './state.ts'
import { transformBackendResponse } from '../transformation/backend.ts'
import { compileTransformation } from './transformation/index.ts'
import { compileUrlRewrite } from './url-rewrite/index.ts'

/** Where the policies of a chain come from. */
export interface PolicySources {
  /** Filters of the route rule; each replaces the same kind of `traffic` (traffic.md §4.2). */
  readonly filters?: RouteFilters | undefined
  /** ProxyPolicies of one phase, merged. */
  readonly traffic?: EffectiveTraffic | undefined
  /** Secrets, clocks and what outlives a config version. Default: no secrets, nothing kept. */
  readonly state?: PolicyState
  /** A backendRef of the rule has response filters. */
  readonly hasBackendResponseHeaders?: boolean
  /** A backend of the rule may have a transformation among its policies. */
  readonly hasBackendTransformation?: boolean
  /** How much of a body is read for expressions; default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
}

type CompileSources = PolicySources & Required<Pick<PolicySources, 'state'>>

interface Entry {
  readonly name: string
  /** Undefined: not configured. */
  compile(filters: RouteFilters, traffic: EffectiveTraffic, sources: CompileSources): Policy | undefined
}

/**
 * THE order (traffic.md §5 steps 3 and 6). Request sides run from top to bottom, response sides of the policies that were
 * reached from bottom to top. A new policy is one line here, and its section's line in `trafficHomes`.
 */
const order = [
  // First, because preflights carry no credentials and browsers must be able to read a 401, 403 or 429.
  { name: 'cors', compile: (filters, traffic) => optional(filters.cors ?? traffic.cors, compileCors) },
  // Before authentication, which costs more and would tell rejected clients whether their credentials are valid.
  { name: 'ipAllowList', compile: (_, traffic) => optional(traffic.ipAllowList, compileIpAllowList) },
  // Authentication: all that are configured must succeed. Before everything that costs or counts something.
  {
    name: 'jwtAuthentication',
    compile: (_, { jwtAuthentication, apiKeyAuthentication }, { state }) =>
      optional(jwtAuthentication, (section) => compileJwtAuthentication(section, state, apiKeyAuthentication !== undefined)),
  },
  {
    name: 'basicAuthentication',
    compile: (_, traffic, { state }) => optional(traffic.basicAuthentication, (section) => compileBasicAuthentication(section, state)),
  },
  {
    name: 'apiKeyAuthentication',
    compile: (_, { jwtAuthentication, apiKeyAuthentication }, { state }) =>
      optional(apiKeyAuthentication, (section) => compileApiKeyAuthentication(section, state, jwtAuthentication !== undefined)),
  },
  // After authentication, so that the server is not bothered with clients that fail it and learns who they are; before authorization,
  // whose rules may be about what the server said.
  {
    name: 'extAuth',
    compile: ({ extAuth: filter }, { extAuth }, { state, maxBufferBytes }) =>
      optional(filter?.policy ?? extAuth, (section) => compileExtAuth(section, state, maxBufferBytes, filter)),
  },
  // After all authentication, whose results its rules are about; before everything that costs, counts or changes something.
  { name: 'authorization', compile: (_, { authorization = [] }, { state, maxBufferBytes }) => compileAuthorization(authorization, state, maxBufferBytes) },
  // After whatever may deny: requests that were refused consume no budget.
  { name: 'rateLimit', compile: (_, { rateLimit }, { state }) => rateLimit?.local && compileLocalRateLimit(rateLimit.local, state) },
  // After the local limits, which cost no call.
  {
    name: 'globalRateLimit',
    compile: (_, { rateLimit }, { state, maxBufferBytes }) => optional(rateLimit?.global, (section) => compileGlobalRateLimit(section, state, maxBufferBytes)),
  },
  // After the limits, so that what is refused costs nothing; before the transformation, which sees what the processor made.
  { name: 'extProc', compile: (_, { extProc }, { state, maxBufferBytes }) => optional(extProc, (section) => compileExtProc(section, state, maxBufferBytes)) },
  // Its response side follows that of the route's transformation: the backend is the more specific place. Before that of the processor, which
  // judges what transformations made.
  {
    name: 'backendTransformation',
    compile: (_, __, { hasBackendTransformation, maxBufferBytes }) =>
      hasBackendTransformation === true ? transformBackendResponse(maxBufferBytes) : undefined,
  },
  // After the limits, so that what is refused costs nothing. On responses after the header modifiers, which are fixed.
  {
    name: 'transformation',
    compile: (_, traffic, { state, maxBufferBytes }) => optional(traffic.transformation, (section) => compileTransformation(section, state, maxBufferBytes)),
  },
  // After whatever may rewrite the request, because it is the last to judge it.
  { name: 'csrf', compile: (_, traffic) => optional(traffic.csrf, compileCsrf) },
  // Its response side follows that of the rule's own modifiers: the backendRef is the more specific place.
  {
    name: 'backendResponseHeaders',
    compile: (_, __, { hasBackendResponseHeaders }) => (hasBackendResponseHeaders === true ? modifyBackendResponse : undefined),
  },
  // After everything that judges the request as the client sent it. On responses before all others, which may override it.
  {
    name: 'headerModifiers',
    compile: (filters, { headerModifiers }) =>
      compileHeaderModifiers({
        request: filters.requestHeaders ?? listOf(headerModifiers?.request),
        response: filters.responseHeaders ?? listOf(headerModifiers?.response),
      }),
  },
  // After the header modifiers, whose Host an explicit Auto overrides; before urlRewrite, whose hostname overrides both.
  { name: 'hostRewrite', compile: (_, traffic) => optional(traffic.hostRewrite, compileHostRewrite) },
  { name: 'urlRewrite', compile: (filters) => optional(filters.urlRewrite, compileUrlRewrite) },
  // Answers come last: they still require everything above. Route filters, redirects among them, precede attached policies.
  { name: 'requestRedirect', compile: (filters) => optional(filters.redirect, compileRequestRedirect) },
  { name: 'directResponse', compile: (_, traffic) => optional(traffic.directResponse, compileDirectResponse) },
] as const satisfies readonly Entry[]

type PolicyName = (typeof order)[number]['name']

/** Who carries out each filter. A new field of the schema does not compile until it has a line here. */
export const filterHomes = {
  requestHeaders: 'headerModifiers',
  responseHeaders: 'headerModifiers',
  redirect: 'requestRedirect',
  urlRewrite: 'urlRewrite',
  cors: 'cors',
  mirrors: 'forward',
  extAuth: 'extAuth',
  invalid: 'rule',
} as const satisfies { [K in keyof RouteFilters]-?: PolicyName | 'forward' | 'rule' }

/** Traffic sections that no entry of `order` carries out, and the module that does. */
export const carriedOutElsewhere = { phase: 'merge', timeouts: 'rule', retry: 'forward' } as const satisfies Partial<Record<keyof Traffic, string>>

/** Traffic sections without a place in `order`. A new field of the schema does not compile until it has one: the type must stay empty. */
type MissingSection = Exclude<keyof Traffic, PolicyName | keyof typeof carriedOutElsewhere>
null satisfies [MissingSection] extends [never] ? null : MissingSection

/** The policies of a chain, in order; empty for most rules. */
export function compilePolicies(sources: PolicySources): Policy[] {
  const { filters = {}, traffic = {}, state = createPolicyState() } = sources
  return order.flatMap((entry: Entry) => {
    const policy = entry.compile(filters, traffic, { ...sources, state })
    // Traces call a policy by its name.
    return policy === undefined ? [] : [Object.defineProperty(policy, 'name', { value: entry.name, configurable: true })]
  })
}

/** The policies of a rule without attached ones. */
export function compileFilters(filters: RouteFilters | undefined): Policy[] {
  return filters === undefined ? [] : compilePolicies({ filters })
}

function optional<T>(section: T | undefined, compile: (section: T) => Policy): Policy | undefined {
  return section === undefined ? undefined : compile(section)
}

function listOf<T>(value: T | undefined): readonly T[] | undefined {
  return value === undefined ? undefined : [value]
}
