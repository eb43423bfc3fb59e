import type { Exchange } from './exchange.ts'
import type { ResponseHead } from '../../http/message.ts'
import { defineSlot } from './slot.ts'

/** Hooks of plugins that backends run. */
export type BackendHook = 'llm.request' | 'llm.event' | 'llm.response' | 'mcp.list' | 'mcp.call' | 'mcp.result'

/** Input of `llm.event`: pieces of texts in their order, and the text that is held back before them, by segment. */
export interface EventInput {
  readonly deltas: readonly { readonly type: 'text' | 'reasoning' | 'json'; readonly segment: string; readonly isLast: boolean; readonly text: string }[]
  readonly rests: Readonly<Record<string, string>>
}

/** Output of `llm.event`: the text of each piece, and what is held back after them. */
export interface EventOutput {
  readonly texts: readonly string[]
  readonly rests: Readonly<Record<string, string>>
}

/** What a hook returned: the value that was read from it, or a response of the plugin. */
export type HookOutcome<T> = { readonly value: T } | { readonly response: ResponseHead }

/** The hooks of one plugin for one request. Plugin policies add them; backends run them. */
export interface RequestHooks {
  has(hook: BackendHook): boolean
  /**
   * Runs a hook. `read` checks what it returned, which is any JSON, and throws (or rejects with) an Error if it cannot be used. Resolves to undefined if the hook failed and the plugin is FailOpen.
   * Rejects with a ProxyError, PLUGIN or PLUGIN_TIMEOUT, if it failed and is FailClosed.
   */
  run<T>(hook: BackendHook, input: unknown, read: (output: unknown) => T | Promise<T>): Promise<HookOutcome<T> | undefined>
}

/** The hooks of all plugins of a request, in the order of the plugins. */
export const pluginHooks = defineSlot<readonly RequestHooks[]>('pluginHooks')

/** The plugins of a request that have one of the hooks, in their order. */
export function hooksFor(exchange: Exchange, ...hooks: readonly BackendHook[]): readonly RequestHooks[] {
  return (pluginHooks.get(exchange) ?? none).filter((plugin) => hooks.some((hook) => plugin.has(hook)))
}

const none: readonly RequestHooks[] = []
