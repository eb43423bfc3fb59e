import type { OnEviction } from '../net/destination/destinations.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import type { SessionKeys } from '../backend/mcp/session/keys.ts'
import type { PeerMessages, SessionSharing, WorkerMessages } from '../backend/mcp/session/sharing.ts'
import type { ServiceFactories } from '../backend/forward/services.ts'
import type { WorkerDrain } from './workers/data.ts'
import type { Peers } from './workers/peers.ts'

/** Messages between replicas, which end with the drain. */
type DrainedPeers = Pick<Peers, keyof PeerMessages | 'drain'>

export interface ServiceLoaderOptions {
  readonly onEviction: OnEviction
  /** Keys that MCP session ids are sealed with. */
  readonly keys: SessionKeys
  readonly version: string
  /** MCP sessions of all workers; undefined: this thread handles all traffic. */
  readonly sharing?: SessionSharing | undefined
  /** Messages between the workers. */
  readonly messages?: WorkerMessages | undefined
  /** Opens the port for other replicas; undefined: there is none. */
  readonly openPeers?: (() => Promise<DrainedPeers>) | undefined
}

/** Loads the modules of backend services (LLM, MCP, agent runtime), which only some configurations use. */
export interface ServiceLoader {
  /** Factories of the modules loaded so far. */
  readonly factories: ServiceFactories
  /** Loads the modules that the backends of a config version need; await it before that version is applied. */
  load(next: ConfigSnapshot): Promise<void>
  /** Finishes requests of other replicas, as `Binds.drain` those of clients. */
  drain(settings: WorkerDrain): Promise<void>
  /** Ends the processes of MCP servers. */
  close(): Promise<void>
}

export function createServiceLoader({ onEviction, keys, version, sharing, messages, openPeers }: ServiceLoaderOptions): ServiceLoader {
  const factories: { -readonly [K in keyof ServiceFactories]: ServiceFactories[K] } = {}
  let end = (): Promise<void> => Promise.resolve()
  let opening: Promise<DrainedPeers> | undefined
  return {
    factories,
    drain: async (settings) => (await opening)?.drain(settings),
    close: () => end(),
    async load({ backends }) {
      const needed = new Set<string>()
      for (const { ai, mcp, cloudBackend } of backends.values()) {
        if (ai !== undefined) needed.add('ai')
        if (mcp !== undefined) needed.add('mcp')
        if (cloudBackend !== undefined) needed.add('cloudBackend')
      }
      // Assigned after the import: two versions may load at once, and must share one factory.
      if (needed.has('ai')) {
        const { createLlmFactory } = await import('../backend/llm/service.ts')
        factories.ai ??= createLlmFactory({ onEviction })
      }
      if (needed.has('mcp')) {
        const { createMcpFactory, endProcesses } = await import('../backend/mcp/service.ts')
        end = endProcesses
        const peers = await (opening ??= openPeers?.())
        factories.mcp ??= createMcpFactory({ keys, version, sharing, messages, peers })
      }
      if (needed.has('cloudBackend')) factories.cloudBackend = (await import('../backend/agentruntime/service.ts')).createAgentRuntime
    },
  }
}
