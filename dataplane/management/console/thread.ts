import type { LlmUsage } from '#api/management/llm.ts'
import type { McpSessions } from '#api/management/mcp.ts'
import type { RequestBatch } from '#api/management/requests.ts'
import type { RefusedPlugin } from '../../policy/plugins/host.ts'
import type { LimitUse } from '../../policy/budgets/report.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { FamilyDump } from '../../observe/telemetry/metrics/registry.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import type { ThreadEndpoints } from './endpoints.ts'
import type { TailCall } from './tail.ts'

/** The parts of a thread that handles traffic. */
export interface ThreadParts {
  readonly gateway: Gateway
  readonly telemetry: Telemetry
}

/** Methods that the management API calls in every thread that handles traffic. */
export interface ThreadMethods {
  sample: { readonly body: readonly string[]; readonly result: FamilyDump[] }
  endpoints: { readonly body: undefined; readonly result: ThreadEndpoints[] }
  llm: { readonly body: undefined; readonly result: LlmUsage }
  budgets: { readonly body: undefined; readonly result: LimitUse[] }
  mcpSessions: { readonly body: undefined; readonly result: McpSessions }
  refusedPlugins: { readonly body: undefined; readonly result: RefusedPlugin[] }
  tail: { readonly body: TailCall; readonly result: RequestBatch }
}

/** Name of a method of `ThreadMethods`. */
export type ThreadMethod = keyof ThreadMethods

/** A call of a method, as it is sent to a worker. */
export interface ThreadCall {
  readonly method: ThreadMethod
  readonly body: unknown
}

/** Calls a method in every thread that handles traffic. A thread that does not respond is left out. */
export type CallThreads = <M extends ThreadMethod>(method: M, body: ThreadMethods[M]['body']) => Promise<readonly ThreadMethods[M]['result'][]>

const methods: { readonly [M in ThreadMethod]: (parts: ThreadParts, body: ThreadMethods[M]['body']) => Promise<ThreadMethods[M]['result']> } = {
  sample: ({ telemetry }, families) => Promise.resolve(telemetry.metrics.registry.dump(false, families)),
  // Loaded on demand: most processes never have a console open.
  endpoints: async ({ gateway }) => (await import('./endpoints.ts')).listEndpoints(gateway.destinations),
  llm: async ({ telemetry }) => (await import('./llm-usage.ts')).readLlmUsage(telemetry),
  budgets: async ({ telemetry }) => (await import('../../policy/budgets/report.ts')).readLimits(telemetry.metrics.registry),
  mcpSessions: async ({ gateway }) => (await import('./mcp/list.ts')).listMcpSessions(gateway.destinations),
  refusedPlugins: async ({ telemetry }) => (await import('../../policy/plugins/host.ts')).refusedPlugins(telemetry.metrics.registry),
  tail: async ({ telemetry }, call) => (await import('./tail.ts')).readTail(telemetry, call),
}

/** Runs a method in this thread. */
export function runInThread<M extends ThreadMethod>(parts: ThreadParts, method: M, body: ThreadMethods[M]['body']): Promise<ThreadMethods[M]['result']> {
  return methods[method](parts, body)
}
