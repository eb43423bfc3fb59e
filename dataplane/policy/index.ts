import type { RouteFilters, Traffic } from '#gen/config/types.ts'
import type { EffectiveTraffic } from '../config/merge.ts'
import type { Policy } from '../request/exchange/context.ts'
import type { Exchange } from '../request/exchange/exchange.ts'
import type { OnFailure } from '../request/expression/condition.ts'
import { compileAuthorization } from './authorization/index.ts'
import { compileApiKeyAuthentication } from './api-key-authentication/index.ts'
import { compileBandwidthLimit } from './bandwidth-limit/index.ts'
import { compileBasicAuthentication } from './basic-authentication/index.ts'
import { compileBudgets } from './budgets/index.ts'
import { compileCache, type Sharing } from './cache/index.ts'
import { compileCompression } from './compression/index.ts'
import { compileCors } from './cors/index.ts'
import { compileCsrf } from './csrf/index.ts'
import { compileDecompression } from './decompression/index.ts'
import { compileDirectResponse } from './direct-response/index.ts'
import { compileExtAuth } from './ext-auth/index.ts'
import { compileExtProc } from './ext-proc/index.ts'
import { compileFaultInjection } from './fault-injection/index.ts'
import { compileHeaderModifiers, modifyBackendResponse } from './header-modifiers/index.ts'
import { compileIpAllowList } from './ip-allow-list/index.ts'
import { compileHostRewrite } from './host-rewrite/index.ts'
import { compileJwtAuthentication } from './jwt-authentication/index.ts'
import { compileGlobalRateLimit } from './rate-limit/global.ts'
import { compileLocalRateLimit } from './rate-limit/index.ts'
import { compileOidc } from './oidc/index.ts'
import { compilePlugins } from './plugins/index.ts'
import { compileRequestBody } from './request-body/index.ts'
import { compileRequestRedirect } from './request-redirect/index.ts'
import { createPolicyState, type PolicyState } from './state.ts'
import { transformBackendResponse } from '../request/transformation/backend.ts'
import { compileResponseOverride } from './response-override/index.ts'
import { compileTransformation } from './transformation/index.ts'
import { compileUrlRewrite } from './url-rewrite/index.ts'
import { runWhen } from './when.ts'

/** Sources of the policies of a chain. */
export interface PolicySources {
  /** Filters of the route rule; each replaces the same kind of `traffic` (traffic.md §4.2). */
  readonly filters?: RouteFilters | undefined
  /** ProxyPolicies of one phase, merged. */
  readonly traffic?: EffectiveTraffic | undefined
  /** Secrets, clocks and state that is kept over config versions. Default: no secrets, no kept state. */
  readonly state?: PolicyState
  /** Whether a backendRef of the rule has response filters. */
  readonly hasBackendResponseHeaders?: boolean
  /** Whether a backend of the rule may have a transformation. */
  readonly hasBackendTransformation?: boolean
  /** Whether responses of the backend that the rule picked may be shared between clients. Default: never. */
  readonly sharingOf?: ((exchange: Exchange) => Sharing) | undefined
  /** Maximum number of bytes of a body that are read for expressions; default 2 MiB. */
  readonly maxBufferBytes?: number | undefined
}

type CompileSources = PolicySources & Required<Pick<PolicySources, 'state'>>

interface Entry {
  readonly name: string
  /** Returns undefined if the policy is not configured. */
  compile(filters: RouteFilters, traffic: EffectiveTraffic, sources: CompileSources): Policy | undefined
}

/**
 * The order of policies (traffic.md §5 steps 3 and 6). Request sides run from top to bottom, response sides of the policies that were
 * reached from bottom to top. A new policy is one line here, under the name of its section.
 */
