import type { OnEviction } from '../destination/destinations.ts'
import type { ConfigSnapshot } from '../config/store.ts'
import type { SessionKeys } from '../mcp/session/codec.ts'
import type { ServiceFactories } from '../forward/services.ts'

export interface RoomOptions {
  readonly onEviction: OnEviction
  readonly keys: SessionKeys
  readonly version: string
}

/** Rooms that only some configurations use. */
export interface Rooms {
  /** Those that are loaded. */
  readonly factories: ServiceFactories
  /** Loads what the backends of a version ask for; to be awaited before that version applies. */
  load(next: ConfigSnapshot): Promise<void>
}

export function createRooms({ onEviction, keys, version }: RoomOptions): Rooms {
  const factories: { -readonly [K in keyof ServiceFactories]: ServiceFactories[K] } = {}
  return {
    factories,
    async load({ backends }) {
      const wanted = new Set<string>()
      for (const { ai, mcp, cloudBackend } of backends.values()) {
        if (ai !== undefined) wanted.add('ai')
        if (mcp !== undefined) wanted.add('mcp')
        if (cloudBackend !== undefined) wanted.add('cloudBackend')
      }
      // Looked at after the waiting: two versions may load at once, and there is one factory of a kind.
      if (wanted.has('ai')) {
        const { createLlmFactory } = await import('../llm/service.ts')
        factories.ai ??= createLlmFactory({ onEviction })
      }
      if (wanted.has('mcp')) {
        const { createMcpFactory } = await import('../mcp/service.ts')
        factories.mcp ??= createMcpFactory({ keys, version })
      }
      if (wanted.has('cloudBackend')) factories.cloudBackend = (await import('../agentruntime/service.ts')).createAgentRuntime
    },
  }
}
