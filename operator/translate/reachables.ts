import { keyOf, type Kind, type KubeObject, type ObjectByKind } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { describeUnguardedPaths, type UnguardedPaths } from './backend/unguarded.ts'
import { describeUnpricedModels, type UnpricedModels } from './backend/unpriced.ts'
import { backendStatus, readBackend, type BackendState } from './backend/proxy-backend.ts'
import { mergeIdentities, type UnsentIdentities } from './backend/identities.ts'
import type { SliceGroups } from './backend/slices.ts'
import type { Context } from './common/context.ts'
import { Cells, type Dependencies } from './common/dependencies.ts'
import { poolStatus, readPool, type PoolState } from './inference/inference-pool.ts'
import { backendTlsStatus, readBackendTlsPolicies, type BackendTls } from './policy/backend-tls-policy.ts'
import { findOverrides, indexPolicies } from './policy/overrides.ts'
import { isSamePolicy, policyStatus, readPolicy, type PolicyState } from './policy/proxy-policy.ts'
import type { World } from './reach/content.ts'
import type { Reachable } from './reach/graph.ts'
import type { Parents } from './route/attach.ts'
import type { StatusList } from './statuses.ts'

const ALL = 'all'

/** Warnings of one Gateway about backends. */
interface Warnings {
  readonly unguarded: UnguardedPaths
  readonly unpriced: UnpricedModels
  readonly identities: UnsentIdentities
}

/** The objects that Gateways reach through others: policies, backends and InferencePools. */
export class Reachables {
  /** Lookups that record what is looked up. */
  readonly world: World
  /** Those whose status may have changed. */
  readonly touched = new Set<Reachable>()
  readonly #context: Context
  readonly #parents: Parents
  readonly #dependencies: Dependencies
  readonly #policies: Cells<PolicyState>
  #policyIndex: ReturnType<typeof indexPolicies> = new Map()
  readonly #backends: Cells<BackendState>
  readonly #backendTls: Cells<BackendTls>
  readonly #pools: Cells<PoolState>
  #warnings: ReadonlyMap<string, readonly string[]> = new Map()
  #identities: UnsentIdentities = new Map()

