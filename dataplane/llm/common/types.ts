/**
 * What the pipeline knows of formats (llm.md §5, §7, §8). Everything here is pure: ids and the time come from a ResponseContext.
 * Bodies are parsed JSON and never changed in place: whoever edits one makes a new object, so `===` tells whether anything changed
 * and `renderBody` (json.ts) keeps the bytes of what did not.
 */

/** A JSON object as parsed by `parseJson`: numbers that a double cannot hold are raw (json.ts). */
export type JsonObject = { readonly [key: string]: unknown }

export type ChatFormat = 'completions' | 'messages' | 'responses'
/** What clients speak. */
export type ClientFormat = ChatFormat | 'embeddings' | 'tokenCount'
/** What upstreams speak. One provider and model may speak several. */
export type UpstreamFormat =
  | ChatFormat
  | 'converse'
  | 'embeddings'
  | 'predictEmbeddings'
  | 'titanEmbeddings'
  | 'cohereEmbeddings'
  | 'novaEmbeddings'
  | 'messagesCount'
  | 'invokeCount'

/**
 * Why a body cannot be used. The pipeline maps `kind` to an answer (llm.md §10): `invalid`, `missing` and `unsupported` are 400 with the prefix
 * `failed to process LLM request: `, `response` is 502 with `failed to process LLM response: `. `message` already has the row's own prefix.
 */
export class FormatError extends Error {
  readonly kind: 'invalid' | 'missing' | 'unsupported' | 'response'
  constructor(kind: FormatError['kind'], message: string) {
    super(message)
    this.name = 'FormatError'
    this.kind = kind
  }
}

/** What a conversion may need besides the body. All optional but the model. */
export interface RequestContext {
  /** The model that is sent, after aliases. */
  readonly model: string
  /** providerF: goes into every Converse body. */
  readonly guardrail?: { readonly identifier: string; readonly version: string }
  /** providerF, CC and RSP clients only (llm.md §14). Absent: no cache points. */
  readonly promptCaching?: PromptCaching
  /** Values of the client's `anthropic-beta`, comma-split and trimmed (providerF, MSG clients). */
  readonly betas?: readonly string[]
  /** The client's `anthropic-version` (count requests of providerF). */
  readonly anthropicVersion?: string
  /** The client's `x-bedrock-metadata`, as sent (providerF). */
  readonly bedrockMetadata?: string
}

export interface PromptCaching {
  readonly cacheSystem: boolean
  readonly cacheMessages: boolean
  readonly cacheTools: boolean
  readonly minTokens: number
}

/** What the way back must know of the way there. */
export interface RequestMemo {
  readonly model: string
  readonly isStreaming: boolean
  /** Tool names as upstream knows them -> as the client wrote them, only where they differ. */
  readonly toolNames: ReadonlyMap<string, string>
  /** Embeddings are to be base64 of little-endian floats, as OpenAI's SDKs ask by default. */
  readonly isBase64?: boolean
}

export interface ConvertedRequest {
  /** The same object as given when nothing changed. */
  readonly body: JsonObject
  readonly memo: RequestMemo
  /** What was dropped and may surprise, for the log at debug level. */
  readonly warnings: readonly string[]
}

export interface ResponseContext {
  readonly memo: RequestMemo
  /** A response field, lowercase name. */
  header(name: string): string | undefined
  /** `length` random hexadecimal digits. */
  hex(length: number): string
  /** Epoch milliseconds. */
  nowMs(): number
}

/** Token numbers (llm.md §11.4). Absent = upstream did not say. */
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
}