const order = [
  // Counts the bytes that clients send and receive.
  { name: 'bandwidthLimit', compile: (_, { bandwidthLimit }, { state }) => optional(bandwidthLimit, (section) => compileBandwidthLimit(section, state)) },
  // On responses last of those that read the content, because all others may change it.
  { name: 'compression', compile: (_, traffic) => optional(traffic.compression, compileCompression) },
  // On responses after all others, so that it replaces what they reject with, and sees the status that they set.
  { name: 'responseOverride', compile: (_, traffic) => optional(traffic.responseOverride, compileResponseOverride) },
  // First of those that act on requests, because preflights carry no credentials and browsers must be able to read a 401, 403 or 429.
  { name: 'cors', compile: (filters, traffic) => optional(filters.cors ?? traffic.cors, compileCors) },
  // Before authentication, which costs more and would reveal to rejected clients whether their credentials are valid.
  { name: 'ipAllowList', compile: (_, traffic) => optional(traffic.ipAllowList, compileIpAllowList) },
  // Before authentication, for plugins that authenticate or prepare the credentials that policies check.
  { name: 'pluginsBeforeAuthorization', compile: (_, traffic, sources) => plugins(traffic, 'BeforeAuthorization', sources) },
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
  // After the policies whose tokens make a session unnecessary.
  { name: 'oidc', compile: (_, { oidc, jwtAuthentication }, { state }) => optional(oidc, (section) => compileOidc(section, state, jwtAuthentication)) },
  // After authentication, so that the server is called for authenticated clients only and learns who they are; before authorization,
  // whose rules may use the server's response.
  {
    name: 'extAuth',
    compile: ({ extAuth: filter }, { extAuth }, { state, maxBufferBytes }) =>
      conditional(filter?.policy ?? extAuth, 'applies', maxBufferBytes, (section) => compileExtAuth(section, state, maxBufferBytes, filter)),
  },
  // After all authentication, whose results its rules use; before everything that costs, counts or changes something.
  { name: 'authorization', compile: (_, { authorization = [] }, { state, maxBufferBytes }) => compileAuthorization(authorization, state, maxBufferBytes) },
  // After authorization, so that plugins run for permitted requests only; before the limits, because plugins may deny.
  { name: 'plugins', compile: (_, traffic, sources) => plugins(traffic, 'AfterAuthorization', sources) },
  // After all policies that may deny: rejected requests consume no budget.
  {
    name: 'rateLimit',
    compile: (_, { rateLimit }, { state, maxBufferBytes }) => optional(rateLimit?.local, (entries) => compileLocalRateLimit(entries, state, maxBufferBytes)),
  },
  // After the local limits, which need no call.
  {
    name: 'globalRateLimit',
    compile: (_, { rateLimit }, { state, maxBufferBytes }) =>
      conditional(rateLimit?.global, 'applies', maxBufferBytes, (section) => compileGlobalRateLimit(section, state, maxBufferBytes)),
  },
  // After the rate limits, so that requests that they reject are not charged to budgets.
  {
    name: 'budgets',
    compile: (_, { budgets }, { state, maxBufferBytes }) => (budgets === undefined ? undefined : compileBudgets(budgets, state, maxBufferBytes)),
  },
  // After all policies that reject, so that a fault is seen by requests that the upstream would receive; before all that cost something.
  {
    name: 'faultInjection',
    compile: (_, { faultInjection }, { state, maxBufferBytes }) =>
      conditional(faultInjection, 'skips', maxBufferBytes, (section) => compileFaultInjection(section, state)),
  },
  // After all policies that reject, so that their requests are not read; before all that change the body or read it without a limit of their own.
  { name: 'requestBody', compile: (_, traffic) => optional(traffic.requestBody, compileRequestBody) },
  // After the limits, so that rejected requests cost nothing; before all policies that change the body.
  { name: 'decompression', compile: (_, traffic) => optional(traffic.decompression, compileDecompression) },
  // After the limits, so that rejected requests cost nothing; before the transformation, which sees the processor's changes.
  {
    name: 'extProc',
    compile: (_, { extProc }, { state, maxBufferBytes }) =>
      conditional(extProc, 'applies', maxBufferBytes, (section) => compileExtProc(section, state, maxBufferBytes)),
  },
  // Its response side runs after that of the route's transformation, because the backend is more specific, and before that of the processor,
  // which sees the results of transformations.
  {
    name: 'backendTransformation',
    compile: (_, __, { hasBackendTransformation, maxBufferBytes }) =>
      hasBackendTransformation === true ? transformBackendResponse(maxBufferBytes) : undefined,
  },
  // After the limits, so that rejected requests cost nothing. On responses after the header modifiers, which are fixed.
  {
    name: 'transformation',
    compile: (_, { transformation }, { state, maxBufferBytes }) =>
      conditional(transformation, 'appliesUnlessAbsent', maxBufferBytes, (section) => compileTransformation(section, state, maxBufferBytes)),
  },
  // After all policies that rewrite the request, because it checks the result.
  { name: 'csrf', compile: (_, traffic) => optional(traffic.csrf, compileCsrf) },
  // Its response side runs after that of the rule's own modifiers, because the backendRef is more specific.
  {
    name: 'backendResponseHeaders',
    compile: (_, __, { hasBackendResponseHeaders }) => (hasBackendResponseHeaders === true ? modifyBackendResponse : undefined),
  },
  // After all policies that check the request as the client sent it. On responses before all others, which may override it.
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
  // After all policies that change the request: plugins see the request as the upstream will receive it.
  { name: 'pluginsBeforeBackend', compile: (_, traffic, sources) => plugins(traffic, 'BeforeBackend', sources) },
  // After all policies that check or change the request, so that stored responses require everything above. On responses before all others, which
  // run on stored responses too.
  {
    name: 'cache',
    compile: (filters, traffic, { state, sharingOf = () => 'never' }) =>
      optional(traffic.cache, (section) => compileCache(section, state, { sharingOf, isPersonal: dependsOnMore(filters, traffic) })),
  },
  // Local responses come last: they still require everything above. Route filters, such as redirects, precede attached policies.
  { name: 'requestRedirect', compile: (filters) => optional(filters.redirect, compileRequestRedirect) },
  {
    name: 'directResponse',
    compile: (_, { directResponse }, { state, maxBufferBytes }) =>
      conditional(directResponse, 'appliesUnlessAbsent', maxBufferBytes, (section) => compileDirectResponse(section, maxBufferBytes, state.secrets)),
  },
] as const satisfies readonly Entry[]

