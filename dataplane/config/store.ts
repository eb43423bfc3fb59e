import type { MessageKind } from '#api/config/message-kinds.ts'
import type { Backend, Bind, Listener, MessageTypes, Policy, Route, Secret, Service, TcpRoute } from '#gen/config/types.ts'
import { runSync, runCooperatively, type Cooperative } from '../runtime/cooperative.ts'

/** One message with its kind; `message.key` is unique within it. */
export type ConfigMessage = { [K in MessageKind]: { readonly kind: K; readonly message: MessageTypes[K] } }[MessageKind]

/**
 * One version of the config. Immutable: a map without changes, and every unchanged message, is the same object as in the
 * previous version, so that compiled forms can be cached by identity.
 */
export interface ConfigSnapshot {
  /** Starts at 0, the empty config. */
  readonly version: number
  readonly binds: ReadonlyMap<string, Bind>
  readonly listeners: ReadonlyMap<string, Listener>
  readonly routes: ReadonlyMap<string, Route>
  readonly tcpRoutes: ReadonlyMap<string, TcpRoute>
  readonly backends: ReadonlyMap<string, Backend>
  readonly policies: ReadonlyMap<string, Policy>
  readonly secrets: ReadonlyMap<string, Secret>
  readonly services: ReadonlyMap<string, Service>
}

/** Keys that were added, replaced or removed; kinds without any are absent. */
export type ConfigChanges = ReadonlyMap<MessageKind, ReadonlySet<string>>

type ConfigListener = (snapshot: ConfigSnapshot, changes: ConfigChanges) => void

/** Origin of messages. For the same kind and key, the stream's message wins: typed fields override rawConfig. */
export type ConfigSource = 'stream' | 'file'

export interface ConfigBatch {
  readonly upserts: readonly ConfigMessage[]
  readonly removals: readonly { readonly kind: MessageKind; readonly key: string }[]
}

/** Prepares for the next version while traffic continues. That version may never be applied. */
type ConfigPreparer = (next: ConfigSnapshot) => Promise<void>

export interface ConfigStore {
  snapshot(): ConfigSnapshot
  /**
   * Computes the version that a batch leads to and awaits the preparers; yields to traffic meanwhile. The returned function
   * applies the batch atomically: subscribers see all of it or nothing. A batch that changes nothing makes no version.
   */
  prepare(source: ConfigSource, batch: ConfigBatch): Promise<() => ConfigChanges>
  /** Applies a batch at once, without calling the preparers. */
  apply(source: ConfigSource, batch: ConfigBatch): ConfigChanges
  /** Registers a function that `prepare` awaits for each later version. */
  onPrepare(preparer: ConfigPreparer): void
  /** Calls `listener` on every later version, in the order of subscription; returns the unsubscribe function. A listener must not throw. */
  subscribe(listener: ConfigListener): () => void
  /** Parts that must still arrive before the config is complete, as readiness names them. Empty: initialised. */
  pending(): readonly string[]
  /** Adds a part to `pending`. */
  expect(part: string): void
  /** Removes a part from `pending`. */
  arrive(part: string): void
  isInitialised(): boolean
}

/** A computed version that is not applied yet. */
interface Plan {
  readonly source: ConfigSource
  /** Edition of the layers that it was computed from. */
  readonly edition: number
  readonly next: ConfigSnapshot
  readonly changes: ConfigChanges
  /** New content of the source's layer; undefined for removed keys. */
  readonly touched: ReadonlyMap<MessageKind, ReadonlyMap<string, object | undefined>>
}

/** Messages processed before yielding to traffic. */
const STEP = 64

type Layer = { readonly [K in MessageKind]: Map<string, MessageTypes[K]> }

/** The map of a snapshot that holds the messages of a kind. */
export const plural = {
  bind: 'binds',
  listener: 'listeners',
  route: 'routes',
  tcpRoute: 'tcpRoutes',
  backend: 'backends',
  policy: 'policies',
  secret: 'secrets',
  service: 'services',
} as const satisfies Record<MessageKind, keyof ConfigSnapshot>

const createLayer = (): Layer => ({
  bind: new Map(),
  listener: new Map(),
  route: new Map(),
  tcpRoute: new Map(),
  backend: new Map(),
  policy: new Map(),
  secret: new Map(),
  service: new Map(),
})

/** Creates the store of the current config. Pure state: no clock, no I/O. */
export const createConfigStore = (): ConfigStore => new MemoryStore()

