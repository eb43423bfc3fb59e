import type { BackendFull, Listener, Route, WeightedBackend } from '#gen/config/types.ts'
import { compose, type Chain } from '../request/exchange/compose.ts'
import type { Destinations } from '../net/destination/destinations.ts'
import { effectiveFrontend } from './frontend.ts'
import { backendSections, effectiveTraffic, mergeBackend, servicesWithTraffic, type EffectiveTraffic, type PolicyIndex } from '../config/merge.ts'
import { ProxyError } from '../request/exchange/error.ts'
import type { Exchange, RouteLabels } from '../request/exchange/exchange.ts'
import { forward } from '../backend/forward/forward.ts'
import { compilePolicies, type PolicySources } from '../policy/index.ts'
import type { PolicyState } from '../policy/state.ts'
import type { Services } from '../backend/forward/services.ts'
import { hashText, rendezvousScore } from '../net/upstream/balancer/hash.ts'
import { createWeightedPicker } from '../route/weights.ts'
import { planRetry, planTimeouts } from '../backend/forward/call-plan.ts'
import { SessionPersistence } from '../backend/forward/persistence.ts'
import type { ForwardPlan, PlannedBackend } from '../backend/forward/plan.ts'
import type { SessionKeys } from '../runtime/seal.ts'

/** Inputs of rule compilation besides the route and its listener. */
export interface RuleContext {
  readonly destinations: Destinations
  readonly policies: PolicyIndex
  readonly state: PolicyState
  readonly services: Services
  /** Keys of the tokens of persistent sessions. */
  readonly sessionKeys: SessionKeys
  /** Uniform in [0, 1). */
  readonly random: () => number
}

/** One rule of a route on one listener: a chain of policies that ends at its backends, composed on first use. */
export class Rule {
  readonly #route: Route
  readonly #listener: Listener
  readonly #context: RuleContext
  readonly #labels: RouteLabels
  #composed: ComposedRule | undefined

  constructor(route: Route, listener: Listener, context: RuleContext) {
    this.#route = route
    this.#listener = listener
    this.#context = context
    this.#labels = labelsOf(listener, route)
  }

