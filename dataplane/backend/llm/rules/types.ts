import type { SchemaRule } from './schemas/rule.ts'

/** Ids of tool calls. An id that breaks the rule is replaced, in the call and in its result. */
export interface IdRule {
  readonly pattern: RegExp
  /** Length of replacements; longer ids are replaced. */
  readonly max: number
  /** Two calls of one conversation may not have the same id. */
  readonly isUnique: boolean
}

/** Names of tools. A name that breaks the rule is replaced, and restored in the response. */
export interface NameRule {
  readonly pattern: RegExp
  /** Characters that a replacement may not have. */
  readonly forbidden: RegExp
  readonly max: number
}

interface RoleRule {
  /** Leading instructions are a field, no messages. */
  readonly isApart: boolean
  /** The role `developer` is known beside `system`. */
  readonly hasDeveloper: boolean
  /** Messages have the member `name`. */
  readonly hasNames: boolean
  /** Messages of the assistant have the members `refusal` and `annotations`. */
  readonly hasRefusal: boolean
  /** Instructions behind a message of the user: `inPlace` keeps the role `system`, `user` sends them as text of the user at the same place. */
  readonly late: 'inPlace' | 'user'
  /** Consecutive messages of one role, and all results of a turn, become one message; the results are first. */
  readonly isMerged: boolean
  /** A request without any message is rejected; instructions are none. */
  readonly needsTurn: boolean
  /** The conversation begins with a message of the user. */
  readonly startsWithUser: boolean
  /** A message of the user may follow the results of tools. */
  readonly takesUserAfterResults: boolean
  /** A last message of the assistant that the response continues: accepted, with a member `prefix` only, or rejected. */
  readonly prefill: 'accepted' | 'prefix' | 'rejected'
}

/** The id of the client's user. One that breaks the rule is replaced by a digest. */
export interface UserRule {
  readonly max: number
  /** E-mail addresses and telephone numbers are rejected. */
  readonly isOpaque: boolean
}

interface BlankRule {
  /** Text that is empty or white space is left out, and messages without content with it. */
  readonly isDropped: boolean
  /** A last message of the assistant may end with white space. */
  readonly takesEnd: boolean
  /** Text of a tool result without content; undefined: it may be empty. */
  readonly result: string | undefined
}

interface MediaRule {
  /** Media types of images. */
  readonly images: readonly string[]
  /** Images by URL; the gateway fetches nothing. */
  readonly hasImageUrls: boolean
  /** Documents of other types than text. */
  readonly documents: 'pdf' | 'files'
}

/** The parts of a chat that make the model think. */
export interface ReasoningRule {
  /** How Chat Completions ask for an effort: `reasoning_effort`, `thinking.type`, both, `enable_thinking`, or not at all. */
  readonly field: 'effort' | 'thinking' | 'thinkingEffort' | 'enable_thinking' | 'none'
  /** Values of the effort, in rising order; undefined: not known, sent as it is; empty: the field is left out. */
  readonly efforts: readonly string[] | undefined
  /** Efforts of requests with tools: `none` must be sent, `absent` must be left out. */
  readonly withTools: 'any' | 'none' | 'absent'
  /** Thinking with a budget of tokens. */
  readonly hasBudget: boolean
  /** Thinking whose depth the model chooses, guided by an effort. */
  readonly isAdaptive: boolean
  /** How thinking is turned off: the field is left out, or has the value `disabled`; `never`: it cannot be. */
  readonly off: 'leave' | 'disabled' | 'never'
  /** Thinking of earlier responses: `signed` blocks only, `text` beside tool calls, none, or unknown: that of native requests stays. */
  readonly history: 'signed' | 'text' | 'none' | 'unknown'
  /** When a tool can be forced. */
  readonly forcesTools: 'always' | 'withoutBudget' | 'never'
}

interface SamplingRule {
  readonly maxTemperature: number
  /** Values other than the default are rejected: never, while the model reasons, or always. */
  readonly isFixed: 'never' | 'reasoning' | 'always'
  /** `temperature` and `top_p` in one request. */
  readonly takesBoth: boolean
  /** `top_k`: sent, kept in native requests only, or left out. */
  readonly topK: 'sent' | 'native' | 'never'
}

interface StopRule {
  /** Number of stop sequences; 0: the field is left out. */
  readonly max: number
  /** Sequences of white space only. */
  readonly takesBlank: boolean
}

export interface CacheRule {
  /** `native`: `cache_control` of native requests stays. */
  readonly marker: 'cache_control' | 'cachePoint' | 'native' | 'none'
  /** Breakpoints in one request. */
  readonly max: number
  readonly hasTtl: boolean
}

interface BetaRule {
  /** Where values of `anthropic-beta` go. */
  readonly place: 'header' | 'body' | 'none'
  /** Values that are sent; undefined: all. */
  readonly values: ReadonlySet<string> | undefined
  /** Values that are sent when tokens are counted. */
  readonly countValues: ReadonlySet<string> | undefined
  /** Values of Anthropic -> of the target. */
  readonly renames: Readonly<Record<string, string>>
}

/** Keys of the client's query that are sent. */
export interface QueryRule {
  /** undefined: all. */
  readonly only: readonly string[] | undefined
  readonly never: readonly string[]
}

/** Everything that an API and a model family demand of requests. One cell for each rule and target: the compiler rejects a table without. */
export interface TargetRules {
  readonly ids: IdRule
  readonly names: NameRule
  readonly schema: SchemaRule
  readonly roles: RoleRule
  readonly blanks: BlankRule
  readonly user: UserRule
  readonly media: MediaRule
  /** The field of the token limit. */
  readonly tokenLimit: 'max_tokens' | 'max_completion_tokens' | 'max_output_tokens' | 'maxTokens'
  readonly reasoning: ReasoningRule
  readonly sampling: SamplingRule
  readonly stops: StopRule
  readonly cache: CacheRule
  readonly betas: BetaRule
  readonly query: QueryRule
  /** Fields of native requests that the API rejects and that only add an option. */
  readonly drops: readonly string[]
  /** Fields of Chat Completions that the server has under another name. */
  readonly renames: Readonly<Record<string, string>>
  /** Streams report usage only if the request asks for it. */
  readonly asksStreamUsage: boolean
  /** The thought signature of Gemini at tool calls: sent, demanded at the first call of each step, or unknown. */
  readonly thoughts: 'sent' | 'demanded' | 'none'
}