const emptySnapshot = (): ConfigSnapshot => ({
  version: 0,
  binds: new Map(),
  listeners: new Map(),
  routes: new Map(),
  tcpRoutes: new Map(),
  backends: new Map(),
  policies: new Map(),
  secrets: new Map(),
  services: new Map(),
})

class MemoryStore implements ConfigStore {
  readonly #layers: Readonly<Record<ConfigSource, Layer>> = { stream: createLayer(), file: createLayer() }
  readonly #listeners = new Set<ConfigListener>()
  readonly #preparers: ConfigPreparer[] = []
  readonly #awaited = new Set<string>()
  /** Counts applied batches, including those that change nothing visible. */
  #edition = 0
  #current = emptySnapshot()

  snapshot(): ConfigSnapshot {
    return this.#current
  }

  async prepare(source: ConfigSource, batch: ConfigBatch): Promise<() => ConfigChanges> {
    const plan = await runCooperatively(this.#plan(source, batch))
    if (plan.changes.size > 0) for (const preparer of this.#preparers) await preparer(plan.next)
    // The other source may have applied a batch meanwhile: plan again.
    return () => (plan.edition === this.#edition ? this.#commit(plan) : this.apply(source, batch))
  }

  apply(source: ConfigSource, batch: ConfigBatch): ConfigChanges {
    return this.#commit(runSync(this.#plan(source, batch)))
  }

  onPrepare(preparer: ConfigPreparer): void {
    this.#preparers.push(preparer)
  }

  subscribe(listener: ConfigListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  pending(): readonly string[] {
    return [...this.#awaited]
  }

  expect(part: string): void {
    this.#awaited.add(part)
  }

  arrive(part: string): void {
    this.#awaited.delete(part)
  }

  isInitialised(): boolean {
    return this.#awaited.size === 0
  }

  /** Merges the layers for the keys that a batch touches, and finds what changes. */
  *#plan(source: ConfigSource, batch: ConfigBatch): Cooperative<Plan> {
    const [base, edition] = [this.#current, this.#edition]
    const touched = yield* touchedBy(batch, this.#layers[source])
    const changes = new Map<MessageKind, Set<string>>()
    const maps: Record<string, ReadonlyMap<string, object>> = {}
    for (const [kind, messages] of touched) {
      const before: ReadonlyMap<string, object> = base[plural[kind]]
      const after = new Map(before)
      const changed = new Set<string>()
      let count = 0
      for (const [key, own] of messages) {
        if (++count % STEP === 0) yield
        const message = this.#merge(source, kind, key, own)
        if (before.get(key) === message) continue
        changed.add(key)
        if (message === undefined) after.delete(key)
        else after.set(key, message)
      }
      if (changed.size === 0) continue
      maps[plural[kind]] = after
      changes.set(kind, changed)
    }
    return { source, edition, touched, changes, next: changes.size === 0 ? base : { ...base, ...maps, version: base.version + 1 } }
  }

  /** The message in force for a key whose message in the layer of `source` becomes `own`. */
  #merge(source: ConfigSource, kind: MessageKind, key: string, own: object | undefined): object | undefined {
    const { stream, file } = this.#layers
    return source === 'stream' ? (own ?? file[kind].get(key)) : (stream[kind].get(key) ?? own)
  }

  #commit({ source, touched, changes, next }: Plan): ConfigChanges {
    this.#edition++
    for (const [kind, messages] of touched) {
      const layer: Map<string, object> = this.#layers[source][kind]
      for (const [key, message] of messages) {
        if (message === undefined) layer.delete(key)
        else layer.set(key, message)
      }
    }
    if (changes.size === 0) return changes
    this.#current = next
    for (const listener of this.#listeners) listener(next, changes)
    return changes
  }
}

/** New content of each key that a batch touches; undefined for removals. */
function* touchedBy({ removals, upserts }: ConfigBatch, layer: Layer): Cooperative<Map<MessageKind, Map<string, object | undefined>>> {
  const touched = new Map<MessageKind, Map<string, object | undefined>>()
  const touch = (kind: MessageKind, key: string, message: object | undefined): void => {
    const messages = touched.get(kind)
    if (messages === undefined) touched.set(kind, new Map([[key, message]]))
    else messages.set(key, message)
  }
  for (const { kind, key } of removals) if (layer[kind].has(key)) touch(kind, key, undefined)
  for (const [index, { kind, message }] of upserts.entries()) {
    touch(kind, message.key, message)
    if (index % STEP === 0) yield
  }
  return touched
}
