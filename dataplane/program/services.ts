import type { ConfigSnapshot } from '../config/store.ts'
import { kindOf, kinds, type BackendKinds, type LoadedService, type ServiceContext } from '../backend/kinds.ts'
import type { PeerMessages } from '../backend/mcp/session/sharing.ts'
import type { ServiceFactories } from '../backend/forward/services.ts'
import type { WorkerDrain } from './workers/data.ts'
import type { Peers } from './workers/peers.ts'

/** Messages between replicas, which end with the drain. */
type DrainedPeers = Pick<Peers, keyof PeerMessages | 'drain'>

export interface ServiceLoaderOptions extends ServiceContext {
  readonly openPeers?: (() => Promise<DrainedPeers>) | undefined
}

/** Loads the modules of backend services, which only some configurations use. */
export interface ServiceLoader {
  /** Factories of the modules loaded so far. */
  readonly factories: ServiceFactories
  /** Loads the modules that the backends of a config version need; await it before that version is applied. */
  load(next: ConfigSnapshot): Promise<void>
  /** Finishes requests of other replicas, as `Binds.drain` those of clients. */
  drain(settings: WorkerDrain): Promise<void>
  /** Ends what the services have started: processes of MCP servers. */
  close(): Promise<void>
}

export function createServiceLoader({ openPeers, ...options }: ServiceLoaderOptions, all: BackendKinds = kinds): ServiceLoader {
  const factories: { -readonly [K in keyof ServiceFactories]: ServiceFactories[K] } = {}
  // Promises: two versions may load at once, and must share one service.
  const loading = new Map<string, Promise<LoadedService>>()
  const ends: (() => Promise<void>)[] = []
  let opening: Promise<DrainedPeers> | undefined
  const context: ServiceContext = { ...options, openPeers: openPeers && (() => (opening ??= openPeers())) }
  return {
    factories,
    drain: async (settings) => (await opening)?.drain(settings),
    close: async () => {
      for (const end of ends) await end()
    },
    async load({ backends }) {
      for (const backend of backends.values()) {
        const { name, kind } = kindOf(backend, all) ?? {}
        if (name === undefined || kind?.load === undefined || factories[name] !== undefined) continue
        let service = loading.get(name)
        if (service === undefined) loading.set(name, (service = kind.load(context)))
        const { create, end } = await service
        if (factories[name] === undefined && end !== undefined) ends.push(end)
        factories[name] = create
      }
    },
  }
}
