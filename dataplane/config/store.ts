import type { MessageKind } from '#api/config/definitions.ts'
import type { Backend, Bind, Listener, MessageTypes, Policy, Route, Secret, Service, TcpRoute } from '#gen/config/types.ts'

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

export interface ConfigStore {
  snapshot(): ConfigSnapshot
  /** Applies a batch at once: subscribers see all of it or nothing. A batch that changes nothing makes no version. */
  apply(source: ConfigSource, batch: ConfigBatch): ConfigChanges
  /** Calls `listener` on every later version, in the order of subscription; the result ends it. A listener must not throw. */
  subscribe(listener: ConfigListener): () => void
  /** What must still arrive before the config is complete, as readiness names it; empty: initialised. */
  pending(): readonly string[]
  /** Adds to, or takes from, what readiness waits for. */
  expect(what: string): void
  arrive(what: string): void
  isInitialised(): boolean
}

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

  const apply = (source: ConfigSource, batch: ConfigBatch): ConfigChanges => {
    const layer = layers[source]
    const touched = new Map<MessageKind, Set<string>>()
    const touch = (kind: MessageKind, key: string): void => {
      const keys = touched.get(kind)
      if (keys === undefined) touched.set(kind, new Set([key]))
      else keys.add(key)
    }
    for (const { kind, key } of batch.removals) if (layer[kind].delete(key)) touch(kind, key)
    for (const { kind, message } of batch.upserts) {
      const map: Map<string, object> = layer[kind]
      map.set(message.key, message)
      touch(kind, message.key)
    }
    return publish(touched)
  }

  /** Merges the layers for the touched keys and tells the subscribers what really changed. */
  const publish = (touched: ReadonlyMap<MessageKind, ReadonlySet<string>>): ConfigChanges => {
    const changes = new Map<MessageKind, Set<string>>()
    const maps: Record<string, ReadonlyMap<string, object>> = {}
    for (const [kind, keys] of touched) {
      const before: ReadonlyMap<string, object> = current[plural[kind]]
      const changed = [...keys].filter((key) => before.get(key) !== find(kind, key))
      if (changed.length === 0) continue
      const after = new Map(before)
      for (const key of changed) {
        const message = find(kind, key)
        if (message === undefined) after.delete(key)
        else after.set(key, message)
      }
      maps[plural[kind]] = after
      changes.set(kind, new Set(changed))
    }
    if (changes.size === 0) return changes
    current = { ...current, ...maps, version: current.version + 1 }
    const version = current
    for (const listener of listeners) listener(version, changes)
    return changes
  }

  const find = (kind: MessageKind, key: string): object | undefined => layers.stream[kind].get(key) ?? layers.file[kind].get(key)

  return {
    snapshot: () => current,
    apply,
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
