import type { Backend, BackendFull } from '#gen/config/types.ts'
import type { Destinations } from '../../net/destination/destinations.ts'
import { findKind } from '../../net/destination/kinds.ts'
import { mergeBackend, targetKey, type PolicyIndex } from '../../config/merge.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import type { PolicyState } from '../../policy/state.ts'
import type { BackendService, ServiceConfig, ServiceSlot } from './service.ts'

/** Creates the service of a backend. */
export type ServiceFactory = (config: ServiceConfig) => BackendService
/** By the kind of the backend: the name of its field in the Backend message. Those that the config needs are added before it is applied. */
export type ServiceFactories = { readonly [K in keyof Backend]?: ServiceFactory }

interface Known {
  readonly key: string
  readonly outerSections: readonly BackendFull[]
  readonly slot: ServiceSlot
  create: ServiceFactory | undefined
  /** Whether policies changed since a rule used the service. */
  isStale: boolean
}

/** The services of rules: one for each backend and set of policies from Gateway to rule. They are kept over config versions. */
export class Services {
  readonly #factories: ServiceFactories
  readonly #destinations: Destinations
  readonly #known = new Map<string, Known>()
  #snapshot: ConfigSnapshot | undefined
  #policies: PolicyIndex = new Map()
  #state: PolicyState | undefined

  constructor(factories: ServiceFactories, destinations: Destinations) {
    this.#factories = factories
    this.#destinations = destinations
  }

  /** The service of a backend under the policies from Gateway to rule, weakest first. */
  get(backend: string, outerSections: readonly BackendFull[]): ServiceSlot {
    const id = `${backend} ${JSON.stringify(outerSections)}`
    let known = this.#known.get(id)
    if (known === undefined) {
      known = { key: backend, outerSections, slot: { current: undefined }, create: undefined, isStale: false }
      this.#known.set(id, known)
      this.#configure(known)
    }
    known.isStale = false
    return known.slot
  }

  update(snapshot: ConfigSnapshot, policies: PolicyIndex, state: PolicyState): void {
    const arePoliciesNew = policies !== this.#policies
    const isUnchanged =
      !arePoliciesNew && state === this.#state && snapshot.backends === this.#snapshot?.backends && snapshot.services === this.#snapshot.services
    this.#snapshot = snapshot
    this.#policies = policies
    this.#state = state
    if (isUnchanged) return
    for (const known of this.#known.values()) {
      if (arePoliciesNew) known.isStale = true
      this.#configure(known)
    }
  }

  /** Closes and removes services of backends that no route references. */
  retain(refs: Iterable<{ readonly backend?: string }>): void {
    const used = new Set<string>()
    for (const { backend } of refs) if (backend !== undefined) used.add(backend)
    for (const [id, { key, slot, isStale }] of this.#known) {
      if (used.has(key) && !isStale) continue
      this.#known.delete(id)
      slot.current?.close()
    }
  }

  close(): void {
    for (const { slot } of this.#known.values()) slot.current?.close()
    this.#known.clear()
  }

  #configure(known: Known): void {
    const backend = this.#snapshot?.backends.get(known.key)
    const create = backend && findKind(backend, this.#factories)?.[1]
    const isOther = create !== known.create
    known.create = create
    if (isOther || create === undefined) known.slot.current?.close()
    if (backend === undefined || create === undefined || this.#snapshot === undefined || this.#state === undefined) {
      known.slot.current = undefined
      return
    }
    const config = this.#configOf(known, backend, this.#snapshot, this.#state)
    if (known.slot.current === undefined || isOther) known.slot.current = create(config)
    else known.slot.current.update(config)
  }

  #configOf({ key, outerSections }: Known, backend: Backend, snapshot: ConfigSnapshot, state: PolicyState): ServiceConfig {
    const policiesOf = (of: string, section: string): BackendFull[] => {
      const [namespace = '', name = ''] = of.split('/')
      return (this.#policies.get(targetKey('Backend', namespace, name, section)) ?? []).flatMap((policy) => policy.backend ?? []).toReversed()
    }
    return {
      backend,
      sections: [...outerSections, ...policiesOf(key, '')],
      outer: mergeBackend(outerSections),
      sectionsOf: (section) => policiesOf(key, section),
      policiesOf,
      snapshot,
      destinations: this.#destinations,
      state,
    }
  }
}
