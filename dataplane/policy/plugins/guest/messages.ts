import type { HookCall, HookName } from '../hooks/run.ts'
import type { ServiceCall, ServiceResult } from './services.ts'

/** Longest line of `log`, in characters. */
export const MAX_LOG_LENGTH = 2000

/** Data of a worker thread: one version of one plugin. */
export interface PluginData {
  readonly code: string
  /** Name of the source in error messages. */
  readonly file: string
  readonly config: unknown
  readonly secrets: Readonly<Record<string, string>>
}

/** Field lines as a flat list: name, value, name, value. */
export type Fields = readonly string[]

/** A body of one call that passes in chunks. */
export type StreamName = 'request' | 'response'

/**
 * Messages about such bodies, in both directions: the reader of a body sends `pull` for each chunk, and `stop` if it needs no more; the other side sends `data`, and
 * `end` once. The plugin reads bodies of client and upstream, the gateway those that the plugin makes.
 */
export type StreamMessage =
  | { readonly type: 'pull' | 'stop'; readonly id: number; readonly stream: StreamName }
  | { readonly type: 'data'; readonly id: number; readonly stream: StreamName; readonly chunk: Uint8Array }
  | { readonly type: 'end'; readonly id: number; readonly stream: StreamName; readonly error?: string }

/** Bodies as messages have them: undefined: there is none; true: the plugin cannot read it; `stream`: it passes in chunks. */
export type MessageBody = Uint8Array | true | 'stream' | undefined

/** Messages to the worker thread. `id` is that of the call. */
export type ToPlugin =
  | {
      readonly type: 'request'
      readonly id: number
      readonly method: string
      readonly url: string
      readonly headers: Fields
      readonly body: MessageBody
    }
  /** The response to `next()`. */
  | { readonly type: 'response'; readonly id: number; readonly status: number; readonly headers: Fields; readonly body: MessageBody }
  /** A call of a hook of `llm` or `mcp`. */
  | ({ readonly type: 'hook'; readonly id: number } & HookCall)
  | StreamMessage
  /** Nobody waits for the call any more. */
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'ping' }
  /** Collect garbage, if this Node can be asked to. */
  | { readonly type: 'collect' }
  /** The result of `use`. */
  | { readonly type: 'used'; readonly id: number; readonly result?: ServiceResult; readonly error?: string }

/** Changes of a header section: `set` holds a name with all its values. */
export interface FieldChanges {
  readonly set: readonly (readonly [name: string, values: readonly string[]])[]
  readonly removed: readonly string[]
}

/** Changes of a request before it is forwarded. */
export interface RequestChange extends FieldChanges {
  readonly method?: string
  readonly target?: string
  /** `stream`: the plugin makes it in chunks. */
  readonly body?: Uint8Array | 'stream'
}

/** Changes of a response. */
export interface ResponseChange extends FieldChanges {
  readonly status?: number
  /** `stream`: the plugin makes it in chunks. */
  readonly body?: Uint8Array | 'stream'
}

/** A sample of a metric of the plugin. `kind` count: `amount` is added to a counter; value: `amount` is observed. */
export interface MetricSample {
  readonly kind: 'count' | 'value'
  readonly name: string
  readonly detail: string
  readonly amount: number
}

/** Messages from the worker thread. */
export type FromPlugin =
  /** The module of the plugin starts to run. `thread`: ID of the thread in the operating system; 0 if it is unknown. */
  | { readonly type: 'started'; readonly thread: number }
  | { readonly type: 'ready'; readonly hooks: readonly HookName[] }
  | { readonly type: 'invalid'; readonly message: string }
  /** The plugin called `next()`. */
  | { readonly type: 'next'; readonly id: number; readonly change: RequestChange }
  /** The plugin returned after `next()`. */
  | { readonly type: 'done'; readonly id: number; readonly change: ResponseChange }
  /** The plugin responded itself. */
  | { readonly type: 'answer'; readonly id: number; readonly status: number; readonly headers: Fields; readonly body: Uint8Array }
  /** What a hook returned, as JSON text, if it is no response; a response is an `answer`. */
  | { readonly type: 'hooked'; readonly id: number; readonly output: string; readonly state: string }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  | { readonly type: 'log'; readonly level: 'error' | 'warn' | 'info' | 'debug'; readonly message: string }
  | { readonly type: 'metrics'; readonly samples: readonly MetricSample[] }
  | StreamMessage
  | { readonly type: 'pong' }
  /** A call of a service of the gateway. `id` is that of this call. */
  | { readonly type: 'use'; readonly id: number; readonly call: ServiceCall }
