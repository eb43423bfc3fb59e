import type { BackendNode } from '#api/management/overview.ts'
import type { Backend, Service, ServicePort } from '#gen/config/types.ts'
import { addressKinds, findKind, type DestinationKind, type DestinationKinds, type DestinationParts } from '../net/destination/kinds.ts'
import type { OnEviction } from '../net/destination/destinations.ts'
import { compileModelServer } from '../net/destination/load-balancer.ts'
import type { DestinationHooks } from '../net/upstream/hooks.ts'
import type { Registry } from '../observe/telemetry/metrics/registry.ts'
import { agentHooks } from './a2a/hooks.ts'
import type { ServiceFactory } from './forward/services.ts'
import { builtinHooks } from './inference/builtin.ts'
import { pickerHooks } from './inference/hooks.ts'
import type { SessionKeys } from '../runtime/seal.ts'
import type { SharedCells } from '../runtime/shared-cells.ts'
import type { PeerMessages, SessionSharing, WorkerMessages } from './mcp/session/sharing.ts'

/** What services of backends may use of the process. */
export interface ServiceContext {
  readonly onEviction: OnEviction
  /** Keys that MCP session ids are sealed with. */
  readonly keys: SessionKeys
  readonly version: string
  /** MCP sessions of all workers; undefined: this thread handles all traffic. */
  readonly sharing?: SessionSharing | undefined
  /** Messages between the workers. */
  readonly messages?: WorkerMessages | undefined
  /** Opens the port for other replicas, once; undefined: there is none. */
  readonly openPeers?: (() => Promise<PeerMessages>) | undefined
}

export interface LoadedService {
  readonly create: ServiceFactory
  /** Called when the process ends. Default: nothing is left to end. */
  readonly end?: () => Promise<void>
}

/** A kind of backend. `Part` is its part of the Backend message. Everything but `node` is absent where a kind adds nothing. */
export interface BackendKind<Part> extends Omit<DestinationKind<Part>, 'hooks'> {
  /** Its name in the graph of the console. */
  readonly node: BackendNode['kind']
  /** What it adds to requests of its destination, compiled with the destination. */
  hooks?(part: Part, parts: DestinationParts, registry: Registry): DestinationHooks
  /** The service that handles its requests; the module is imported for the first config that needs it. */
  load?(context: ServiceContext): Promise<LoadedService>
  /** Whether policies in it may transform requests or responses. Default: no. */
  mayTransform?(part: Part): boolean
  /** The endpoint that the config names, for the console. Default: none. */
  endpoint?(part: Part): { readonly host: string; readonly port: number }
}

/** Kinds by the name of their field in the Backend message. */
export type BackendKinds = Readonly<Record<string, BackendKind<unknown>>>

/**
 * The kinds of backends. A new kind is one line here, under the name of its field; a field of the schema without one does not compile. Nothing else
 * in the data plane names a kind in order to send a request.
 */
export const kinds = {
  static: { ...addressKinds.static, node: 'static', endpoint: (part) => part },
  dynamicForwardProxy: { ...addressKinds.dynamicForwardProxy, node: 'dynamic' },
  ai: {
    node: 'ai',
    type: 'ai',
    load: async ({ onEviction }) => ({ create: (await import('./llm/service.ts')).createLlmFactory({ onEviction }) }),
    // Models lead to other backends.
    mayTransform: ({ groups, models }) =>
      models !== undefined || groups?.some(({ providers }) => providers.some(({ policies }) => policies?.transformation !== undefined)) === true,
  },
  mcp: {
    node: 'mcp',
    type: 'mcp',
    async load({ openPeers, keys, version, sharing, messages }) {
      const { createMcpFactory, endProcesses } = await import('./mcp/service.ts')
      return { create: createMcpFactory({ keys, version, sharing, messages, peers: await openPeers?.() }), end: endProcesses }
    },
    mayTransform: () => true,
  },
  cloudBackend: {
    node: 'agentRuntime',
    load: async () => ({ create: (await import('./agentruntime/service.ts')).createAgentRuntime }),
    mayTransform: () => true,
  },
  a2a: {
    ...addressKinds.a2a,
    node: 'a2a',
    hooks: (backend, { secret }, registry) => agentHooks(registry, backend, secret),
    endpoint: (part) => part,
  },
} as const satisfies { readonly [K in Exclude<keyof Backend, 'key' | 'policies' | 'rollouts'>]: BackendKind<NonNullable<Backend[K]>> }

/** End of the key of an InferencePool. */
const POOL = '.inference'

/** Services are no backends of ours: what their ports and policies say selects what is added. */
function hooksOfService(
  { key, hostname, picker }: Service,
  { appProtocol }: ServicePort,
  { settingsFor, unverified }: DestinationParts,
  registry: Registry,
  cells: SharedCells | undefined,
): DestinationHooks | undefined {
  const { loadBalancer } = settingsFor(hostname)
  const isUnpicked = picker === undefined && loadBalancer === undefined && key.endsWith(POOL)
  const modelServer = isUnpicked ? compileModelServer() : loadBalancer?.modelServer
  if (modelServer === undefined && picker === undefined && appProtocol !== 'A2A') return undefined
  return {
    ...(modelServer !== undefined
      ? builtinHooks(modelServer, registry, cells)
      : picker &&
        pickerHooks({ destination: unverified(picker.backend, picker.isPlaintext === true), isFailOpen: picker.failureMode === 'FailOpen' }, registry)),
    ...(appProtocol === 'A2A' && agentHooks(registry)),
  }
}

/** The kinds as destinations see them. */
export const destinationKinds = (all: BackendKinds, registry: Registry, cells?: SharedCells): DestinationKinds => ({
  backends: Object.fromEntries(
    Object.entries(all).map(([name, { hooks, ...kind }]) => [name, { ...kind, ...(hooks && { hooks: (part, parts) => hooks(part, parts, registry) }) }]),
  ),
  ofService: (service, port, parts) => hooksOfService(service, port, parts, registry, cells),
})

/** The kind of a backend, with its name and its part of the message. */
export function kindOf(backend: Backend, all: BackendKinds = kinds): { name: keyof Backend; kind: BackendKind<unknown>; part: unknown } | undefined {
  const [name, kind] = findKind(backend, all) ?? []
  return name && kind && { name, kind, part: backend[name] }
}