export interface ToolCallFact {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** What an answer says, for limits, CEL, logs and metrics. */
export interface ResponseFacts {
  usage: Usage
  responseModel: string | undefined
  serviceTier: string | undefined
  /** Result of a count request. */
  countTokens: number | undefined
  /** One text per choice or text block. Streams: collected only with `collects`. */
  completion: string[]
  toolCalls: ToolCallFact[]
}

export interface StreamFacts extends ResponseFacts {
  /** A content, tool or reasoning delta was returned: the point of no failover, and of time to first token. */
  hasContent: boolean
  /** Content, tool and reasoning deltas so far: about one token each. Counted even where the content itself is not read. */
  deltas: number
  /** The upstream's terminator was seen ([DONE], message_stop, response.completed, metadata ...). */
  isComplete: boolean
  /** An in-band error event of the upstream. Its translation is among the returned events too. */
  error: { readonly type: string; readonly message: string } | undefined
}

export interface Conversion {
  readonly from: ClientFormat
  readonly to: UpstreamFormat
  /** Same format on both sides: unknown fields survive, and streams are the upstream's bytes. */
  readonly isNative: boolean
  /** Throws FormatError. */
  request(body: JsonObject, context: RequestContext): ConvertedRequest
  /** A buffered 2xx answer. `body` is the same object as given when nothing changed. Throws FormatError of kind response. */
  response(body: unknown, context: ResponseContext): { body: JsonObject; facts: ResponseFacts }
  /** A non-2xx answer (llm.md §9). Status stays. undefined: forward it verbatim. */
  error(status: number, body: Buffer): { body: string; contentType: string } | undefined
  /** A streamed 2xx answer. Throws FormatError when the pair has no streams (embeddings, counts). */
  stream(context: ResponseContext, options?: StreamOptions): ResponseStream
}

export interface StreamOptions {
  /** Guards will read or change deltas: events are parsed and have `deltas`. Otherwise native streams pass as raw chunks. */
  readonly isGuarded?: boolean
  /** Collect completion and toolCalls into the facts. */
  readonly collects?: boolean
  /** Largest event or frame in bytes; a larger one ends the stream as an error. Default 2 MiB. */
  readonly maxEventBytes?: number
}

/** One streamed answer. Never throws; after an error or `end` it returns nothing more. */
export interface ResponseStream {
  readonly facts: StreamFacts
  /** True once nothing more will come: terminator, in-band error, `end` or `fail`. The rest of the upstream's body can be cancelled. */
  readonly isOver: boolean
  /** Takes bytes as they come, split anywhere. */
  push(chunk: Buffer): readonly ClientEvent[]
  /** The upstream body ended well. Without its terminator this gives an error event in the client's format. */
  end(): readonly ClientEvent[]
  /** The stream ends here, with an error event in the client's format: broken upstream, guard, timeout; also after a clean end. `code` defaults to `upstream_error`. */
  fail(message: string, code?: string): readonly ClientEvent[]
}

/** One event for the client, or (native, unguarded) one chunk of the upstream's bytes. */
export interface ClientEvent {
  /** Model-made text in it, in order. */
  readonly deltas: readonly TextDelta[]
  /** Segments that get no more text after this event. A trailing `*` means all that begin so: `0:*` of one choice or block, `*` all. */
  readonly closes: readonly string[]
  /** Bytes to write, with replaced texts. */
  toBytes(): Buffer
}

/** A piece of one running text. Texts of one `segment` in order are the whole text that a guard must see. */
export interface TextDelta {
  /** Stable in one answer, such as `0:content`, `0:tool:1`, `2:text`. */
  readonly segment: string
  /** toolInput is JSON text: a replacement outside of a JSON string must itself be JSON. */
  readonly kind: 'text' | 'reasoning' | 'toolInput'
  /** The event repeats the whole text of the segment (RSP done events): replace it by the whole masked text. */
  readonly isWhole: boolean
  /** The current text. */
  readonly text: string
  replace(text: string): void
}

export type SegmentScope = 'systemPrompt' | 'messages' | 'toolOutput' | 'toolInput'

/** A run of adjacent text parts of one message (llm.md §13.1), or one tool input or output. */
export interface TextSegment {
  readonly scope: SegmentScope
  readonly role: string
  /** The run joined as the format says: CC and MSG with a space; system and RSP with a newline. */
  readonly text: string
  /** Tool input: `text` is JSON. */
  readonly isJson: boolean
  /** Where the parts are: paths into the body. The last one takes the changed text, the others go away. */
  readonly paths: readonly (readonly (string | number)[])[]
}

/** A message as external guards, `llm.prompt` and tokenizers see it. */
export interface FlatMessage {
  readonly role: string
  readonly content: string
}

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

export interface Enrichment {
  readonly prepend?: readonly FlatMessage[]
  readonly append?: readonly FlatMessage[]
}

/** One client format: what policies and guards do with its bodies. All functions are lenient: any JSON object is fine. */
export interface ClientFormatEntry {
  readonly format: ClientFormat
  /** Name in `unsupported conversion` texts. */
  readonly title: string
  isStreaming(body: JsonObject): boolean
  params(body: JsonObject): RequestParams
  /** Messages added to a request (llm.md §12); the body itself when there is nowhere to put them. */
  enrich(body: JsonObject, enrichment: Enrichment): JsonObject
  /** Everything that guards may inspect in a request, in order, all scopes. */
  requestSegments(body: JsonObject): TextSegment[]
  /** The same of a buffered client-format answer: scope messages for text, toolInput for tool calls. */
  responseSegments(body: JsonObject): TextSegment[]
  /** Flattened for external guards, `llm.prompt`, tokenizers. */
  flattenRequest(body: JsonObject): FlatMessage[]
  /** Webhook mask of a request: all messages become these plain-text ones (llm.md §13.3). */
  replaceMessages(body: JsonObject, messages: readonly FlatMessage[]): JsonObject
  /** Webhook view of an answer: CC per choice, MSG per content block (non-text: empty), RSP per message item. */
  flattenResponse(body: JsonObject): FlatMessage[]
  /** Webhook mask of an answer; `contents` has as many entries as flattenResponse gave. */
  replaceChoices(body: JsonObject, contents: readonly string[]): JsonObject
}
