import type { MessageKind } from '#api/config/definitions.ts'
import type { Backend, Bind, Listener, MessageTypes, Policy, Route, Secret, Service, TcpRoute } from '#gen/config/types.ts'
import { runSync, runCooperatively, type Cooperative } from '../runtime/cooperative.ts'

/** One message with its kind; `message.key` is unique within it. */
export type ConfigMessage = { [K in MessageKind]: { readonly kind: K; readonly message: MessageTypes[K] } }[MessageKind]

/**
 * One version of the config. Immutable: a map without changes, and every unchanged message, is the same object as in the
 * version before, so that what is compiled from it can be kept by identity.
 */
export interface ConfigSnapshot {
  /** Counts from 0, the empty config. */
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

export type ConfigListener = (snapshot: ConfigSnapshot, changes: ConfigChanges) => void

/** Where messages come from. Of one kind and key, the stream's message wins: typed fields win over rawConfig. */
export type ConfigSource = 'stream' | 'file'

export interface ConfigBatch {
  readonly upserts: readonly ConfigMessage[]
  readonly removals: readonly { readonly kind: MessageKind; readonly key: string }[]
}

/** Gets ready for a version to come, giving way to traffic; it may never come. */
export type ConfigPreparer = (next: ConfigSnapshot) => Promise<void>

export interface ConfigStore {
  snapshot(): ConfigSnapshot
  /**
   * Works out the version that a batch makes, and waits until the preparers are ready for it; traffic goes on meanwhile. The result
   * applies the batch at once: subscribers see all of it or nothing. A batch that changes nothing makes no version.
   */
  prepare(source: ConfigSource, batch: ConfigBatch): Promise<() => ConfigChanges>
  /** Applies a batch that nobody prepared for. */
  apply(source: ConfigSource, batch: ConfigBatch): ConfigChanges
  /** Has `preparer` called before every later version that is prepared. */
  onPrepare(preparer: ConfigPreparer): void
  /** Calls `listener` on every later version, in the order of subscription; the result ends it. A listener must not throw. */
  subscribe(listener: ConfigListener): () => void
  /** What must still arrive before the config is complete, as readiness names it; empty: initialised. */
  pending(): readonly string[]
  /** Adds to, or takes from, what readiness waits for. */
  expect(what: string): void
  arrive(what: string): void
  isInitialised(): boolean
}

/** A version that may come. */
interface Plan {
  readonly source: ConfigSource
  /** Of the layers that it was worked out from. */
  readonly edition: number
  readonly next: ConfigSnapshot
  readonly changes: ConfigChanges
  /** What the layer of the source is to hold: undefined for what is removed. */
  readonly touched: ReadonlyMap<MessageKind, ReadonlyMap<string, object | undefined>>
}

/** How many messages are looked at before something else may come in between. */
const STEP = 64

type Layer = { readonly [K in MessageKind]: Map<string, MessageTypes[K]> }

const plural = {
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

/** Makes the one home of the current config. Pure state: no clock, no I/O. */
export function createConfigStore(): ConfigStore {
  const layers: Readonly<Record<ConfigSource, Layer>> = { stream: createLayer(), file: createLayer() }
  const listeners = new Set<ConfigListener>()
  const preparers: ConfigPreparer[] = []
  /** Counts batches, those that change nothing that is seen too. */
  let edition = 0
  const awaited = new Set<string>()
  let current: ConfigSnapshot = {
    version: 0,
    binds: new Map(),
    listeners: new Map(),
    routes: new Map(),
    tcpRoutes: new Map(),
    backends: new Map(),
    policies: new Map(),
    secrets: new Map(),
    services: new Map(),
  }

  /** Merges the layers for the keys that a batch touches, and finds what really changes. */
  function* plan(source: ConfigSource, { removals, upserts }: ConfigBatch): Cooperative<Plan> {
    const [base, planned] = [current, edition]
    const touched = new Map<MessageKind, Map<string, object | undefined>>()
    const touch = (kind: MessageKind, key: string, message: object | undefined): void => {
      const messages = touched.get(kind)
      if (messages === undefined) touched.set(kind, new Map([[key, message]]))
      else messages.set(key, message)
    }
    for (const { kind, key } of removals) if (layers[source][kind].has(key)) touch(kind, key, undefined)
    for (const [index, { kind, message }] of upserts.entries()) {
      touch(kind, message.key, message)
      if (index % STEP === 0) yield
    }
    const changes = new Map<MessageKind, Set<string>>()
    const maps: Record<string, ReadonlyMap<string, object>> = {}
    for (const [kind, messages] of touched) {
      const before: ReadonlyMap<string, object> = base[plural[kind]]
      const after = new Map(before)
      const changed = new Set<string>()
      let count = 0
      for (const [key, own] of messages) {
        if (++count % STEP === 0) yield
        const message = source === 'stream' ? (own ?? layers.file[kind].get(key)) : (layers.stream[kind].get(key) ?? own)
        if (before.get(key) === message) continue
        changed.add(key)
        if (message === undefined) after.delete(key)
        else after.set(key, message)
      }
      if (changed.size === 0) continue
      maps[plural[kind]] = after
      changes.set(kind, changed)
    }
    return { source, edition: planned, touched, changes, next: changes.size === 0 ? base : { ...base, ...maps, version: base.version + 1 } }
  }

  const carryOut = ({ source, touched, changes, next }: Plan): ConfigChanges => {
    edition++
    for (const [kind, messages] of touched) {
      const layer: Map<string, object> = layers[source][kind]
      for (const [key, message] of messages) {
        if (message === undefined) layer.delete(key)
        else layer.set(key, message)
      }
    }
    if (changes.size === 0) return changes
    current = next
    for (const listener of listeners) listener(next, changes)
    return changes
  }

  const apply = (source: ConfigSource, batch: ConfigBatch): ConfigChanges => carryOut(runSync(plan(source, batch)))

  const prepare = async (source: ConfigSource, batch: ConfigBatch): Promise<() => ConfigChanges> => {
    const planned = await runCooperatively(plan(source, batch))
    if (planned.changes.size > 0) for (const preparer of preparers) await preparer(planned.next)
    // The other source may have applied something meanwhile.
    return () => (planned.edition === edition ? carryOut(planned) : apply(source, batch))
  }

  return {
    snapshot: () => current,
    prepare,
    apply,
    onPrepare: (preparer) => void preparers.push(preparer),
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    pending: () => [...awaited],
    expect: (what) => void awaited.add(what),
    arrive: (what) => void awaited.delete(what),
    isInitialised: () => awaited.size === 0,
  }
}
