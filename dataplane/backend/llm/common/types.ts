/**
 * The contract between the request pipeline and the formats (llm.md §5, §7, §8). Everything here is pure: ids and the time come from a
 * ResponseContext. Bodies are parsed JSON and never changed in place. An edit returns a new object, so `===` shows whether anything
 * changed, and `renderBody` (json.ts) keeps the bytes of unchanged members.
 */

import type { ServerRules } from '#api/llm-presets.ts'
import type { ModelCapabilities, PRICED_UNITS } from '#api/price-catalog.ts'

/** A JSON object as parsed by `parseJson`: numbers that a double cannot hold are raw (json.ts). */
export type JsonObject = { readonly [key: string]: unknown }

/** Formats with chats: the Chat Completions, Messages and Responses APIs, and generateContent of Gemini. */
export type ChatFormat = 'completions' | 'messages' | 'responses' | 'gemini'
/** The formats of clients. */
export type ClientFormat = ChatFormat | 'embeddings' | 'geminiEmbeddings' | 'tokenCount' | 'geminiCount' | 'rerank' | 'moderations'
/** The formats of upstreams. One provider and model may support several. */
export type UpstreamFormat =
  | ChatFormat
  | 'converse'
  | 'embeddings'
  | 'predictEmbeddings'
  | 'titanEmbeddings'
  | 'cohereEmbeddings'
  | 'novaEmbeddings'
  | 'geminiEmbeddings'
  | 'messagesCount'
  | 'geminiCount'
  | 'invokeCount'
  | 'rerank'
  | 'moderations'

const purposes: Readonly<Record<ClientFormat, 'chat' | 'embeddings' | 'count' | 'rerank' | 'moderation'>> = {
  completions: 'chat',
  messages: 'chat',
  responses: 'chat',
  gemini: 'chat',
  embeddings: 'embeddings',
  geminiEmbeddings: 'embeddings',
  tokenCount: 'count',
  geminiCount: 'count',
  rerank: 'rerank',
  moderations: 'moderation',
}
/** What a format is for. */
export const purposeOf = (format: ClientFormat): (typeof purposes)[ClientFormat] => purposes[format]
/** Whether a format has chats. */
export const isChatFormat = (format: ClientFormat): format is ChatFormat => purposes[format] === 'chat'
/** Whether a format counts tokens. */
export const isCountFormat = (format: ClientFormat): boolean => purposes[format] === 'count'
/** Whether a format is for embeddings. */
export const isEmbeddingsFormat = (format: ClientFormat): boolean => purposes[format] === 'embeddings'
/** Whether a format has an API of its own that is not translated: rankings and moderations. */
export const isPlainFormat = (format: ClientFormat): format is 'rerank' | 'moderations' => format === 'rerank' || format === 'moderations'
/** Whether a format is one of Gemini's clients. */
export const isGeminiFormat = (format: ClientFormat): boolean => format.startsWith('gemini')

/** An API that requests are sent to, by the rules that it enforces (llm.md §7.15). `compatible` are servers of other vendors with the Chat Completions API. */
export type Target = 'openai' | 'azure' | 'compatible' | 'responses' | 'anthropic' | 'vertexClaude' | 'gemini' | 'vertex' | 'converse'

/**
 * A body that cannot be used. `kind` selects the response to the client (llm.md §10): `invalid`, `missing` and `unsupported` are 400 with the
 * prefix `failed to process LLM request: `, `response` is 502 with `failed to process LLM response: `. `message` includes the further prefix of
 * its row in llm.md §10.
 */
export class FormatError extends Error {
  readonly kind: 'invalid' | 'missing' | 'unsupported' | 'response'
  /** The error that the upstream sent in a response with status 200. */
  readonly received: StreamError | undefined
  constructor(kind: FormatError['kind'], message: string, received?: StreamError) {
    super(message)
    this.name = 'FormatError'
    this.kind = kind
    this.received = received
  }
}

/** Inputs of a request conversion besides the body. */
export interface RequestContext {
  /** The model to send, with aliases resolved. */
  readonly model: string
  /** The API that the request is sent to, if it is not the usual one of its format. */
  readonly target?: Target
  /** What a catalog says that the model accepts. */
  readonly capabilities?: ModelCapabilities
  /** How the server differs from others with its API. */
  readonly server?: ServerRules
  /** Guardrail for every Converse body (providerF). */
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  /** Adds cache points to Converse bodies of Chat Completions and Responses clients (llm.md §14). */
  readonly promptCaching?: PromptCaching
  /** Values of the client's `anthropic-beta` (providerF, Messages clients). */
  readonly betas?: readonly string[]
  /** The client's `anthropic-version` (count requests of providerF). */
  readonly anthropicVersion?: string
  /** The client's `x-bedrock-metadata`, as sent (providerF). */
  readonly bedrockMetadata?: string
}

