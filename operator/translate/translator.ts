import { isDeepStrictEqual } from 'node:util'
import { compareObjects, compareSnapshots, createSnapshot, type Snapshot } from '../source/snapshot.ts'
import { keyOf, type EndpointSlice, type Kind, type KubeObject, type ListenerSet } from '../source/objects.ts'
import { readBackend, backendStatus, type BackendState } from './backend/proxy-backend.ts'
import { findUnsentIdentities, mergeIdentities, type UnsentIdentities } from './backend/identities.ts'
import { findServers } from './backend/servers.ts'
import { findSliceService } from './backend/service.ts'
import { describeUnguardedPaths, findUnguardedPaths, type UnguardedPaths } from './backend/unguarded.ts'
import { addRoute, bindRoute, collectGateway, compileRoute, type Attached } from './collect.ts'
import { createContext, type Context, type TranslateOptions } from './common/context.ts'
import { Cells, Dependencies } from './common/dependencies.ts'
import { gatewayStatus, readGateway, type GatewayState } from './gateway/gateway.ts'
import { gatewayClassStatus, isOwnClass } from './gateway/gateway-class.ts'
import type { ListenerState } from './gateway/listener.ts'
import { findParentGateway, listenerSetStatus } from './gateway/listener-set.ts'
import { poolStatus, readPool, type PoolState } from './inference/inference-pool.ts'
import { backendTlsStatus, readBackendTlsPolicies, type BackendTls, type BackendTlsState } from './policy/backend-tls-policy.ts'
import { findOverrides, indexPolicies } from './policy/overrides.ts'
import { isSamePolicy, policyStatus, readPolicy, type PolicyState } from './policy/proxy-policy.ts'
import { findDocuments } from './reach/documents.ts'
import { findPluginImages } from './reach/plugin-images.ts'
import { findKeySets } from './reach/key-sets.ts'
import { leave, walk, type Reached, type World } from './reach/reach.ts'
import { attach, indexParents, type AnyRoute, type Parents } from './route/attach.ts'
import { routeStatus, type CompiledRoute } from './route/route.ts'
import { StatusList } from './statuses.ts'
import type { ConfigMessage, Translation } from '../model/translation.ts'

/**
 * Makes a function that translates one snapshot after another. It computes again only what depends on objects that differ from the previous
 * snapshot by identity; the result is that of `translate`. Messages and statuses that did not change keep their identity.
 */
export function createTranslator(): (snapshot: Snapshot, options?: TranslateOptions) => Translation {
  let translator: Translator | undefined
  return (snapshot, options = {}) => {
    const current = translator?.fits(options) === true ? translator : new Translator(options)
    // After an exception nothing that was computed can be relied on.
    translator = undefined
    const translation = current.translate(snapshot)
    translator = current
    return translation
  }
}

/** A route with the Gateways that accept it. */
interface RouteState {
  readonly route: AnyRoute
  readonly compiled: CompiledRoute
  /** Whether a parentRef names a parent of ours. */
  readonly isAttached: boolean
  readonly gateways: ReadonlyMap<GatewayState, Attached>
}

/** The routes of one Gateway by `<kind>/<namespace>/<name>`. */
interface GatewayRoutes {
  byKey: Map<string, RouteState>
  isSorted: boolean
}

/** The result for one Gateway. */
interface Output {
  readonly gateway: GatewayState
  readonly messages: readonly ConfigMessage[]
  readonly reached: Reached
  readonly unguarded: UnguardedPaths
  readonly identities: UnsentIdentities
}