  handle(exchange: Exchange): Promise<void> | void {
    exchange.labels = this.#labels
    exchange.trace?.add('route', this.#labels.route, { kind: this.#labels.kind ?? '', rule: this.#labels.rule })
    const { common, byBackend, pick } = (this.#composed ??= composeRule(this.#route, this.#listener, this.#context))
    const picked = pick?.(exchange)
    exchange.picked = picked
    exchange.errorFormat = picked?.service?.current?.formatError
    const { chain, requestMs } = byBackend === undefined || picked === undefined ? common : (byBackend.get(picked) ?? common)
    if (requestMs !== undefined) exchange.deadlineAtMs = exchange.startedAtMs + requestMs
    return chain(exchange)
  }
}

interface ComposedChain {
  readonly chain: Chain
  readonly requestMs: number | undefined
}

interface ComposedRule {
  readonly common: ComposedChain
  /** Chains of backends with traffic policies of their own (InferencePools). */
  readonly byBackend: ReadonlyMap<PlannedBackend, ComposedChain> | undefined
  readonly pick: ForwardPlan['pick'] | undefined
}

function labelsOf({ gateway, name }: Listener, { route }: Route): RouteLabels {
  const { kind, rule = '' } = route
  return { gateway: `${gateway.namespace}/${gateway.name}`, listener: name, route: `${route.namespace}/${route.name}`, rule, kind }
}

function composeRule(route: Route, listener: Listener, context: RuleContext): ComposedRule {
  const { filters } = route
  const invalid = filters?.invalid
  if (invalid !== undefined) {
    const reject = (): void => {
      throw new ProxyError('FILTER_FAILED', { detail: invalid })
    }
    return { common: { chain: compose([], reject), requestMs: undefined }, byBackend: undefined, pick: undefined }
  }
  const maxBufferBytes = effectiveFrontend(context.policies, listener.gateway).http?.maxBufferSize
  const ends = planForward(route, backendSections(context.policies, listener, route.route), maxBufferBytes, context)
  const composeFor = (service?: string): ComposedChain =>
    composeChain(route, effectiveTraffic(context.policies, 'PostRouting', listener, route.route, service), ends, context)
  const services = servicesWithTraffic(context.policies, route).map((service) => [service, composeFor(service)] as const)
  const byBackend = new Map(
    services.flatMap(([service, chain]) =>
      ends.plan.backends.filter((_, index) => route.backends?.[index]?.ref.service === service).map((backend) => [backend, chain] as const),
    ),
  )
  return { common: composeFor(), byBackend: byBackend.size === 0 ? undefined : byBackend, pick: ends.plan.pick }
}

/** The chain of a rule with the traffic policies of one of its backends. */
function composeChain(
  route: Route,
  traffic: EffectiveTraffic | undefined,
  { plan, hasBackendTransformation }: ReturnType<typeof planForward>,
  { state }: RuleContext,
): ComposedChain {
  const { filters } = route
  const { maxBufferBytes } = plan
  // Settings of the rule itself override those of policies, kind by kind (traffic.md §4.2).
  const { requestMs, backendRequestMs } = planTimeouts(route.timeouts, traffic?.timeouts)
  const own: ForwardPlan = { ...plan, backendRequestMs, retry: planRetry(route.retry, traffic?.retry) }
  const hasBackendResponseHeaders = route.backends?.some(({ responseHeaders }) => responseHeaders !== undefined) ?? false
  const policies = compilePolicies({
    filters,
    traffic,
    hasBackendResponseHeaders,
    hasBackendTransformation,
    maxBufferBytes,
    sharingOf: createSharingOf(plan),
    state,
  })
  return { chain: compose(policies, (exchange) => forward(exchange, own)), requestMs }
}

/** Whether responses of the picked backend may be shared between clients: its settings must not make requests depend on the client (traffic.md §8.15). */
function createSharingOf({ backends, persistence }: Pick<ForwardPlan, 'backends' | 'persistence'>): NonNullable<PolicySources['sharingOf']> {
  return ({ picked }) => {
    const backend = backends.find((one) => one === picked)
    // Responses have tokens of sessions.
    if (persistence !== undefined) return 'never'
    if (backend === undefined || backend.service?.current !== undefined || backend.redirect !== undefined) return 'never'
    if (backend.requestHeaders.length > 0 || backend.responseHeaders.length > 0) return 'never'
    const { settings, hooks } = backend.destination
    const { auth, transformation } = settings
    if (hooks !== undefined || transformation !== undefined) return 'never'
    if (auth === undefined) return 'permitted'
    // Tokens of the user are not the same for all clients.
    return auth.kind === 'passthrough' || auth.kind === 'oauth' || auth.kind === 'broken' ? 'never' : 'explicit'
  }
}

/** Creates the destinations of a rule before its first request. */
export function createDestinations(route: Route, listener: Listener, context: RuleContext): void {
  planForward(route, backendSections(context.policies, listener, route.route), undefined, context)
}

function planForward(
  route: Route,
  sections: readonly BackendFull[],
  maxBufferBytes: number | undefined,
  { destinations, services, sessionKeys, state, random }: RuleContext,
): { plan: Omit<ForwardPlan, 'backendRequestMs' | 'retry'>; hasBackendTransformation: boolean } {
  const outer = mergeBackend(sections)
  const backends = (route.backends ?? []).map((backend) => ({
    ...planBackend(backend, outer, destinations),
    service: backend.ref.backend === undefined ? undefined : services.get(backend.ref.backend, sections),
  }))
  const pickIndex = createWeightedPicker(
    backends.map(({ weight }) => weight),
    random,
  )
  const persistence = route.sessionPersistence && new SessionPersistence(route.sessionPersistence, route.route, sessionKeys, state.epochMs)
  const pickAny = (exchange: Exchange): PlannedBackend | undefined => {
    const key = backends.length > 1 ? keyOf(backends, exchange) : undefined
    if (key !== undefined) return pickByWeight(backends, key)
    return pickIndex === undefined ? undefined : backends[pickIndex()]
  }
  const pick = persistence === undefined ? pickAny : (exchange: Exchange) => persistence.backendOf(exchange, backends) ?? pickAny(exchange)
  // Providers and targets of a backend service have policies of their own.
  const hasBackendTransformation = backends.some(
    ({ destination, service }) =>
      destination.settings.transformation !== undefined || (service?.current !== undefined && service.current.mayTransform !== false),
  )
  return {
    plan: { maxBufferBytes, backends, pick, persistence, mirrors: planMirrors(route.filters?.mirrors, outer, destinations), random, registry: state.registry },
    hasBackendTransformation,
  }
}

/** The key of a request, if a backend of the rule picks its endpoints by keys. */
function keyOf(backends: readonly PlannedBackend[], exchange: Exchange): number | undefined {
  for (const { destination } of backends) if (destination.settings.loadBalancer?.hash !== undefined) return destination.keyOf(exchange)
  return undefined
}

/** All requests of a key get one backend; each has a share of the keys in proportion to its weight. */
function pickByWeight(backends: readonly PlannedBackend[], key: number): PlannedBackend | undefined {
  let best: PlannedBackend | undefined
  let most = -1
  for (const backend of backends) {
    const score = backend.weight > 0 ? rendezvousScore(key, hashText(backend.destination.name), backend.weight) : -1
    if (score > most) [best, most] = [backend, score]
  }
  return best
}

function planBackend(backend: WeightedBackend, outer: BackendFull | undefined, destinations: Destinations): Omit<PlannedBackend, 'service'> {
  return {
    destination: destinations.get(backend.ref, outer),
    weight: backend.weight ?? 1,
    requestHeaders: backend.requestHeaders ?? [],
    responseHeaders: backend.responseHeaders ?? [],
    redirect: backend.redirect,
    mirrors: planMirrors(backend.mirrors, outer, destinations),
  }
}

function planMirrors(mirrors: WeightedBackend['mirrors'], outer: BackendFull | undefined, destinations: Destinations): ForwardPlan['mirrors'] {
  return (mirrors ?? []).map(({ backend, numerator = 100, denominator = 100 }) => ({ destination: destinations.get(backend, outer), numerator, denominator }))
}
