import { defaultJsonLimits } from '#api/json/index.ts'
import { effectiveHostnames } from '#api/routing/hostnames.ts'
import type { Listener, Route, TcpRoute } from '#gen/config/types.ts'
import type { Exchange, RouteLabels } from '../request/exchange/exchange.ts'
import { compileRoutes, compileRoutesInSteps, type RouteTable } from '../route/table.ts'
import { HostTable } from '../route/hostnames.ts'
import { compareRouteAge } from '../route/age.ts'
import { checkMisdirected, type ListenerTable } from '../route/listeners.ts'
import { ProxyError } from '../request/exchange/error.ts'
import { compose, type Chain } from '../request/exchange/compose.ts'
import { normalizeTarget } from '../http/path.ts'
import { compileForwarding, type Forwarding } from './forwarding.ts'
import { effectiveFrontend } from './frontend.ts'
import { effectiveBackend, effectiveTraffic } from '../config/merge.ts'
import { recordBodies } from '../request/expression/record.ts'
import { compilePolicies } from '../policy/index.ts'
import { compileTelemetry, sampleTrace } from '../observe/telemetry/policy.ts'
import type { GatewayTelemetry } from '../observe/telemetry/gateway.ts'
import { compileTcpRule, type TcpRule } from './tcp-rule.ts'
import { createDestinations, Rule, type RuleContext } from './rule.ts'
import { runCooperatively, type Cooperative } from '../runtime/cooperative.ts'
import { gatewayTelemetry } from '../observe/telemetry/gateway.ts'

/** A route table built ahead of an update, and its inputs. */
export interface PreparedTable {
  readonly hostname: string | undefined
  readonly routes: readonly Route[]
  readonly table: RouteTable
}

/** Builds the route table of a listener ahead of an update; yields to traffic meanwhile. */
export async function prepareTable({ hostname }: Listener, routes: readonly Route[]): Promise<PreparedTable> {
  return { hostname, routes, table: await runCooperatively(compileRoutesInSteps(routes, hostname)) }
}

/**
 * A listener with the routes that it accepted. Keeps rules over config versions by the identity of their messages. Composes the
 * chain of a rule when the first request reaches it, so that a reload costs only what is used.
 */
export class RunningListener {
  readonly key: string
  /** Labels of requests that matched no rule. */
  readonly labels: Partial<RouteLabels>
  /** All listeners of the port that are selected by SNI, this one included. */
  siblings: ListenerTable<RunningListener> | undefined = undefined
  #listener: Listener
  #routes: readonly Route[] = []
  #table: RouteTable | undefined
  #preRouting: Chain | undefined
  #rules = new Map<Route, Rule>()
  #tcpRoutes: readonly TcpRoute[] = []
  #tcpTable = new HostTable<TcpRoute>()
  #tcpRules = new WeakMap<TcpRoute, TcpRule>()
  #reportedErrors: readonly string[] = []
  #telemetry: GatewayTelemetry | undefined
  #isFrontendCompiled = false
  #normalizesPaths = true
  #jsonLimits = defaultJsonLimits
  #forwarding: Forwarding = compileForwarding()

  constructor(listener: Listener) {
    this.key = listener.key
    this.labels = { gateway: `${listener.gateway.namespace}/${listener.gateway.name}`, listener: listener.name }
    this.#listener = listener
  }

  get listener(): Listener {
    return this.#listener
  }

  get hostname(): string | undefined {
    return this.#listener.hostname
  }

  /** Whether it holds these routes already. */
  has(listener: Listener, routes: readonly Route[]): boolean {
    return this.#listener === listener && isSame(this.#routes, routes)
  }

