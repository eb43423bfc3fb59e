import type { ChatFormat, JsonObject, Stop, UnknownKind, Usage } from './types.ts'

/**
 * The neutral form of chat requests, responses and streams. Each format has readers into it and writers from it, so that n formats
 * need n readers and writers instead of n² conversions. Native conversions do not use it.
 */

/** One part of a turn: text, media, thinking, a tool call or its result. */
export type Block =
  | ({ readonly type: 'text'; readonly text: string } & Cached)
  | ({ readonly type: 'image'; readonly mediaType: string; readonly data: string } & Located & Cached)
  | ({ readonly type: 'imageUrl'; readonly url: string } & Located & Cached)
  | ({
      readonly type: 'document'
      readonly mediaType: string | undefined
      readonly filename: string | undefined
      /** Base64; empty if there is `text`. */
      readonly data: string
      /** The document as plain text. */
      readonly text?: string
    } & Located &
      Cached)
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  /** Encrypted thinking. */
  | { readonly type: 'redacted'; readonly data: string }
  | ToolUse
  | ToolResult

/** A cache breakpoint after the part: `cache_control` of the Messages API. */
interface Cached {
  readonly cache?: JsonObject
}

/** A part that not every upstream accepts. */
interface Located {
  /** The place in the client's body, for errors: `messages[0].content[1]`. */
  readonly at: string
}

/** A call of a tool by the model. */
export interface ToolUse extends Cached {
  readonly type: 'toolUse'
  readonly id: string
  readonly name: string
  /** Decoded leniently: `""` is `{}`, text that is not JSON stays a string (llm.md §7.1). */
  readonly input: unknown
  /** The input as text, if the source format has text. */
  readonly json?: string
  /** The thought signature of Gemini. */
  readonly thought?: string
}

/** The result of a tool call; `id` is that of the call. */
export interface ToolResult extends Cached {
  readonly type: 'toolResult'
  readonly id: string
  readonly content: readonly Block[]
  /** The source has a plain string instead of a list of parts. */
  readonly isPlain: boolean
  /** Absent if the client did not set it. */
  readonly isError?: boolean
}

/** One message of a conversation. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system' | 'developer'
  readonly blocks: readonly Block[]
  /** The content is one string, in a format that also allows parts. */
  readonly isPlain?: boolean
}

/** The definition of a tool. `schema` is the JSON Schema of its input. */
export interface Tool extends Cached {
  readonly name: string
  readonly description: string | undefined
  readonly schema: JsonObject | undefined
  readonly isStrict?: boolean
}

/** Which tools the model may or must call. */
export type ToolChoice = { readonly type: 'auto' | 'any' | 'none' } | { readonly type: 'tool'; readonly name: string }

/** Structured output: any JSON object, or JSON by a schema. */
export interface OutputFormat {
  readonly type: 'schema' | 'object'
  readonly name?: string
  readonly description?: string
  readonly schema?: unknown
  readonly isStrict?: boolean
}

/** A chat request. Numbers that are only passed on have type unknown, because they may be raw (json.ts). */
export interface Chat {
  /** The client's format; defaults differ (llm.md §7.1). */
  readonly origin: ChatFormat
  /** Leading system text, block by block. */
  readonly system: readonly ({ readonly text: string } & Cached)[]
  readonly isSystemPlain: boolean
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | undefined
  readonly isParallel: boolean | undefined
  readonly maxTokens: unknown
  readonly temperature: unknown
  readonly topP: unknown
  readonly topK: unknown
  readonly stop: readonly string[]
  readonly isStreaming: boolean
  readonly user: string | undefined
  readonly effort: string | undefined
  /** Vendor field `thinking_budget_tokens`. */
  readonly thinkingBudget: number | undefined
  /** The thinking object of a Messages request. */
  readonly thinking: JsonObject | undefined
  readonly format: OutputFormat | undefined
  /** The metadata of a Messages request. */
  readonly metadata: JsonObject | undefined
  /** Places in the client's body that no other format has and that only add an option (llm.md §7.1). */
  readonly omitted: readonly string[]
}

/** Token counts as an upstream reports them. */
export interface RawUsage {
  readonly input?: number | undefined
  readonly output?: number | undefined
  readonly total?: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
  readonly reasoning?: number | undefined
  /** `input` does not include cached tokens (llm.md §11.4). */
  readonly isCacheExcluded: boolean
  /** Image, text and audio tokens. */
  readonly modal?: Usage
}

/** One part of a response. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  | { readonly type: 'redacted'; readonly data: string }
  | ToolUse

/** A buffered response. Only the first of several choices is translated (llm.md §7.5). */
export interface Reply {
  readonly id: string | undefined
  readonly model: string | undefined
  readonly serviceTier: string | undefined
  readonly stopSequence: string | undefined
  readonly created: number | undefined
  readonly blocks: readonly ReplyBlock[]
  readonly stop: Stop | undefined
  readonly usage: RawUsage
  /** What was not understood. */
  readonly unknown?: readonly UnknownKind[]
}

/** One step of a streamed response. `block` identifies a content block; the numbers are unique in a response but need not be consecutive. */
export type Step =
  | {
      readonly type: 'start'
      readonly id?: string | undefined
      readonly model?: string | undefined
      readonly tier?: string | undefined
      readonly created?: number | undefined
    }
  | { readonly type: 'text' | 'thinking' | 'signature'; readonly block: number; readonly text: string }
  | { readonly type: 'toolStart'; readonly block: number; readonly id: string; readonly name: string }
  | { readonly type: 'toolInput'; readonly block: number; readonly json: string }
  | { readonly type: 'blockStop'; readonly block: number }
  /** Model output that only native streams have. Counts as content. */
  | { readonly type: 'hidden' }
  /** Something that was not understood, for a counter. */
  | { readonly type: 'unknown'; readonly kind: UnknownKind }
  | { readonly type: 'finish'; readonly stop: Stop; readonly stopSequence?: string | undefined }
  | { readonly type: 'usage'; readonly usage: RawUsage }
  /** The upstream's terminator. */
  | { readonly type: 'done' }
  /** `received` is the event as parsed, for the cause of the failure. */
  | { readonly type: 'error'; readonly errorType: string; readonly message: string; readonly received?: unknown }
