import { randomBytes } from 'node:crypto'
import type { BackendFull, Bind, Listener, Route, TcpRoute } from '#gen/config/types.ts'
import { Destinations, type OnEviction } from '../net/destination/destinations.ts'
import { effectiveFrontend, heldBytesLimit, type EffectiveFrontend } from './frontend.ts'
import { indexPolicies } from '../config/merge.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import { bodyBudget } from '../http/budget.ts'
import { respondWithError } from '../request/exchange/compose.ts'
import { ProxyError } from '../request/exchange/error.ts'
import type { Exchange, RouteLabels } from '../request/exchange/exchange.ts'
import { prepareTable, RunningListener, type PreparedTable } from './listener.ts'
import { createListenerTable, selectListener, type ListenerTable } from '../route/listeners.ts'
import type { TcpRule } from './tcp-rule.ts'
import { runCooperatively, type Cooperative } from '../runtime/cooperative.ts'
import { deriveKey, type SessionKeys } from '../runtime/seal.ts'
import type { SharedCells } from '../runtime/shared-cells.ts'
import type { Quotas } from '../runtime/quotas.ts'
import type { Shares } from '../runtime/shares.ts'
import { createPolicyState, selectSecrets, type SharedState } from '../policy/state.ts'
import { retainPlugins, updatePlugins, verifyPlugins } from '../policy/plugins/host.ts'
import type { RuleContext } from './rule.ts'
import { Services, type ServiceFactories } from '../backend/forward/services.ts'
import { destinationKinds, kindOf, kinds as allKinds, type BackendKinds } from '../backend/kinds.ts'
import type { GatewayTelemetry } from '../observe/telemetry/gateway.ts'
import type { Logger } from '../observe/telemetry/log.ts'
import { createRegistry, type Registry } from '../observe/telemetry/metrics/registry.ts'
import { setKnownSecrets } from '../observe/telemetry/redact.ts'
import { Tracer } from '../observe/trace/tracer.ts'
import type { PoolFactory } from '../net/upstream/destination.ts'
import type { OpenConnections } from '../net/upstream/connections.ts'
import { LoopMarks } from '../net/upstream/loop.ts'
import { UsedRefs } from './used-refs.ts'

/** The listeners of one port, by protocol. */
export interface RunningBind {
  readonly bind: Bind
  /** HTTP listeners, by Host. */
  readonly http: ListenerTable<RunningListener>
  /** HTTPS and TLS listeners, by SNI. */
  readonly tls: ListenerTable<RunningListener>
  readonly tcp: RunningListener | undefined
}

export interface GatewayOptions {
  readonly createPool: PoolFactory
  readonly random?: () => number
  /** Clocks for policies; default the machine's. */
  readonly clocks?: Parameters<typeof createPolicyState>[0]
  /** Registry for metrics of policies and backends; default: a separate one that is not exposed. */
  readonly registry?: Registry
  /** Called when a health policy evicts an endpoint or restores it. */
  readonly onEviction?: OnEviction
  /** Node that this process runs on; default: unknown. */
  readonly nodeName?: string | undefined
  /** Factories of backend services; default: none. */
  readonly factories?: ServiceFactories
  /** Kinds of backends; default: all of the list. */
  readonly kinds?: BackendKinds
  /** Keys of login cookies. Default: one from `loopSecret`; if that is random, people log in again after a restart. */
  readonly loginKeys?: SessionKeys | undefined
  /** Common to the replicas of the Gateway; by it they recognize requests that return to them. Default: random. */
  readonly loopSecret?: Buffer | undefined
  /** Counts connections to upstreams; default: they are not limited. */
  readonly connections?: OpenConnections | undefined
  /** State of all workers; default: this thread handles all traffic. */
  readonly shared?: SharedState | undefined
  /** Memory of the counters of budgets that outlive the process; undefined: of the worker, or none. */
  readonly budgetCells?: SharedCells | undefined
  /** Gets shares of budgets that hold for all replicas; undefined: this is the only one. */
  readonly shares?: Shares | undefined
  /** Gets assignments from rate limit quota services; default: budgets are those of this replica. */
  readonly quotas?: Quotas | undefined
  /** Log of policies; undefined: none. */
  readonly log?: Logger | undefined
}