/** The policy `ai.promptCaching`: which parts of a request end with a cache point (llm.md §14). `minTokens` is the minimum size of the system prompt. */
export interface PromptCaching {
  readonly cacheSystem: boolean
  readonly cacheMessages: boolean
  readonly cacheTools: boolean
  readonly minTokens: number
}

/** Facts about the request that reading the response needs. */
export interface RequestMemo {
  readonly model: string
  readonly isStreaming: boolean
  /** Tool names of the upstream request -> of the client, only if they differ. */
  readonly toolNames: ReadonlyMap<string, string>
  /** Embeddings are returned as base64 of little-endian floats, as OpenAI's SDKs request by default. */
  readonly isBase64?: boolean
  /** The request of a Gemini client has one text, and so the response one vector. */
  readonly isSingle?: boolean
}

/** A request in the upstream's format. */
export interface ConvertedRequest {
  /** The same object as the input if nothing changed. */
  readonly body: JsonObject
  readonly memo: RequestMemo
  /** Places in the client's body that were left out: `tools[4]`, `store`. */
  readonly omitted: readonly string[]
}

/** Inputs of a response conversion besides the body. */
export interface ResponseContext {
  readonly memo: RequestMemo
  /** A response header; the name is in lower case. */
  header(name: string): string | undefined
  /** `length` random hexadecimal digits. */
  hex(length: number): string
  /** Epoch milliseconds. */
  nowMs(): number
}

/** Token counts (llm.md §11.4). Absent if the upstream did not report them. */
export interface Usage {
  /** Includes cache reads and writes, whatever the upstream's convention. */
  inputTokens?: number
  outputTokens?: number
  /** inputTokens + outputTokens. */
  totalTokens?: number
  providerInputTokens?: number
  providerTotalTokens?: number
  cachedInputTokens?: number
  cacheCreationInputTokens?: number
  reasoningTokens?: number
  inputImageTokens?: number
  inputTextTokens?: number
  inputAudioTokens?: number
  outputImageTokens?: number
  outputTextTokens?: number
  outputAudioTokens?: number
  /** Search units of a ranking. */
  searches?: number
  /** Images of the response. */
  images?: number
  /** Seconds of audio. */
  seconds?: number
  /** Characters of a text that is spoken. */
  characters?: number
}

/** What is counted in place of tokens, by models that are priced so. */
export type Units = Pick<Usage, (typeof PRICED_UNITS)[number]>