  constructor(context: Context, parents: Parents, slices: SliceGroups, dependencies: Dependencies) {
    this.#context = context
    this.#parents = parents
    this.#dependencies = dependencies
    this.#policies = new Cells(dependencies)
    this.#backends = new Cells(dependencies)
    this.#backendTls = new Cells(dependencies)
    this.#pools = new Cells(dependencies)
    this.#backendTls.stale.add(ALL)
    this.world = {
      context,
      policies: dependencies.track('policies:', () => this.#policyIndex),
      backendTls: dependencies.track('tls:', () => this.#backendTls.get(ALL)?.index ?? new Map()),
      backends: dependencies.track('backend:', () => this.#backends),
      pools: dependencies.track('pool:', () => this.#pools),
      slices: dependencies.track('slices:', () => slices),
    }
  }

  markStale(kind: Kind, key: string): void {
    if (kind === 'ProxyPolicy') this.#policies.stale.add(key)
    else if (kind === 'ProxyBackend') this.#backends.stale.add(key)
    else if (kind === 'InferencePool' && this.#context.options.isInferenceEnabled) this.#pools.stale.add(key)
  }

  /** Reads the objects that changed. */
  update(snapshot: Snapshot, statuses: StatusList): void {
    this.#updatePolicies(snapshot, statuses)
    this.#updateEach('ProxyBackend', this.#backends, 'backend:', readBackend, snapshot, statuses)
    this.#updateBackendTls(statuses)
    this.#updateEach('InferencePool', this.#pools, 'pool:', readPool, snapshot, statuses)
  }

  #updatePolicies(snapshot: Snapshot, statuses: StatusList): void {
    const changed: PolicyState[] = []
    for (const key of this.#policies.takeStale()) {
      const [namespace = '', name = ''] = key.split('/')
      const old = this.#policies.get(key)
      const policy = snapshot.get('ProxyPolicy', namespace, name)
      if (policy) {
        const now = this.#policies.compute(key, () => {
          const read = readPolicy(this.#context, policy, this.#parents)
          return old && isSamePolicy(old, read) ? old : read
        })
        if (now === old) continue
        changed.push(now)
      } else {
        this.#policies.delete(key)
        statuses.set('ProxyPolicy', namespace, name, undefined)
      }
      if (old) changed.push(old)
    }
    if (changed.length === 0) return
    const policies = this.listPolicies(snapshot)
    this.#policyIndex = indexPolicies(policies)
    findOverrides(this.#policyIndex)
    for (const policy of policies) this.touched.add(policy)
    for (const { targets } of changed) for (const { node } of targets) this.#dependencies.change(`policies:${node}`)
  }

  #updateEach<K extends 'ProxyBackend' | 'InferencePool', S extends Reachable>(
    kind: K,
    cells: Cells<S>,
    token: string,
    read: (context: Context, object: ObjectByKind[K]) => S,
    snapshot: Snapshot,
    statuses: StatusList,
  ): void {
    for (const key of cells.takeStale()) {
      const [namespace = '', name = ''] = key.split('/')
      const object = snapshot.get(kind, namespace, name)
      if (object) this.touched.add(cells.compute(key, () => read(this.#context, object)))
      else {
        cells.delete(key)
        statuses.set(kind, namespace, name, undefined)
      }
      this.#dependencies.change(token + key)
    }
  }

  #updateBackendTls(statuses: StatusList): void {
    if (this.#backendTls.takeStale().length === 0) return
    const old = this.#backendTls.get(ALL)
    const now = this.#backendTls.compute(ALL, () => readBackendTlsPolicies(this.#context))
    for (const { policy } of old?.states ?? []) statuses.set('BackendTLSPolicy', policy.metadata.namespace, policy.metadata.name, undefined)
    for (const state of now.states) this.touched.add(state)
    for (const node of new Set([...(old?.index.keys() ?? []), ...now.index.keys()])) this.#dependencies.change(`tls:${node}`)
  }

  /** Sets the statuses of objects that changed, that other Gateways reach, or that other warnings of Gateways are about. */
  writeStatuses(gateways: readonly Warnings[], statuses: StatusList): void {
    const unguarded = describeUnguardedPaths(gateways.map((each) => each.unguarded))
    const unpriced = describeUnpricedModels(gateways.map((each) => each.unpriced))
    const warned = new Set([...unguarded.keys(), ...unpriced.keys()])
    const warnings = new Map([...warned].map((key) => [key, [unguarded.get(key) ?? [], unpriced.get(key) ?? []].flat()]))
    const identities = mergeIdentities(gateways.map((each) => each.identities))
    for (const key of new Set([this.#warnings, warnings, this.#identities, identities].flatMap((map) => [...map.keys()]))) {
      const backend = this.#backends.get(key)
      const isSame = this.#warnings.get(key)?.join() === warnings.get(key)?.join() && this.#identities.get(key)?.join() === identities.get(key)?.join()
      if (backend && !isSame) this.touched.add(backend)
    }
    this.#warnings = warnings
    this.#identities = identities
    const tls = new Set<Reachable>(this.#backendTls.get(ALL)?.states)
    const set = ({ kind, metadata }: KubeObject, status: Parameters<StatusList['set']>[3]): void =>
      statuses.set(kind, metadata.namespace, metadata.name, status)
    for (const state of this.touched) {
      // A state that was replaced or deleted may still be listed.
      if ('sections' in state) {
        if (this.#policies.get(state.key) === state) set(state.policy, policyStatus(state))
      } else if ('pool' in state) {
        if (this.#pools.get(keyOf(state.pool)) === state) set(state.pool, poolStatus(state))
      } else if ('backend' in state) {
        const key = keyOf(state.backend)
        if (this.#backends.get(key) === state) set(state.backend, backendStatus(state, warnings.get(key) ?? [], identities.get(key)))
      } else if (tls.has(state)) set(state.policy, backendTlsStatus(state))
    }
    this.touched.clear()
  }

  listPolicies(snapshot: Snapshot): PolicyState[] {
    return snapshot.list('ProxyPolicy').flatMap((policy) => this.#policies.get(keyOf(policy)) ?? [])
  }

  listBackends(snapshot: Snapshot): BackendState[] {
    return snapshot.list('ProxyBackend').flatMap((backend) => this.#backends.get(keyOf(backend)) ?? [])
  }
}
