import type { Backend, BackendFull } from '#gen/config/types.ts'
import type { Destinations } from '../destination/destinations.ts'
import { mergeBackend, targetKey, type PolicyIndex } from '../config/merge.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import type { Exchange } from '../exchange/exchange.ts'
import type { ResponseHead } from '../http/message.ts'
import type { PolicyState } from '../policy/state.ts'
import type { ForwardPlan } from './plan.ts'

/** A ProxyBackend that is more than one place to send a request to: it answers by itself and calls what it needs (LLM, MCP, agent runtime). */
export interface BackendService {
  /** Answers a request; the body of the answer may still be flowing. Rejects with a ProxyError. Retries are its own: `plan.retry` says how. */
  handle(exchange: Exchange, plan: ForwardPlan): Promise<ResponseHead>
  /** Takes a version of its config. What it learned of parts that stay, and sessions, outlive it. */
  update(config: ServiceConfig): void
  /** No new request will come; those in flight go on. */
  close(): void
  /** False: none of its parts transforms requests or responses, so chains need no step for that. Absent: one may. */
  readonly mayTransform?: boolean
}

/** What a service is made of. */
export interface ServiceConfig {
  readonly backend: Backend
  /** Policies from Gateway to rule, then those attached to the backend; weakest first. `backend.policies` is stronger than all of them. */
  readonly sections: readonly BackendFull[]
  /** The part of `sections` from Gateway to rule, merged: `outer` of the backend's parts. */
  readonly outer: BackendFull | undefined
  /** Policies attached to one part by its name (`sectionName`), weakest first; stronger than `sections`, weaker than what is written on the backend. */
  readonly sectionsOf: (part: string) => readonly BackendFull[]
  readonly snapshot: ConfigSnapshot
  readonly destinations: Destinations
  readonly state: PolicyState
}

type ServiceKind = 'ai' | 'mcp' | 'cloudBackend'
export type ServiceFactories = { readonly [K in ServiceKind]?: (config: ServiceConfig) => BackendService }

/** Where a rule finds the service of a backend over config versions. */
export interface ServiceSlot {
  /** Undefined while the backend is a plain destination, or gone. */
  current: BackendService | undefined
}

interface Known {
  readonly key: string
  readonly outerSections: readonly BackendFull[]
  readonly slot: ServiceSlot
  kind: ServiceKind | undefined
  /** Policies changed since a rule asked for it. */
  isStale: boolean
}

const kinds = ['ai', 'mcp', 'cloudBackend'] as const

/** The services that rules lead to: one for each backend and set of policies on the way to it. Rules hold them over config versions. */
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
      known = { key: backend, outerSections, slot: { current: undefined }, kind: undefined, isStale: false }
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

  /** Closes and forgets the services of backends that no route names any more. */
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
    const kind = kinds.find((name) => backend?.[name] !== undefined)
    const create = kind === undefined ? undefined : this.#factories[kind]
    if (kind !== known.kind || create === undefined) known.slot.current?.close()
    if (backend === undefined || create === undefined || this.#snapshot === undefined || this.#state === undefined) {
      known.slot.current = undefined
      known.kind = kind
      return
    }
    const config = this.#configOf(known, backend, this.#snapshot, this.#state)
    if (known.slot.current === undefined || kind !== known.kind) known.slot.current = create(config)
    else known.slot.current.update(config)
    known.kind = kind
  }

  #configOf({ key, outerSections }: Known, backend: Backend, snapshot: ConfigSnapshot, state: PolicyState): ServiceConfig {
    const [namespace = '', name = ''] = key.split('/')
    const attached = (section: string): BackendFull[] =>
      (this.#policies.get(targetKey('Backend', namespace, name, section)) ?? []).flatMap((policy) => policy.backend ?? []).toReversed()
    return {
      backend,
      sections: [...outerSections, ...attached('')],
      outer: mergeBackend(outerSections),
      sectionsOf: attached,
      snapshot,
      destinations: this.#destinations,
      state,
    }
  }
}