const routeKinds: readonly string[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'] satisfies readonly Kind[]
/** Kinds whose own status translation does not read. Of a route it is read only while the route names no parent of ours. */
const statusIsUnread: ReadonlySet<string> = new Set([...routeKinds, 'Gateway', 'GatewayClass', 'ListenerSet', 'ProxyBackend'])
const ALL = 'all'

class Translator {
  readonly #options: TranslateOptions
  readonly #context: Context
  readonly #dependencies = new Dependencies()
  #snapshot: Snapshot = createSnapshot([])

  /** By key of the parent Gateway. */
  #listenerSets: ReadonlyMap<string, readonly ListenerSet[]> = new Map()
  /** By key of the Service. */
  readonly #slices = new Map<string, readonly EndpointSlice[]>()
  readonly #gateways = this.#cells<GatewayState | undefined>()
  #parents: ReturnType<typeof indexParents> = new Map()
  readonly #routes = this.#cells<RouteState>()
  /** By key of the Gateway. */
  readonly #gatewayRoutes = new Map<string, GatewayRoutes>()
  readonly #policies = this.#cells<PolicyState>()
  #policyIndex: ReturnType<typeof indexPolicies> = new Map()
  readonly #backends = this.#cells<BackendState>()
  readonly #backendTls = this.#cells<BackendTls>()
  readonly #pools = this.#cells<PoolState>()
  readonly #outputs = this.#cells<Output>()
  readonly #statuses = new StatusList()
  /** Policies, backends and pools whose status may have changed. */
  readonly #touched = new Set<PolicyState | BackendState | BackendTlsState | PoolState>()
  #warnings: ReadonlyMap<string, string> = new Map()
  #identities: UnsentIdentities = new Map()
  /** Lookups that record what is looked up. */
  readonly #tracked: World & { readonly parents: Parents }

  constructor(options: TranslateOptions) {
    this.#options = options
    const { read } = this.#dependencies
    const tracked: Snapshot = {
      get: (kind, namespace, name) => {
        read(`${kind}/${namespace}/${name}`)
        return this.#snapshot.get(kind, namespace, name)
      },
      list: (kind) => {
        read(`${kind}/*`)
        return this.#snapshot.list(kind)
      },
      inNamespace: (kind, namespace) => {
        read(`${kind}/${namespace}/*`)
        return this.#snapshot.inNamespace(kind, namespace)
      },
    }
    this.#context = createContext(tracked, options)
    const dependencies = this.#dependencies
    this.#tracked = {
      context: this.#context,
      parents: dependencies.track('parent:', () => this.#parents),
      policies: dependencies.track('policies:', () => this.#policyIndex),
      backendTls: dependencies.track('tls:', () => this.#backendTls.get(ALL)?.index ?? new Map()),
      backends: dependencies.track('backend:', () => this.#backends),
      pools: dependencies.track('pool:', () => this.#pools),
      slices: dependencies.track('slices:', () => this.#slices),
    }
    this.#backendTls.stale.add(ALL)
  }

  #cells<V>(): Cells<V> {
    return new Cells(this.#dependencies)
  }

  /** Whether the options are those of this translator. */
  fits(options: TranslateOptions): boolean {
    return isDeepStrictEqual(options, this.#options)
  }

  translate(snapshot: Snapshot): Translation {
    const before = this.#snapshot
    this.#snapshot = snapshot
    this.#findChanges(before)
    this.#updateGateways()
    this.#updateRoutes()
    this.#updatePolicies()
    this.#updateBackends()
    this.#updateBackendTls()
    this.#updatePools()
    this.#updateOutputs()
    const outputs = snapshot.list('Gateway').flatMap((gateway) => this.#outputs.get(keyOf(gateway)) ?? [])
    this.#updateStatuses(outputs)
    const backends = snapshot.list('ProxyBackend').flatMap((backend) => this.#backends.get(keyOf(backend)) ?? [])
    return {
      gateways: new Map(outputs.map(({ gateway, messages }) => [gateway.key, messages])),
      statuses: this.#statuses.list(),
      keySets: findKeySets(this.#tracked, this.#listPolicies(), backends),
      documents: findDocuments(this.#tracked, backends),
      pluginImages: findPluginImages(this.#listPolicies()),
      mcpServers: findServers(backends),
    }
  }

  /** Marks everything as stale that depends on an object that differs from the previous snapshot. */
  #findChanges(before: Snapshot): void {
    const slices: { old: EndpointSlice | undefined; now: EndpointSlice | undefined }[] = []
    const sets: ListenerSet[] = []
    compareSnapshots(before, this.#snapshot, (old, now) => {
      const object = now ?? old
      if (!object) return
      const { kind } = object
      const { namespace, name } = object.metadata
      const key = `${kind}/${namespace}/${name}`
      if (old && now && isStatusOnly(old, now)) {
        if (routeKinds.includes(kind) && this.#routes.get(key)?.isAttached === false) this.#routes.stale.add(key)
        return
      }
      const { change } = this.#dependencies
      change(key)
      change(`${kind}/*`)
      change(`${kind}/${namespace}/*`)
      if (kind === 'EndpointSlice') slices.push({ old: old as EndpointSlice | undefined, now: now as EndpointSlice | undefined })
      else if (kind === 'ListenerSet') sets.push(...([old, now] as (ListenerSet | undefined)[]).flatMap((set) => set ?? []))
      else if (kind === 'GatewayClass') this.#statuses.set(kind, '', name, now?.kind === kind && isOwnClass(now) ? gatewayClassStatus(now) : undefined)
      else if (routeKinds.includes(kind)) this.#routes.stale.add(key)
      else this.#cellsOf(kind)?.stale.add(keyOf(object))
    })
    this.#updateSlices(slices)
    if (sets.length === 0) return
    for (const set of sets) this.#dependencies.change(`sets:${findParentGateway(set)}`)
    this.#listenerSets = Map.groupBy(this.#snapshot.list('ListenerSet'), (set) => findParentGateway(set) ?? '')
  }

  #cellsOf(kind: Kind): Cells<unknown> | undefined {
    switch (kind) {
      case 'Gateway':
        return this.#gateways
      case 'ProxyPolicy':
        return this.#policies
      case 'ProxyBackend':
        return this.#backends
      case 'InferencePool':
        return this.#context.options.isInferenceEnabled ? this.#pools : undefined
      default:
        return undefined
    }
  }

  #updateSlices(changes: readonly { readonly old: EndpointSlice | undefined; readonly now: EndpointSlice | undefined }[]): void {
    const changed = new Map<string, { olds: Set<EndpointSlice>; news: EndpointSlice[] }>()
    const groupOf = (slice: EndpointSlice): { olds: Set<EndpointSlice>; news: EndpointSlice[] } => {
      const key = findSliceService(slice)
      const group = changed.get(key) ?? { olds: new Set(), news: [] }
      changed.set(key, group)
      return group
    }
    for (const { old, now } of changes) {
      if (old) groupOf(old).olds.add(old)
      if (now) groupOf(now).news.push(now)
    }
    for (const [key, { olds, news }] of changed) {
      this.#dependencies.change(`slices:${key}`)
      const group = [...(this.#slices.get(key) ?? []).filter((slice) => !olds.has(slice)), ...news].toSorted(compareObjects)
      if (group.length > 0) this.#slices.set(key, group)
      else this.#slices.delete(key)
    }
  }

  #updateGateways(): void {
    let isChanged = false
    for (const key of this.#gateways.takeStale()) {
      const old = this.#gateways.get(key)
      const [namespace = '', name = ''] = key.split('/')
      const object = this.#snapshot.get('Gateway', namespace, name)
      const now =
        object &&
        this.#gateways.compute(key, () => {
          this.#dependencies.read(`sets:${key}`)
          return readGateway(this.#context, object, this.#listenerSets.get(key) ?? [])
        })
      if (!object) this.#gateways.delete(key)
      if (!old && !now) continue
      isChanged = true
      this.#outputs.stale.add(key)
      this.#dependencies.change(`parent:Gateway/${key}`)
      for (const set of [...(old?.sets ?? []), ...(now?.sets ?? [])]) this.#dependencies.change(`parent:ListenerSet/${set.key}`)
    }
    if (isChanged) this.#parents = indexParents(this.#snapshot.list('Gateway').flatMap((gateway) => this.#gateways.get(keyOf(gateway)) ?? []))
  }

  #updateRoutes(): void {
    for (const key of this.#routes.takeStale()) {
      const [kind = '', namespace = '', name = ''] = key.split('/')
      const old = this.#routes.get(key)
      const route = this.#snapshot.get(kind as AnyRoute['kind'], namespace, name)
      for (const { key: gateway } of old?.gateways.keys() ?? []) this.#outputs.stale.add(gateway)
      if (!route) {
        for (const { key: gateway } of old?.gateways.keys() ?? []) this.#gatewayRoutes.get(gateway)?.byKey.delete(key)
        this.#routes.delete(key)
        this.#statuses.set(kind, namespace, name, undefined)
        continue
      }
      const now = this.#routes.compute(key, () => this.#readRoute(route))
      const gateways = new Set([...now.gateways.keys()].map((gateway) => gateway.key))
      for (const { key: gateway } of old?.gateways.keys() ?? []) if (!gateways.has(gateway)) this.#gatewayRoutes.get(gateway)?.byKey.delete(key)
      for (const gateway of gateways) {
        this.#outputs.stale.add(gateway)
        const routes = this.#gatewayRoutes.get(gateway) ?? { byKey: new Map(), isSorted: true }
        this.#gatewayRoutes.set(gateway, routes)
        routes.isSorted &&= routes.byKey.has(key)
        routes.byKey.set(key, now)
      }
    }
  }

  #readRoute(route: AnyRoute): RouteState {
    const context = this.#context
    const attachments = attach(context, route, this.#tracked.parents)
    const compiled: CompiledRoute = attachments.length > 0 ? compileRoute(context, route) : { messages: [], targets: [] }
    const listeners = new Map<GatewayState, Set<ListenerState>>()
    for (const attachment of attachments) {
      const known = listeners.get(attachment.gateway)
      const all = new Set(attachment.listeners)
      if (all.size > 0) listeners.set(attachment.gateway, known ? known.union(all) : all)
    }
    const { namespace, name } = route.metadata
    this.#statuses.set(route.kind, namespace, name, routeStatus(route, attachments, compiled))
    const gateways = new Map([...listeners].map(([gateway, accepting]) => [gateway, bindRoute(compiled, accepting)]))
    return { route, compiled, isAttached: attachments.length > 0, gateways }
  }

  #listPolicies(): PolicyState[] {
    return this.#snapshot.list('ProxyPolicy').flatMap((policy) => this.#policies.get(keyOf(policy)) ?? [])
  }

  #updatePolicies(): void {
    const changed: PolicyState[] = []
    for (const key of this.#policies.takeStale()) {
      const [namespace = '', name = ''] = key.split('/')
      const old = this.#policies.get(key)
      const policy = this.#snapshot.get('ProxyPolicy', namespace, name)
      if (policy) {
        const now = this.#policies.compute(key, () => {
          const read = readPolicy(this.#context, policy, this.#tracked.parents)
          return old && isSamePolicy(old, read) ? old : read
        })
        if (now === old) continue
        changed.push(now)
      } else {
        this.#policies.delete(key)
        this.#statuses.set('ProxyPolicy', namespace, name, undefined)
      }
      if (old) changed.push(old)
    }
    if (changed.length === 0) return
    const policies = this.#listPolicies()
    this.#policyIndex = indexPolicies(policies)
    findOverrides(this.#policyIndex)
    for (const policy of policies) this.#touched.add(policy)
    for (const { targets } of changed) for (const { node } of targets) this.#dependencies.change(`policies:${node}`)
  }

  #updateBackends(): void {
    for (const key of this.#backends.takeStale()) {
      const [namespace = '', name = ''] = key.split('/')
      const backend = this.#snapshot.get('ProxyBackend', namespace, name)
      if (backend) this.#touched.add(this.#backends.compute(key, () => readBackend(this.#context, backend)))
      else {
        this.#backends.delete(key)
        this.#statuses.set('ProxyBackend', namespace, name, undefined)
      }
      this.#dependencies.change(`backend:${key}`)
    }
  }

  #updateBackendTls(): void {
    if (this.#backendTls.takeStale().length === 0) return
    const old = this.#backendTls.get(ALL)
    const now = this.#backendTls.compute(ALL, () => readBackendTlsPolicies(this.#context))
    for (const { policy } of old?.states ?? []) this.#statuses.set('BackendTLSPolicy', policy.metadata.namespace, policy.metadata.name, undefined)
    for (const state of now.states) this.#touched.add(state)
    for (const node of new Set([...(old?.index.keys() ?? []), ...now.index.keys()])) this.#dependencies.change(`tls:${node}`)
  }

  #updatePools(): void {
    for (const key of this.#pools.takeStale()) {
      const [namespace = '', name = ''] = key.split('/')
      const pool = this.#snapshot.get('InferencePool', namespace, name)
      if (pool) this.#touched.add(this.#pools.compute(key, () => readPool(this.#context, pool)))
      else {
        this.#pools.delete(key)
        this.#statuses.set('InferencePool', namespace, name, undefined)
      }
      this.#dependencies.change(`pool:${key}`)
    }
  }

  #updateOutputs(): void {
    const keys = this.#outputs.takeStale()
    for (const key of keys) {
      const old = this.#outputs.get(key)
      if (!old) continue
      leave(old.gateway, old.reached)
      this.#touch(old.reached)
      const { namespace, name } = old.gateway.gateway.metadata
      this.#statuses.set('Gateway', namespace, name, undefined)
      for (const { set } of old.gateway.sets) this.#statuses.set('ListenerSet', set.metadata.namespace, set.metadata.name, undefined)
    }
    for (const key of keys) {
      const gateway = this.#gateways.get(key)
      if (!gateway) {
        this.#outputs.delete(key)
        continue
      }
      const output = this.#outputs.compute(key, () => this.#buildOutput(gateway))
      this.#touch(output.reached)
      const { namespace, name } = gateway.gateway.metadata
      this.#statuses.set('Gateway', namespace, name, gatewayStatus(gateway))
      for (const set of gateway.sets) this.#statuses.set('ListenerSet', set.set.metadata.namespace, set.set.metadata.name, listenerSetStatus(set))
    }
  }

  #touch({ policies, backendTls, backends, pools }: Reached): void {
    for (const states of [policies, backendTls, backends, pools]) for (const state of states) this.#touched.add(state)
  }

  #buildOutput(gateway: GatewayState): Output {
    for (const listener of [...gateway.listeners, ...gateway.sets.flatMap((set) => set.listeners)]) listener.attached = 0
    const collected = collectGateway(gateway)
    for (const { route, compiled, gateways } of this.#listRoutes(gateway.key)) {
      const attached = gateways.get(gateway)
      if (attached) addRoute(route, compiled, attached, collected)
    }
    const reached = walk(this.#tracked, gateway, collected.nodes, collected.targets, collected.messages)
    const messages = collected.messages.list()
    return { gateway, messages, reached, unguarded: findUnguardedPaths(messages), identities: findUnsentIdentities(messages, gateway) }
  }

  /** The routes of a Gateway by kind, namespace and name. */
  #listRoutes(gateway: string): Iterable<RouteState> {
    const routes = this.#gatewayRoutes.get(gateway)
    if (routes?.isSorted === false) {
      const rankOf = ({ route }: RouteState): number => routeKinds.indexOf(route.kind)
      routes.byKey = new Map([...routes.byKey].toSorted(([, a], [, b]) => rankOf(a) - rankOf(b) || compareObjects(a.route, b.route)))
      routes.isSorted = true
    }
    return routes?.byKey.values() ?? []
  }

  #updateStatuses(outputs: readonly Output[]): void {
    const warnings = describeUnguardedPaths(outputs.map(({ unguarded }) => unguarded))
    const identities = mergeIdentities(outputs.map((output) => output.identities))
    for (const key of new Set([this.#warnings, warnings, this.#identities, identities].flatMap((map) => [...map.keys()]))) {
      const backend = this.#backends.get(key)
      const isSame = this.#warnings.get(key) === warnings.get(key) && this.#identities.get(key)?.join() === identities.get(key)?.join()
      if (backend && !isSame) this.#touched.add(backend)
    }
    this.#warnings = warnings
    this.#identities = identities
    const tls = new Set(this.#backendTls.get(ALL)?.states)
    for (const state of this.#touched) {
      // A state that was replaced or deleted may still be listed.
      if ('sections' in state) {
        if (this.#policies.get(state.key) === state) this.#setStatus(state.policy, policyStatus(state))
      } else if ('pool' in state) {
        if (this.#pools.get(keyOf(state.pool)) === state) this.#setStatus(state.pool, poolStatus(state))
      } else if ('backend' in state) {
        const key = keyOf(state.backend)
        const warning = warnings.get(key)
        if (this.#backends.get(key) === state) this.#setStatus(state.backend, backendStatus(state, warning === undefined ? [] : [warning], identities.get(key)))
      } else if (tls.has(state)) this.#setStatus(state.policy, backendTlsStatus(state))
    }
    this.#touched.clear()
  }

  #setStatus({ kind, metadata }: KubeObject, status: Parameters<StatusList['set']>[3]): void {
    this.#statuses.set(kind, metadata.namespace, metadata.name, status)
  }
}

/** Whether two versions of an object differ in nothing but a status that translation does not read. */
function isStatusOnly(old: KubeObject, now: KubeObject): boolean {
  return statusIsUnread.has(now.kind) && 'spec' in old && 'spec' in now && old.spec === now.spec && old.metadata === now.metadata
}
