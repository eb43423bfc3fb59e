import type { BackendFull, Listener, Route, WeightedBackend } from '#gen/config/types.ts'
import { compose, type Chain } from '../exchange/compose.ts'
import type { Destinations } from '../destination/destinations.ts'
import { effectiveFrontend } from './frontend.ts'
import { backendSections, effectiveTraffic, mergeBackend, type PolicyIndex } from '../config/merge.ts'
import { ProxyError } from '../exchange/error.ts'
import type { Exchange, RouteLabels } from '../exchange/exchange.ts'
import { forward } from '../forward/forward.ts'
import { compilePolicies } from '../policy/index.ts'
import type { PolicyState } from '../policy/state.ts'
import type { Services } from '../forward/services.ts'
import { createWeightedPicker } from '../route/weights.ts'
import { planRetry, planTimeouts } from '../forward/call-plan.ts'
import type { ForwardPlan, PlannedBackend } from '../forward/plan.ts'

/** Inputs of rule compilation besides the route and its listener. */
export interface RuleContext {
  readonly destinations: Destinations
  readonly policies: PolicyIndex
  readonly state: PolicyState
  readonly services: Services
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
    const { chain, requestMs, pick } = (this.#composed ??= composeRule(this.#route, this.#listener, this.#context))
    exchange.picked = pick?.()
    if (requestMs !== undefined) exchange.deadlineAtMs = exchange.startedAtMs + requestMs
    return chain(exchange)
  }
}

interface ComposedRule {
  readonly chain: Chain
  readonly requestMs: number | undefined
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
    return { chain: compose([], reject), requestMs: undefined, pick: undefined }
  }
  const traffic = effectiveTraffic(context.policies, 'PostRouting', listener, route.route)
  // Settings of the rule itself override those of policies, kind by kind (traffic.md §4.2).
  const timeouts = planTimeouts(route.timeouts, traffic?.timeouts)
  const retry = planRetry(route.retry, traffic?.retry)
  const hasBackendResponseHeaders = route.backends?.some(({ responseHeaders }) => responseHeaders !== undefined) ?? false
  const maxBufferBytes = effectiveFrontend(context.policies, listener.gateway).http?.maxBufferSize
  const limits = { backendRequestMs: timeouts.backendRequestMs, retry, maxBufferBytes }
  const { plan, hasBackendTransformation } = planForward(route, backendSections(context.policies, listener, route.route), limits, context)
  const policies = compilePolicies({ filters, traffic, hasBackendResponseHeaders, hasBackendTransformation, maxBufferBytes, state: context.state })
  return { chain: compose(policies, (exchange) => forward(exchange, plan)), requestMs: timeouts.requestMs, pick: plan.pick }
}

function planForward(
  route: Route,
  sections: readonly BackendFull[],
  limits: Pick<ForwardPlan, 'backendRequestMs' | 'retry' | 'maxBufferBytes'>,
  { destinations, services, state, random }: RuleContext,
): { plan: ForwardPlan; hasBackendTransformation: boolean } {
  const outer = mergeBackend(sections)
  const backends = (route.backends ?? []).map((backend) => ({
    ...planBackend(backend, outer, destinations),
    service: backend.ref.backend === undefined ? undefined : services.get(backend.ref.backend, sections),
  }))
  const pickIndex = createWeightedPicker(
    backends.map(({ weight }) => weight),
    random,
  )
  const pick = (): PlannedBackend | undefined => (pickIndex === undefined ? undefined : backends[pickIndex()])
  // Providers and targets of a backend service have policies of their own.
  const hasBackendTransformation = backends.some(
    ({ destination, service }) =>
      destination.settings.transformation !== undefined || (service?.current !== undefined && service.current.mayTransform !== false),
  )
  return {
    plan: { ...limits, backends, pick, mirrors: planMirrors(route.filters?.mirrors, outer, destinations), random, registry: state.registry },
    hasBackendTransformation,
  }
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
