import type { DirectPlugin } from './direct.ts'
import type { HookName } from './hooks/run.ts'
import type { FromPlugin, ToPlugin } from './messages.ts'

/** What a plugin did in one step of a call. */
export type Step = Extract<FromPlugin, { type: 'next' | 'done' | 'answer' | 'hooked' }>
/** A message that starts a step. */
export type Start = Extract<ToPlugin, { type: 'request' | 'response' | 'hook' }>

/** Where one version of a plugin runs. */
export interface PluginRunner {
  /** Resolves when calls can start; rejects with a PluginError if the plugin cannot be loaded. */
  readonly ready: Promise<void>
  /** Hooks that the plugin has; empty until it is ready. */
  readonly hooks: ReadonlySet<HookName>
  readonly isOver: boolean
  /** Number of calls that have not ended. */
  readonly busy: number
  nextId(): number
  /** Runs the plugin until it calls `next()` or ends. Rejects with a PluginError. */
  run(message: Start): Promise<Step>
  /** Ends a call that will not be continued. */
  cancel(id: number): void
  /** Ends it when the calls that run have ended, at once if there are none. */
  retire(): void
  /** Ends it, and rejects all steps that run. */
  end(reason: string): void
  /** The middleware, if it runs in this thread and is loaded. */
  readonly direct?: DirectPlugin | undefined
}