/**
 * Compiled config: binds, listeners, rules and destinations of the current snapshot. The request path starts in `handle`. Pure
 * in-memory state: `Binds` opens the sockets.
 */
export class Gateway {
  readonly destinations: Destinations
  readonly tracer = new Tracer()
  #context: RuleContext
  #snapshot: ConfigSnapshot | undefined
  #listeners = new Map<string, RunningListener>()
  /** Route tables of the next version, by listener. */
  #prepared = new Map<string, PreparedTable>()
  #binds = new Map<string, RunningBind>()
  readonly #marks: LoopMarks
  readonly #kinds: BackendKinds
  readonly #used = new UsedRefs()

  constructor({
    createPool,
    random = Math.random,
    clocks,
    registry = createRegistry(),
    onEviction,
    nodeName,
    factories = {},
    kinds = allKinds,
    loopSecret,
    connections,
    shared,
    budgetCells,
    shares,
    quotas,
    log,
    loginKeys: ownKeys = [],
  }: GatewayOptions) {
    const secret = loopSecret ?? randomBytes(32)
    this.#marks = new LoopMarks(secret)
    this.#kinds = kinds
    this.destinations = new Destinations(createPool, {
      marks: this.#marks,
      connections,
      nowMs: clocks?.monotonicMs,
      onEviction,
      nodeName,
      health: shared?.health,
      kinds: destinationKinds(kinds, registry, shared?.cells),
      listens: () => [...this.#binds.values()].map(({ bind }) => bind.port),
    })
    const loginKeys = ownKeys.length > 0 ? ownKeys : [deriveKey(secret, 'login')]
    const state = createPolicyState({ ...clocks, registry, destinations: this.destinations, shared, budgetCells, shares, quotas, log, loginKeys })
    const services = new Services(factories, this.destinations)
    this.#context = { destinations: this.destinations, services, sessionKeys: [deriveKey(secret, 'session-persistence')], policies: new Map(), state, random }
  }

  get binds(): ReadonlyMap<string, RunningBind> {
    return this.#binds
  }

  /** Builds the route tables of the next version, the slowest part of an update; yields to traffic meanwhile. */
  async prepare({ listeners, routes }: ConfigSnapshot): Promise<void> {
    if (listeners === this.#snapshot?.listeners && routes === this.#snapshot.routes) return
    const prepared = new Map<string, PreparedTable>()
    const byListener = groupByListener<Route>(routes.values())
    for (const listener of listeners.values()) {
      const own = byListener.get(listener.key) ?? []
      if (this.#listeners.get(listener.key)?.has(listener, own) !== true) prepared.set(listener.key, await prepareTable(listener, own))
    }
    this.#prepared = prepared
  }

  /** Applies a config version. Unchanged parts keep their state: connections, rules, tables. */
  update(snapshot: ConfigSnapshot): void {
    const before = this.#snapshot
    this.#snapshot = snapshot
    const arePoliciesNew = snapshot.policies !== before?.policies
    const { state } = this.#context
    const secrets = snapshot.secrets === before?.secrets ? state.secrets : selectSecrets(state.secrets, snapshot.secrets)
    setKnownSecrets(snapshot)
    const areSecretsNew = secrets !== state.secrets
    const areBackendChainsNew =
      snapshot.backends !== before?.backends && transformingBackends(snapshot, this.#kinds) !== transformingBackends(before, this.#kinds)
    if (arePoliciesNew) this.#context = { ...this.#context, policies: indexPolicies(snapshot.policies) }
    if (arePoliciesNew || snapshot.listeners !== before?.listeners) bodyBudget.limitBytes = heldBytesLimit(this.#context.policies, uniqueGateways(snapshot))
    const permitsInProcess = snapshot.listeners === before?.listeners ? state.permitsInProcess : permitsInProcessPlugins(snapshot)
    const isStateNew = areSecretsNew || permitsInProcess !== state.permitsInProcess
    if (isStateNew) this.#context = { ...this.#context, state: { ...state, secrets, ...(permitsInProcess !== undefined && { permitsInProcess }) } }
    if (arePoliciesNew || isStateNew) updatePlugins(this.#context.state, snapshot.policies.values())
    this.destinations.update(snapshot, this.#context.policies)
    this.#context.services.update(snapshot, this.#context.policies, this.#context.state)
    if (
      !arePoliciesNew &&
      !isStateNew &&
      !areBackendChainsNew &&
      snapshot.binds === before?.binds &&
      snapshot.listeners === before.listeners &&
      snapshot.routes === before.routes &&
      snapshot.tcpRoutes === before.tcpRoutes
    ) {
      if (snapshot.backends !== before.backends) this.#startChecks(snapshot)
      return
    }
    this.#listeners = this.#updateListeners(snapshot, arePoliciesNew || isStateNew || areBackendChainsNew)
    this.#binds = bindsOf(snapshot, this.#listeners)
    this.#startChecks(snapshot)
  }

  /** Checks of health begin before the first request. */
  #startChecks(snapshot: ConfigSnapshot): void {
    if (!hasChecks(snapshot)) return
    const { policies } = this.#context
    const create = function* (listeners: Iterable<RunningListener>, context: RuleContext): Cooperative<void> {
      for (const listener of listeners) yield* listener.createDestinations(context)
    }
    const stopIfOld = (): void => {
      if (this.#snapshot !== snapshot || this.#context.policies !== policies) throw new Error('another version of the config is in force')
    }
    // What cannot be compiled fails the first request.
    runCooperatively(create(this.#listeners.values(), this.#context), stopIfOld).catch(() => undefined)
  }

  /** Drops services and destinations that no route refers to. Not part of `update`, because traffic pauses during that. */
  tidy(): void {
    if (this.#snapshot === undefined) return
    const refs = this.#used.update(this.#snapshot)
    this.#context.services.retain(refs)
    this.destinations.retain(refs)
    retainPlugins(this.#context.state.registry, this.#snapshot.policies.values())
    verifyPlugins(this.#context.state, this.#snapshot.policies.values())
  }

  #updateListeners(snapshot: ConfigSnapshot, isRecomposed: boolean): Map<string, RunningListener> {
    const routes = groupByListener<Route>(snapshot.routes.values())
    const tcpRoutes = groupByListener<TcpRoute>(snapshot.tcpRoutes.values())
    const listeners = new Map<string, RunningListener>()
    for (const listener of snapshot.listeners.values()) {
      const running = this.#listeners.get(listener.key) ?? new RunningListener(listener)
      if (isRecomposed) running.recompose()
      running.update(listener, routes.get(listener.key) ?? [], tcpRoutes.get(listener.key) ?? [], this.#prepared.get(listener.key))
      running.prepare(this.#context)
      listeners.set(listener.key, running)
    }
    this.#prepared.clear()
    return listeners
  }

  /** Handles a request. Sets `exchange.response`; never rejects. */
  handle(exchange: Exchange): Promise<void> | void {
    return this.tracer.isArmed ? this.tracer.run(exchange, (traced) => this.#handle(traced)) : this.#handle(exchange)
  }

  #handle(exchange: Exchange): Promise<void> | void {
    try {
      this.#marks.receive(exchange.request)
      return this.#selectListener(exchange).handle(exchange, this.#context)
    } catch (error) {
      respondWithError(exchange, error)
    }
  }

  #selectListener(exchange: Exchange): RunningListener {
    const { connection, request } = exchange
    if (request.authority === '') throw new ProxyError('NO_AUTHORITY')
    const bind = this.#binds.get(connection.bind)
    if (bind === undefined) throw new ProxyError('BIND_NOT_FOUND')
    if (connection.listener === undefined) {
      const listener = selectListener(bind.http, request.authority)
      // CONNECT is rejected for every host.
      if (listener === undefined) throw new ProxyError(request.method === 'CONNECT' ? 'METHOD_NOT_ALLOWED' : 'LISTENER_NOT_FOUND')
      return listener
    }
    const own = this.#listeners.get(connection.listener)
    if (own === undefined) throw new ProxyError('LISTENER_NOT_FOUND')
    return own
  }

  /** Finds the L4 rule for a connection; undefined: close it. `labels` and `telemetry` are those of the listener. */
  findTcpRule(
    listenerKey: string,
    sni: string | undefined,
  ): { rule: TcpRule | undefined; labels: Partial<RouteLabels> | undefined; telemetry: GatewayTelemetry | undefined } {
    const listener = this.#listeners.get(listenerKey)
    return { rule: listener?.findTcpRule(sni, this.#context), labels: listener?.labels, telemetry: listener?.telemetry }
  }

  /** The frontend policies of a bind's Gateway. */
  frontendOf(bindKey: string): EffectiveFrontend {
    for (const { listener } of this.#listeners.values()) if (listener.bind === bindKey) return effectiveFrontend(this.#context.policies, listener.gateway)
    return {}
  }

  /** Labels of a listener for logs and metrics. */
  labelsOf(listenerKey: string | undefined): Partial<RouteLabels> | undefined {
    return listenerKey === undefined ? undefined : this.#listeners.get(listenerKey)?.labels
  }

  /** Errors of route patterns that do not compile and were not returned before; for the log. */
  newErrors(): readonly string[] {
    return [...this.#listeners.values()].flatMap((listener) => listener.newErrors())
  }

  close(): void {
    this.#context.services.close()
    this.destinations.close()
  }
}

/** A data plane serves one Gateway, whose listeners all carry its permission. */
function permitsInProcessPlugins({ listeners }: ConfigSnapshot): boolean {
  return listeners.values().some(({ inProcessPlugins }) => inProcessPlugins === true)
}

/** Whether any policy or backend has `health.active`. */
function hasChecks({ policies, backends }: ConfigSnapshot): boolean {
  return policies.values().some(({ backend }) => backend?.health?.active !== undefined) || backends.values().some(containsCheck)
}

/** Backends and each of their parts have policies. */
function containsCheck(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return (value as BackendFull).health?.active !== undefined || Object.values(value).some(containsCheck)
}

/** Keys of backends whose own policies may change the chains of rules that refer to them. */
function transformingBackends(snapshot: ConfigSnapshot | undefined, kinds: BackendKinds): string {
  const keys = []
  for (const backend of snapshot?.backends.values() ?? []) {
    const { kind, part } = kindOf(backend, kinds) ?? {}
    if (backend.policies?.transformation !== undefined || kind?.mayTransform?.(part) === true) keys.push(backend.key)
  }
  return keys.join(' ')
}

/** Each Gateway of the listeners once. */
function uniqueGateways({ listeners }: ConfigSnapshot): Iterable<Listener['gateway']> {
  return new Map([...listeners.values()].map(({ gateway }) => [`${gateway.namespace}/${gateway.name}`, gateway])).values()
}

function groupByListener<T extends { readonly listeners: readonly string[] }>(routes: Iterable<T>): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const route of routes) {
    for (const key of route.listeners) {
      const group = groups.get(key)
      if (group === undefined) groups.set(key, [route])
      else group.push(route)
    }
  }
  return groups
}

function bindsOf(snapshot: ConfigSnapshot, running: ReadonlyMap<string, RunningListener>): Map<string, RunningBind> {
  const byBind = new Map<string, RunningListener[]>()
  for (const listener of running.values()) byBind.set(listener.listener.bind, [...(byBind.get(listener.listener.bind) ?? []), listener])
  const binds = new Map<string, RunningBind>()
  for (const bind of snapshot.binds.values()) {
    const listeners = byBind.get(bind.key) ?? []
    const withProtocol = (...protocols: Listener['protocol'][]): RunningListener[] => listeners.filter(({ listener }) => protocols.includes(listener.protocol))
    const overTls = withProtocol('HTTPS', 'TLS')
    const tls = createListenerTable(overTls)
    for (const listener of overTls) listener.siblings = tls
    binds.set(bind.key, { bind, http: createListenerTable(withProtocol('HTTP')), tls, tcp: withProtocol('TCP')[0] })
  }
  return binds
}