/** A tool call of a response; `arguments` is JSON text. */
export interface ToolCallFact {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** What was not understood in a response: a part, the reason of its end, or an error. */
export type UnknownKind = 'fragment' | 'finish_reason' | 'error'

/** The facts about a response, for limits, CEL, logs and metrics. */
export interface ResponseFacts {
  usage: Usage
  responseModel: string | undefined
  serviceTier: string | undefined
  /** Result of a count request. */
  countTokens: number | undefined
  /** One text per choice or text block. For streams only with `StreamOptions.collects`. */
  completion: string[]
  toolCalls: ToolCallFact[]
  /** How often something was not understood; absent: never. */
  unknown?: Partial<Record<UnknownKind, number>>
}

/** Why a model stopped. */
export type Stop = 'end' | 'stopSequence' | 'pause' | 'maxTokens' | 'contextWindow' | 'toolUse' | 'filtered'

/** An error event of an upstream, or one of the gateway that ends a stream. */
export interface StreamError {
  readonly type: string
  readonly message: string
  /** The event as parsed; undefined if it is no JSON. */
  readonly received?: unknown
}

/** The facts about a streamed response, updated with every event. */
export interface StreamFacts extends ResponseFacts {
  /** A content, tool or reasoning delta was returned. From here on no failover happens; the time to first token ends. */
  hasContent: boolean
  /** Number of content, tool and reasoning deltas, about one token each. Counted even if the content is not read. */
  deltas: number
  /** Bytes of text and arguments of tools in UTF-8. With native streams, complete only with `StreamOptions.measures`. */
  textBytes: number
  /** The upstream's terminator was received ([DONE], message_stop, response.completed, metadata ...). */
  isComplete: boolean
  /** An error event of the upstream. Its translation is among the returned events too. */
  error: StreamError | undefined
  /** Why the model stopped. */
  stop: Stop | undefined
}

/** The conversion between one client format and one upstream format. */
export interface Conversion {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  /** Both formats are the same: unknown fields are kept, and streams pass as the upstream's bytes. */
  readonly isNative: boolean
  /** Throws FormatError. */
  request(body: JsonObject, context: RequestContext): ConvertedRequest
  /** Converts a buffered 2xx response. Returns the same object if nothing changed. Throws a FormatError of kind `response`. */
  response(body: unknown, context: ResponseContext): { body: JsonObject; facts: ResponseFacts }
  /** Converts the body of a non-2xx response; the status stays (llm.md §9). undefined if it is forwarded unchanged. `isUnknown`: its shape is none of an API. */
  error(status: number, body: Buffer): { body: string; contentType: string; isUnknown: boolean } | undefined
  /** Converts a streamed 2xx response. Throws a FormatError for pairs without streams (embeddings, token counts). */
  stream(context: ResponseContext, options?: StreamOptions): ResponseStream
}

/** Options of a stream conversion. */
export interface StreamOptions {
  /** Guards read or change deltas, so all events are parsed. Otherwise native streams pass as raw chunks. */
  readonly isGuarded?: boolean
  /** Collect `completion` and `toolCalls` into the facts. */
  readonly collects?: boolean
  /** Measure the text of all events in `facts.textBytes`. */
  readonly measures?: boolean
  /** Largest event or frame in bytes; a larger one ends the stream as an error. Default 2 MiB. */
  readonly maxEventBytes?: number
}

/** One streamed response. Never throws. After an error or `end` it returns no more events. */
export interface ResponseStream {
  readonly facts: StreamFacts
  /** True after the terminator, an error event, `end` or `fail`. The rest of the upstream's body can be cancelled. */
  readonly isOver: boolean
  /** Converts the next bytes, which may be split anywhere. */
  push(chunk: Buffer): readonly ClientEvent[]
  /**
   * Whether the next bytes are for the client as they are. If so, counts their events, and they must not be pushed; otherwise does nothing.
   * Keeps no reference to the chunk.
   */
  relay(chunk: Buffer): boolean
  /** The upstream's body ended. Returns an error event in the client's format if the terminator is missing. */
  end(): readonly ClientEvent[]
  /**
   * Ends the stream with an error event in the client's format: connection error, guard, timeout. Also possible after `end`. `code`
   * defaults to `upstream_error`.
   */
  fail(message: string, code?: string): readonly ClientEvent[]
}

/** One event for the client, or (native, unguarded) one chunk of the upstream's bytes. */
export interface ClientEvent {
  /** Text of the model in the event, in order. */
  readonly deltas: readonly TextDelta[]
  /** Other texts in the event, each complete: names of tools, results of the provider's tools, and members that no format has. */
  readonly others: readonly TextDelta[]
  /** Segments that end with this event. A trailing `*` matches a prefix: `0:*` is one choice or block, `*` is all. */
  readonly closes: readonly string[]
  /** The bytes to write, with replaced texts. */
  toBytes(): Buffer
}

/** A piece of a text. The pieces of one `segment`, in order, form the text that a guard checks. */
export interface TextDelta {
  /** Unique in a response, such as `0:content`, `0:tool:1`, `2:text`. */
  readonly segment: string
  /**
   * `toolInput` is JSON text: a replacement outside of a JSON string must itself be JSON. `copy` depends on the text of the segment so far,
   * such as a signature, and is emptied if that changed.
   */
  readonly kind: 'text' | 'reasoning' | 'toolInput' | 'copy'
  /** The event repeats the whole text of the segment (`done` events of Responses), and must be replaced by the whole masked text. */
  readonly isWhole: boolean
  /** The current text. */
  readonly text: string
  replace(text: string): void
}

/** A message as plain text, for external guards, `llm.prompt` and the tokenizer. */
export interface FlatMessage {
  readonly role: string
  readonly content: string
}

/** Sampling parameters of a request, by the names of the Chat Completions and Embeddings APIs. */
export interface RequestParams {
  temperature?: number
  top_p?: number
  frequency_penalty?: number
  presence_penalty?: number
  seed?: number
  max_tokens?: number
  encoding_format?: string
  dimensions?: number
}

/** Messages that the policy `ai.prompt` adds before and after those of the client. */
export interface Enrichment {
  readonly prepend?: readonly FlatMessage[]
  readonly append?: readonly FlatMessage[]
}

/** One client format: how policies and guards read and change its bodies. All functions accept any JSON object. */
export interface ClientFormatEntry {
  readonly format: ClientFormat
  /** Name in `unsupported conversion` errors. */
  readonly title: string
  isStreaming(body: JsonObject): boolean
  /** Adds what the path of a request says to its body, where that is the place of the model. Throws a FormatError. */
  address?(body: JsonObject, target: string): JsonObject
  params(body: JsonObject): RequestParams
  /** What the provider bills by in place of tokens, if its response does not say how much. */
  units?(body: JsonObject): Units
  /** Adds messages to a request (llm.md §12); returns the same object if the format has no messages. */
  enrich(body: JsonObject, enrichment: Enrichment): JsonObject
  /** The messages of a request as plain text. */
  flattenRequest(body: JsonObject): FlatMessage[]
  /** Replaces all messages of a request by plain-text ones, for a webhook's mask (llm.md §13.3). */
  replaceMessages(body: JsonObject, messages: readonly FlatMessage[]): JsonObject
  /** A response as plain text: per choice (Chat Completions), content block (Messages; empty if not text) or message item (Responses). */
  flattenResponse(body: JsonObject): FlatMessage[]
  /** Replaces the texts of a response; `contents` has one entry per entry of `flattenResponse`. */
  replaceChoices(body: JsonObject, contents: readonly string[]): JsonObject
}