type PolicyName = (typeof order)[number]['name']

/** The policy or module that implements each filter. A new field of the schema does not compile until it has a line here. */
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

/** Traffic sections without an entry in `order`, and the module that implements them. */
export const implementedElsewhere = { phase: 'merge', timeouts: 'rule', retry: 'forward' } as const satisfies Partial<Record<keyof Traffic, string>>

/** Traffic sections without a place in `order`. A new field of the schema does not compile until it has one: the type must stay empty. */
type MissingSection = Exclude<keyof Traffic, PolicyName | keyof typeof implementedElsewhere>
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

/** Whether policies make requests that depend on more than the request of the client. */
function dependsOnMore({ extAuth: filter }: RouteFilters, { extAuth, extProc, plugins: all, transformation }: EffectiveTraffic): boolean {
  return [filter, extAuth, extProc, all, transformation?.request].some((section) => section !== undefined)
}

function plugins({ plugins: all = [] }: EffectiveTraffic, phase: Parameters<typeof compilePlugins>[1], sources: CompileSources): Policy | undefined {
  return all.length === 0 ? undefined : compilePlugins(all, phase, sources.state, sources.maxBufferBytes)
}

function optional<T>(section: T | undefined, compile: (section: T) => Policy): Policy | undefined {
  return section === undefined ? undefined : compile(section)
}

/** A section with a condition `when` (traffic.md §3). */
function conditional<T extends { readonly when?: string }>(
  section: T | undefined,
  onFailure: OnFailure,
  maxBufferBytes: number | undefined,
  compile: (section: T) => Policy,
): Policy | undefined {
  return section === undefined ? undefined : runWhen(section.when, onFailure, maxBufferBytes, compile(section))
}

function listOf<T>(value: T | undefined): readonly T[] | undefined {
  return value === undefined ? undefined : [value]
}
