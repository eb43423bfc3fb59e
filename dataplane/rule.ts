import type { Route, WeightedBackend } from '#gen/config/types.ts'
import { compose, type Chain } from './compose.ts'
import type { Destinations } from './config/destinations.ts'
import { ProxyError } from './error.ts'
import type { Exchange, RouteLabels } from './exchange.ts'
import { forward } from './forward.ts'
import { compileFilters } from './policy/index.ts'
import { createWeightedPicker } from './route/weights.ts'
import { planRetry, planTimeouts, type ForwardPlan, type PlannedBackend } from './upstream/plan.ts'

/** What rules are compiled with. */
export interface RuleContext {
  readonly destinations: Destinations
  /** Uniform in [0, 1). */
  readonly random: () => number
}

/** One rule of a route on one listener: its policies and, at their end, its backends, composed on first use. */
export class Rule {
  readonly #route: Route
  readonly #labels: RouteLabels
  readonly #context: RuleContext
  #chain: Chain | undefined
  readonly #requestMs: number | undefined

  constructor(route: Route, labels: RouteLabels, context: RuleContext) {
    this.#route = route
    this.#labels = labels
    this.#context = context
    this.#requestMs = planTimeouts(route.timeouts).requestMs
  }

  handle(exchange: Exchange): Promise<void> | void {
    exchange.labels = this.#labels
    if (this.#requestMs !== undefined) exchange.deadlineAtMs = exchange.startedAtMs + this.#requestMs
    this.#chain ??= composeRule(this.#route, this.#context)
    return this.#chain(exchange)
  }
}

function composeRule(route: Route, context: RuleContext): Chain {
  const { filters } = route
  const invalid = filters?.invalid
  if (invalid !== undefined) {
    return compose([], () => {
      throw new ProxyError('FILTER_FAILED', { detail: invalid })
    })
  }
  const plan = planForward(route, context)
  return compose(compileFilters(filters), (exchange) => forward(exchange, plan))
}

function planForward(route: Route, { destinations, random }: RuleContext): ForwardPlan {
  const backends = (route.backends ?? []).map((backend) => planBackend(backend, destinations))
  const pickIndex = createWeightedPicker(
    backends.map(({ weight }) => weight),
    random,
  )
  return {
    pick: () => (pickIndex === undefined ? undefined : backends[pickIndex()]),
    mirrors: planMirrors(route.filters?.mirrors, destinations),
    backendRequestMs: planTimeouts(route.timeouts).backendRequestMs,
    retry: planRetry(route.retry),
    random,
  }
}

function planBackend(backend: WeightedBackend, destinations: Destinations): PlannedBackend {
  return {
    destination: destinations.get(backend.ref),
    weight: backend.weight ?? 1,
    requestHeaders: backend.requestHeaders ?? [],
    responseHeaders: backend.responseHeaders ?? [],
    redirect: backend.redirect,
    mirrors: planMirrors(backend.mirrors, destinations),
  }
}

function planMirrors(mirrors: WeightedBackend['mirrors'], destinations: Destinations): ForwardPlan['mirrors'] {
  return (mirrors ?? []).map(({ backend, numerator = 100, denominator = 100 }) => ({ destination: destinations.get(backend), numerator, denominator }))
}
