import type { ChatFormat, JsonObject, Usage } from './types.ts'

/**
 * What chat formats have in common. A format reads its requests, answers and streams into these, and writes them from these,
 * so that n formats need n readers and writers instead of n² conversions. Native paths do not come here.
 */

export type Block =
  | { readonly type: 'text'; readonly text: string; readonly isCached?: boolean }
  | { readonly type: 'image'; readonly mediaType: string; readonly data: string; readonly isCached?: boolean }
  | { readonly type: 'imageUrl'; readonly url: string; readonly isCached?: boolean }
  | { readonly type: 'document'; readonly mediaType: string | undefined; readonly filename: string | undefined; readonly data: string }
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  | ToolUse
  | ToolResult

export interface ToolUse {
  readonly type: 'toolUse'
  readonly id: string
  readonly name: string
  /** Decoded leniently: `""` is `{}`, text that is not JSON stays a string (llm.md §7.1). */
  readonly input: unknown
  /** The text of the input where the source has it as text. */
  readonly json?: string
  readonly isCached?: boolean
}

export interface ToolResult {
  readonly type: 'toolResult'
  readonly id: string
  readonly content: readonly Block[]
  /** The source had a plain string. */
  readonly isPlain: boolean
  readonly isError?: boolean
  readonly isCached?: boolean
}

export interface Turn {
  readonly role: 'user' | 'assistant' | 'system' | 'developer'
  readonly blocks: readonly Block[]
  /** Content was one string where the format also knows parts. */
  readonly isPlain?: boolean
}

export interface Tool {
  readonly name: string
  readonly description: string | undefined
  readonly schema: JsonObject | undefined
  readonly isStrict?: boolean
  readonly isCached?: boolean
}

export type ToolChoice = { readonly type: 'auto' | 'any' | 'none' } | { readonly type: 'tool'; readonly name: string }

export interface OutputFormat {
  readonly type: 'schema' | 'object'
  readonly name?: string
  readonly description?: string
  readonly schema?: unknown
  readonly isStrict?: boolean
}

/** Numbers are unknown where they are only handed on: they may be raw (json.ts). */
export interface Chat {
  /** Whose request it was: defaults differ (llm.md §7.1). */
  readonly origin: ChatFormat
  /** Leading system text, block by block. */
  readonly system: readonly { readonly text: string; readonly isCached?: boolean }[]
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
  /** MSG's own thinking object. */
  readonly thinking: JsonObject | undefined
  readonly format: OutputFormat | undefined
  /** MSG's metadata. */
  readonly metadata: JsonObject | undefined
  readonly warnings: readonly string[]
}

export type Stop = 'end' | 'stopSequence' | 'pause' | 'maxTokens' | 'contextWindow' | 'toolUse' | 'filtered'

/** Token numbers as an upstream counts them. */
export interface RawUsage {
  readonly input?: number | undefined
  readonly output?: number | undefined
  readonly total?: number | undefined
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
  readonly reasoning?: number | undefined
  /** `input` does not count cached tokens (llm.md §11.4). */
  readonly isCacheExcluded: boolean
  /** Image, text and audio tokens. */
  readonly modal?: Usage
}

export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string; readonly signature: string }
  | { readonly type: 'redacted'; readonly data: string }
  | ToolUse

/** An answer. Of several choices only the first is translated (llm.md §7.5). */
export interface Reply {
  readonly id: string | undefined
  readonly model: string | undefined
  readonly serviceTier: string | undefined
  readonly stopSequence: string | undefined
  readonly created: number | undefined
  readonly blocks: readonly ReplyBlock[]
  readonly stop: Stop | undefined
  readonly usage: RawUsage
}

/** One step of a streamed answer. `block` numbers are the source's, unique in the answer. */
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
  /** Model output that no other format shows, such as CC's reasoning_content: it counts as content. */
  | { readonly type: 'hidden' }
  | { readonly type: 'finish'; readonly stop: Stop; readonly stopSequence?: string | undefined }
  | { readonly type: 'usage'; readonly usage: RawUsage }
  /** The upstream's terminator. */
  | { readonly type: 'done' }
  | { readonly type: 'error'; readonly errorType: string; readonly message: string }