  /** Applies a version of the listener's config. Keeps what is unchanged; ignores a `prepared` table of other routes. */
  update(listener: Listener, routes: readonly Route[], tcpRoutes: readonly TcpRoute[], prepared?: PreparedTable): void {
    const isRelabelled = this.#listener !== listener
    if (isRelabelled) this.recompose()
    if (isRelabelled || !isSame(this.#routes, routes)) {
      this.#table = prepared !== undefined && prepared.hostname === listener.hostname && isSame(prepared.routes, routes) ? prepared.table : undefined
      this.#rules = keepRules(this.#rules, routes)
    }
    if (isRelabelled || !isSame(this.#tcpRoutes, tcpRoutes)) this.#tcpTable = tableOf(tcpRoutes, listener.hostname)
    this.#listener = listener
    this.#routes = routes
    this.#tcpRoutes = tcpRoutes
  }

  /** Builds the route table now instead of during the first request. */
  prepare(context: RuleContext): void {
    if (!this.#isFrontendCompiled) this.#compileFrontend(context)
    this.#table ??= compileRoutes(this.#routes, this.#listener.hostname)
  }

  /** Drops composed chains after attached policies or their secrets have changed. */
  recompose(): void {
    this.#rules.clear()
    this.#preRouting = undefined
    this.#tcpRules = new WeakMap()
    this.#isFrontendCompiled = false
  }

  /** Log and trace settings of its Gateway; undefined if no policy sets any. */
  get telemetry(): GatewayTelemetry | undefined {
    return this.#telemetry
  }

  #compileFrontend({ policies, state, random }: RuleContext): void {
    this.#isFrontendCompiled = true
    const frontend = effectiveFrontend(policies, this.#listener.gateway)
    this.#normalizesPaths = frontend.http?.pathNormalization !== 'Off'
    const { maxJsonDepth: maxDepth = defaultJsonLimits.maxDepth, maxJsonMembers: maxMembers = defaultJsonLimits.maxMembers } = frontend.http ?? {}
    const isDefault = maxDepth === defaultJsonLimits.maxDepth && maxMembers === defaultJsonLimits.maxMembers
    this.#jsonLimits = isDefault ? defaultJsonLimits : { maxDepth, maxMembers }
    this.#forwarding = compileForwarding(frontend.http)
    this.#telemetry = compileTelemetry(frontend, state, random)
  }

  handle(exchange: Exchange, context: RuleContext): Promise<void> | void {
    // First of all: labels, samplers and policies must not see a path that routes do not.
    if (this.#normalizesPaths) exchange.request.target = exchange.receivedTarget = normalizeTarget(exchange.receivedTarget)
    exchange.jsonLimits = this.#jsonLimits
    // Set before PreRouting policies run, because their expressions and log records name the listener.
    exchange.labels = this.labels
    exchange.trace?.add('listener', this.key)
    this.#forwarding.receive(exchange)
    const telemetry = this.#telemetry
    if (telemetry !== undefined) gatewayTelemetry.set(exchange, telemetry)
    if (telemetry?.tracing !== undefined) sampleTrace(exchange, telemetry.tracing)
    if (exchange.request.method === 'CONNECT') throw new ProxyError('METHOD_NOT_ALLOWED')
    const chain = (this.#preRouting ??= this.#composePreRouting(context))
    return telemetry?.bodies === undefined ? chain(exchange) : recordBodies(exchange, telemetry.bodies, () => chain(exchange))
  }

  /** PreRouting policies may change the inputs of route selection, so it runs at the end of their chain (traffic.md §5 step 3). */
  #composePreRouting(context: RuleContext): Chain {
    const traffic = effectiveTraffic(context.policies, 'PreRouting', this.#listener)
    const route = (exchange: Exchange): Promise<void> | void => this.#route(exchange, context)
    if (traffic === undefined) return route
    const maxBufferBytes = effectiveFrontend(context.policies, this.#listener.gateway).http?.maxBufferSize
    return compose(compilePolicies({ traffic, maxBufferBytes, state: context.state }), route)
  }

  #route(exchange: Exchange, context: RuleContext): Promise<void> | void {
    // After PreRouting, but with the Host that the client sent (traffic.md §5 step 4).
    const misdirected = this.siblings && checkMisdirected(this.siblings, this, exchange.receivedAuthority)
    if (misdirected !== undefined) throw new ProxyError(misdirected)
    this.prepare(context)
    const matched = this.#table?.match(exchange.request)
    if (matched === undefined) throw new ProxyError('ROUTE_NOT_FOUND')
    exchange.pathMatch = matched.match.path
    return this.#ruleOf(matched.route, context).handle(exchange)
  }

  /** Finds the L4 rule for a server name; undefined: close the connection. */
  findTcpRule(sni: string | undefined, context: RuleContext): TcpRule | undefined {
    const route = this.#tcpTable.lookup((sni ?? '').toLowerCase())
    return route && this.#tcpRuleOf(route, context)
  }

  /** Creates the destinations of its routes before the first request, for checks of their health. */
  *createDestinations(context: RuleContext): Cooperative<void> {
    for (const route of this.#tcpRoutes) {
      this.#tcpRuleOf(route, context)
      yield
    }
    for (const route of this.#routes) {
      createDestinations(route, this.#listener, context)
      yield
    }
  }

  #tcpRuleOf(route: TcpRoute, { destinations, policies, random }: RuleContext): TcpRule {
    let rule = this.#tcpRules.get(route)
    if (rule === undefined)
      this.#tcpRules.set(route, (rule = compileTcpRule(route, this.labels, destinations, random, effectiveBackend(policies, this.#listener))))
    return rule
  }

  /** Route patterns that do not compile; each table is reported once. */
  newErrors(): readonly string[] {
    const errors = this.#table?.errors ?? []
    if (errors === this.#reportedErrors) return []
    this.#reportedErrors = errors
    return errors
  }

  #ruleOf(route: Route, context: RuleContext): Rule {
    let rule = this.#rules.get(route)
    if (rule === undefined) this.#rules.set(route, (rule = new Rule(route, this.#listener, context)))
    return rule
  }
}

const isSame = <T>(a: readonly T[], b: readonly T[]): boolean => a.length === b.length && a.every((value, index) => value === b[index])

/** Keeps the rules of routes that still exist. */
function keepRules(rules: ReadonlyMap<Route, Rule>, routes: readonly Route[]): Map<Route, Rule> {
  const kept = new Map<Route, Rule>()
  if (rules.size === 0) return kept
  for (const route of routes) {
    const rule = rules.get(route)
    if (rule !== undefined) kept.set(route, rule)
  }
  return kept
}

/** Several routes on one hostname: the oldest wins, then `namespace/name` (traffic.md §7, Other kinds). */
function tableOf(routes: readonly TcpRoute[], hostname: string | undefined): HostTable<TcpRoute> {
  const table = new HostTable<TcpRoute>()
  for (const route of [...routes].sort(compareRouteAge))
    for (const effective of effectiveHostnames(route.hostnames, hostname)) if (table.get(effective) === undefined) table.set(effective, route)
  return table
}
