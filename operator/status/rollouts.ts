import { advance, changesOf, rolloutsOf, type RolloutChange } from '#api/rollout/rollout.ts'
import { sumSamples, type RolloutSample } from '#api/rollout/samples.ts'
import type { AIModelRolloutState, Backend } from '#gen/config/types.ts'
import type { ConfigMessage, ObjectStatus, Translation } from '../model/translation.ts'
import type { KubeObject } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { changeKind } from './kind.ts'
import type { Transition } from './transitions.ts'

/** The states of the rollouts of all backends, by key of the backend. */
type States = ReadonlyMap<string, readonly AIModelRolloutState[]>

/**
 * The rollouts of models in a cluster (llm.md §15.7): the leader moves them on and writes their states to ProxyBackends, from which the other replicas of the
 * operator read them. All serve the same states to data planes.
 */
export class RolloutBook {
  #states: States = new Map()
  /** Messages and statuses keep their identity while nothing has changed: server and writer compare by it. */
  readonly #messages = new WeakMap<object, { readonly states: readonly AIModelRolloutState[]; readonly result: ConfigMessage }>()
  readonly #statuses = new WeakMap<ObjectStatus, { readonly states: readonly AIModelRolloutState[]; readonly result: ObjectStatus }>()

  /** Takes over what the statuses of objects say. A leader calls it when it begins, others whenever statuses may have changed. */
  read(
    snapshot: Pick<Snapshot, 'list'>,
    find: (kind: 'ProxyBackend', namespace: string, name: string) => { readonly object: KubeObject } | undefined,
  ): boolean {
    const read = new Map<string, readonly AIModelRolloutState[]>()
    for (const { metadata } of snapshot.list('ProxyBackend')) {
      // A snapshot has the statuses of its time.
      const { status } = (find('ProxyBackend', metadata.namespace, metadata.name)?.object ?? {}) as { readonly status?: object }
      const { rollouts } = (status ?? {}) as { readonly rollouts?: readonly AIModelRolloutState[] }
      if (Array.isArray(rollouts) && rollouts.length > 0) read.set(`${metadata.namespace}/${metadata.name}`, rollouts)
    }
    return this.#replace(read)
  }

  /** Moves the rollouts on by what data planes measured. Returns what began another step or ended; undefined: no state has changed. */
  advance({ gateways }: Pick<Translation, 'gateways'>, samples: readonly RolloutSample[], nowMs: number): readonly RolloutChange[] | undefined {
    const states = new Map<string, readonly AIModelRolloutState[]>()
    const changes: RolloutChange[] = []
    for (const [key, backend] of backendsOf(gateways)) {
      const before = this.#states.get(key) ?? []
      const after = advance(backend, before, samples, nowMs)
      states.set(key, after)
      changes.push(...changesOf(key, before, after))
    }
    return this.#replace(states) ? changes : undefined
  }

  #replace(states: States): boolean {
    const merged = new Map(
      [...states].map(([key, list]) => [key, JSON.stringify(this.#states.get(key)) === JSON.stringify(list) ? (this.#states.get(key) ?? list) : list]),
    )
    const isSame = merged.size === this.#states.size && [...merged].every(([key, list]) => this.#states.get(key) === list)
    this.#states = merged
    return !isSame
  }

  /** The config with the states in its backends. */
  serve<T extends Pick<Translation, 'gateways'>>(translation: T): T {
    const isAny = translation.gateways.values().some((messages) => messages.some(hasRollouts))
    if (!isAny) return translation
    const gateways = new Map(
      [...translation.gateways].map(([key, messages]) => [key, messages.some(hasRollouts) ? messages.map((each) => this.#withStates(each)) : messages]),
    )
    return { ...translation, gateways }
  }

  #withStates(entry: ConfigMessage): ConfigMessage {
    if (!hasRollouts(entry)) return entry
    const states = this.#states.get(entry.key) ?? none
    const known = this.#messages.get(entry.message)
    if (known?.states === states) return known.result
    const result = { ...entry, message: { ...entry.message, rollouts: [...states] } } as ConfigMessage
    this.#messages.set(entry.message, { states, result })
    return result
  }

  /** The statuses with the states in those of ProxyBackends. */
  addTo(statuses: readonly ObjectStatus[]): readonly ObjectStatus[] {
    if (this.#states.size === 0) return statuses
    return changeKind(statuses, 'ProxyBackend', (status) => {
      const states = this.#states.get(`${status.namespace ?? ''}/${status.name}`)
      if (states === undefined) return status
      const known = this.#statuses.get(status)
      if (known?.states === states) return known.result
      const result = { ...status, status: { ...status.status, rollouts: states } }
      this.#statuses.set(status, { states, result })
      return result
    })
  }
}

const none: readonly AIModelRolloutState[] = []

const hasRollouts = ({ kind, message }: ConfigMessage): boolean => kind === 'backend' && rolloutsOf(message as Backend).length > 0

/** The backends with rollouts, each once: those of all Gateways are the same. */
function backendsOf(gateways: Translation['gateways']): ReadonlyMap<string, Backend> {
  const found = new Map<string, Backend>()
  for (const messages of gateways.values())
    for (const entry of messages) if (hasRollouts(entry) && !found.has(entry.key)) found.set(entry.key, entry.message as Backend)
  return found
}

/** The samples of all Gateways. A data plane speaks only for backends that its Gateway reaches. */
export function samplesOf({ gateways }: Pick<Translation, 'gateways'>, find: (gateway: string) => readonly RolloutSample[] | undefined): RolloutSample[] {
  const found: RolloutSample[] = []
  for (const [gateway, messages] of gateways) {
    const samples = find(gateway) ?? []
    if (samples.length === 0) continue
    const reached = new Set(messages.flatMap(({ kind, key }) => (kind === 'backend' ? [key] : [])))
    found.push(...samples.filter(({ backend }) => reached.has(backend)))
  }
  return sumSamples(found)
}

/** The Event about a change. */
export function describeChange({ backend, state }: RolloutChange): {
  readonly backend: readonly [namespace: string, name: string]
  readonly event: Transition
} {
  const [namespace = '', name = ''] = backend.split('/')
  const { model, rule, phase, message } = state
  const event = {
    type: phase === 'Aborted' ? ('Warning' as const) : ('Normal' as const),
    reason: `Rollout${phase}`,
    message: `rollout of model ${model}, rule ${rule}: ${message}`,
  }
  return { backend: [namespace, name], event }
}
