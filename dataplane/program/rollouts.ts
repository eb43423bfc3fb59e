import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { advance, changesOf, rolloutsOf, stateOf } from '#api/rollout/rollout.ts'
import type { RolloutSample } from '#api/rollout/samples.ts'
import type { AIModelRolloutState, Backend } from '#gen/config/types.ts'
import type { ConfigBatch, ConfigSource, ConfigStore } from '../config/store.ts'
import type { Logger } from '../observe/telemetry/log.ts'
import type { FamilyDump } from '../observe/telemetry/metrics/registry.ts'

/** Time between two decisions. */
const DECIDE_MS = 1000

export interface RolloutsOptions {
  readonly store: ConfigStore
  readonly log: Pick<Logger, 'info' | 'warn'>
  /** File of the states; undefined: rollouts begin anew when the process starts. */
  readonly path: string | undefined
  /** Reads metrics of all threads. */
  sample(families: readonly string[]): Promise<readonly (readonly FamilyDump[])[]>
  readonly nowMs?: () => number
}

/** A backend whose rollouts this process decides, as its source sent it. */
interface Decided {
  readonly source: ConfigSource
  readonly backend: Backend
}

/**
 * Decides the rollouts of models without an operator that does (llm.md §15.7): sets `rollouts` of the backends that sources apply to the store, and moves
 * them on. All threads get the states with the config, so that they agree.
 */
export class Rollouts {
  readonly #options: RolloutsOptions
  readonly #decided = new Map<string, Decided>()
  readonly #states: Map<string, readonly AIModelRolloutState[]>
  readonly #nowMs: () => number
  #timer: NodeJS.Timeout | undefined
  #isBusy = false
  #written = Promise.resolve()

  constructor(options: RolloutsOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#states = readStates(options)
  }

  /** The store for sources. */
  get store(): ConfigStore {
    const { store } = this.#options
    return {
      snapshot: () => store.snapshot(),
      prepare: (source, batch) => store.prepare(source, this.#decide(source, batch)),
      apply: (source, batch) => store.apply(source, this.#decide(source, batch)),
      onPrepare: (preparer) => store.onPrepare(preparer),
      subscribe: (listener) => store.subscribe(listener),
      pending: () => store.pending(),
      expect: (part) => store.expect(part),
      arrive: (part) => store.arrive(part),
      isInitialised: () => store.isInitialised(),
    }
  }

  #decide(source: ConfigSource, { upserts, removals }: ConfigBatch): ConfigBatch {
    for (const { kind, key } of removals) if (kind === 'backend') this.#decided.delete(key)
    return { removals, upserts: upserts.map((each) => (each.kind === 'backend' ? { kind: 'backend', message: this.#enter(source, each.message) } : each)) }
  }

  /** A backend with the states of its rollouts, unless it has none or its sender decides. */
  #enter(source: ConfigSource, backend: Backend): Backend {
    const { key } = backend
    this.#decided.delete(key)
    if (backend.rollouts !== undefined || rolloutsOf(backend).length === 0) return backend
    this.#decided.set(key, { source, backend })
    this.#timer ??= setInterval(() => void this.step(), DECIDE_MS).unref()
    return { ...backend, rollouts: this.#advance(backend, []) }
  }

  /** Moves the rollouts on. */
  async step(): Promise<void> {
    if (this.#isBusy || this.#decided.size === 0) return
    this.#isBusy = true
    try {
      const samples = await this.#samples()
      for (const [key, { source, backend }] of this.#decided) {
        const before = this.#states.get(key)
        const rollouts = this.#advance(backend, samples)
        if (rollouts !== before) this.#options.store.apply(source, { upserts: [{ kind: 'backend', message: { ...backend, rollouts } }], removals: [] })
      }
    } finally {
      this.#isBusy = false
    }
  }

  /** What was measured in the current steps of rollouts that the sender of the config decides. */
  async reported(): Promise<readonly RolloutSample[]> {
    const backends = [...this.#options.store.snapshot().backends.values()].filter(({ key, rollouts }) => rollouts !== undefined && !this.#decided.has(key))
    if (!backends.some(({ rollouts = [] }) => rollouts.length > 0)) return []
    const samples = await this.#samples()
    return samples.filter((sample) => backends.some(({ key, rollouts }) => key === sample.backend && stateOf(rollouts, sample)?.step === sample.step))
  }

  async #samples(): Promise<readonly RolloutSample[]> {
    // Loaded on demand: most configs have no rollouts.
    const { ROLLOUT_FAMILIES, samplesOf } = await import('../backend/llm/accounting/rollout.ts')
    return samplesOf(await this.#options.sample(ROLLOUT_FAMILIES))
  }

  /** The states now; those of before if nothing has changed. */
  #advance(backend: Backend, samples: readonly RolloutSample[]): AIModelRolloutState[] {
    const { key } = backend
    const before = this.#states.get(key) ?? []
    const after = advance(backend, before, samples, this.#nowMs())
    if (JSON.stringify(before) === JSON.stringify(after)) return before as AIModelRolloutState[]
    this.#states.set(key, after)
    for (const { state } of changesOf(key, before, after)) {
      const fields = { backend: key, model: state.model, rule: state.rule, phase: state.phase, weight: state.weight, message: state.message }
      if (state.phase === 'Aborted') this.#options.log.warn('rollout aborted', { code: 'PX4044', ...fields })
      else this.#options.log.info('rollout', fields)
    }
    this.#save()
    return after
  }

  #save(): void {
    const { path, log } = this.#options
    if (path === undefined) return
    const text = JSON.stringify(Object.fromEntries(this.#states))
    this.#written = this.#written
      .then(() => writeFile(`${path}.new`, text))
      .then(() => rename(`${path}.new`, path))
      .catch((error: Error) => log.warn('state of rollouts not saved', { code: 'PX4045', path, cause: error.message }))
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#written
  }
}

/** The saved states. A file that is missing or unusable is empty: rollouts then begin with their first step. */
function readStates({ path, log }: RolloutsOptions): Map<string, readonly AIModelRolloutState[]> {
  if (path === undefined) return new Map()
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Record<string, readonly AIModelRolloutState[]>
    return new Map(Object.entries(read).filter(([, states]) => Array.isArray(states)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn('state of rollouts not read; they begin anew', { code: 'PX4045', path, cause: (error as Error).message })
    return new Map()
  }
}
