import type { DirectPlugin } from './direct.ts'
import type { HookName } from './hooks/run.ts'
import type { FromPlugin, PluginData, StreamMessage, StreamName, ToPlugin } from './guest/messages.ts'
import type { PluginLoad } from './load.ts'
import type { CallStreams } from './streams.ts'

/** What a plugin did in one step of a call. */
export type Step = Extract<FromPlugin, { type: 'next' | 'done' | 'answer' | 'hooked' }>
/** A message that starts a step. */
export type Start = Extract<ToPlugin, { type: 'request' | 'response' | 'hook' }>

/** The body that a step leaves to the plugin to make in chunks. */
export function streamIn(step: Step): StreamName | undefined {
  if (step.type === 'next') return step.change.body === 'stream' ? 'request' : undefined
  return step.type === 'done' && step.change.body === 'stream' ? 'response' : undefined
}

/** A thread or a process with one plugin. */
export interface PluginHost {
  post(message: ToPlugin): void
  end(): void
  /** The file of /proc with the CPU time of the plugin, which said that it has started. */
  statFile(started: Extract<FromPlugin, { type: 'started' }>): string
  /** The memory that it uses in MiB, if that is more than its limit. */
  excessMb(): Promise<number | undefined>
}

/** Starts a thread or a process. `onEnd` may be called several times; the first reason counts. */
export type StartHost = (
  plugin: { readonly data: PluginData; readonly memoryMb: number },
  reports: { readonly onMessage: (message: FromPlugin) => void; readonly onEnd: (reason: string) => void },
) => PluginHost

/** Where one version of a plugin runs. */
export interface PluginRunner {
  readonly load: PluginLoad
  /** Hooks that the plugin has; empty until it is ready. */
  readonly hooks: ReadonlySet<HookName>
  readonly isOver: boolean
  /** Longest time of a step. */
  readonly timeoutMs: number
  /** Number of calls that have not ended. */
  readonly busy: number
  nextId(): number
  /** Runs the plugin until it calls `next()` or ends. Rejects with a PluginError. */
  run(message: Start): Promise<Step>
  /** Resolves or rejects if the plugin ends the call while it waits for `next()`. */
  early(id: number): Promise<Step>
  /** Adds the bodies of a call that pass in chunks, before its first step. */
  attach(id: number, streams: CallStreams): void
  /** Sends a message about these bodies. */
  post(message: StreamMessage): void
  /** The bodies that the plugin makes in a call have ended. */
  streamsClosed(id: number): void
  /** Ends a call that took too long, and the plugin if it does not respond any more. */
  timeOut(id: number): void
  /** Ends a call that will not be continued. */
  cancel(id: number): void
  /** Ends it when the calls that run have ended, at once if there are none. */
  retire(): void
  /** Ends it, and rejects all steps that run. */
  end(reason: string): void
  /** The middleware, if it runs in this thread and is loaded. */
  readonly direct?: DirectPlugin | undefined
}
