import type { MiddlewareHandler } from 'hono'

/** Writes log lines of the gateway with the name of the plugin. The number of lines per second is limited. */
export interface PluginLog {
  error(...parts: unknown[]): void
  warn(...parts: unknown[]): void
  info(...parts: unknown[]): void
  debug(...parts: unknown[]): void
}

/** Labels of a sample. */
export interface PluginSample {
  /** Value of the label `detail`, at most 64 characters; default: empty. Use few values: a plugin has at most 200 series, further ones are counted as `other`. */
  readonly detail?: string
}

/**
 * Writes metrics of the gateway with the name of the plugin. Names are lower-case letters, digits and `_`, at most 63 characters.
 *
 * @throws TypeError for other names, and for values that are not finite numbers
 */
export interface PluginMetrics {
  /** Adds `by` (default 1, not negative) to `proxy_plugin_events_total{plugin, event, detail}`. */
  count(event: string, options?: PluginSample & { readonly by?: number }): void
  /** Adds a value to the histogram `proxy_plugin_values{plugin, value, detail}`, with buckets from 0.001 to 10,000. */
  observe(value: string, amount: number, options?: PluginSample): void
}

/** Options of values in `kv`. */
export interface PluginKvOptions {
  /** Seconds after which the value is forgotten; default: never. */
  readonly ttl?: number
}

/**
 * Values of this plugin, shared by all threads of the data plane and kept over versions, until the data plane ends or the plugin is removed from its policy.
 * At most 10,000 entries and 4 MiB; beyond that the least recently used ones are dropped. A key has at most 512 bytes, a value 64 KiB.
 *
 * @throws TypeError (as a rejection) for other keys and values
 */
export interface PluginKv {
  /** Undefined: there is no value. */
  get(key: string): Promise<string | undefined>
  set(key: string, value: string, options?: PluginKvOptions): Promise<void>
  /** Returns whether there was a value. */
  delete(key: string): Promise<boolean>
  /** Adds `by` (default 1) to an integer, 0 at first, and returns the sum. Atomic. `ttl` holds from the first increment. */
  increment(key: string, by?: number, options?: PluginKvOptions): Promise<number>
}

/**
 * `fetch` of the Fetch standard to the hosts in `fetch.hosts` of the policy, through the upstream client of the gateway: pooled connections, HTTP/2 by ALPN, TLS with the
 * system's CAs. Redirects are not followed, content encodings are not decoded, bodies of request and response have at most 2 MiB, and a response must be complete
 * within 10 s.
 *
 * @throws TypeError (as a rejection) for other hosts and if there is no response
 */
export type PluginFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** Arguments of `setup`. */
export interface PluginTools<Config> {
  /** `config` of the policy; valid according to `configSchema`. */
  readonly config: Config
  readonly log: PluginLog
  readonly metrics: PluginMetrics
  readonly kv: PluginKv
  readonly fetch: PluginFetch
  /** Values of `secrets` of the policy, by name. */
  readonly secrets: Readonly<Record<string, string>>
}

/** Who sent a request, and what the plugin keeps about the request. */
export interface PluginCaller {
  /** Headers of the request by their names in lower case; values of a repeated header are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** Claims of an accepted JWT. */
  readonly jwt?: Readonly<Record<string, unknown>>
  /** Metadata of an accepted API key. */
  readonly apiKey?: Readonly<Record<string, unknown>>
  /** User name of accepted basic authentication. */
  readonly user?: string
  /**
   * Values for later hooks of the same request, as JSON of at most 64 KiB; empty at first. They are copied between hooks, so that a restart of the plugin does not lose them. Calls that
   * run at the same time (MCP) do not see the values of each other.
   */
  readonly state: Record<string, unknown>
}

/** A text of a request or response to a model. */
export interface LlmPart {
  /** Identifies the text in the request or response; keep it. A part of a new message has none. */
  readonly ref?: number
  /**
   * `text`; `reasoning` of the model; `result`: text of the result of a tool; `name` of a tool or participant; `json`: JSON text, such as the input of a tool or a schema, which must stay JSON
   * of the same type.
   */
  readonly type: 'text' | 'reasoning' | 'result' | 'name' | 'json'
  /** The text; change it to change the request or response. */
  text: string
}

/** A message of a conversation. Images and other media are not shown; they stay in their message. */
export interface LlmMessage {
  /** Identifies the message in the request; keep it. A new message has none. */
  readonly ref?: number
  /** `system`, `developer`, `user`, `assistant` or `tool`. A new message cannot have `tool`. */
  readonly role: string
  /** Texts in order. The parts of a message cannot be added or removed; set `text` to an empty string instead. A new message has parts of type `text`. */
  readonly parts: LlmPart[]
}

/** A tool that the model may use. */
export interface LlmTool {
  /** Identifies the tool in the request. */
  readonly ref: number
  /** Name; empty for tools of the provider without one. */
  readonly name: string
}

/** A request to a model, the same for all formats of clients and all providers. */
export interface LlmChat {
  /** `chat`, `count` (of tokens), `embeddings`, whose inputs are messages, `rerank` or `moderation`, whose texts are in `others`. */
  readonly type: 'chat' | 'count' | 'embeddings' | 'rerank' | 'moderation'
  /** Whether the response is a stream. */
  readonly stream: boolean
  /** Model that the client named, before aliases; empty if it named none. A model that the provider sets wins. */
  model: string
  /** The conversation, system prompt included. Messages can be added, removed and moved. */
  messages: LlmMessage[]
  /** Texts outside of messages, such as descriptions and schemas of tools. */
  readonly others: LlmPart[]
  /** Tools that the model may use. They can be removed. */
  tools: LlmTool[]
  /** Most tokens of the response; null removes the limit. */
  maxTokens?: number | null
  /** Temperature; null removes it. */
  temperature?: number | null
}

/** The complete response of a model. */
export interface LlmAnswer {
  /** Model that the provider names; empty if it names none. */
  readonly model: string
  /** Whether the client receives a stream, which was held back until its end. */
  readonly stream: boolean
  /** All texts of all choices, in order. Their texts can be changed; they cannot be added or removed. */
  readonly parts: LlmPart[]
}

/** A piece of a text of a streamed response. */
export interface LlmDelta {
  /** As that of `LlmPart`. Pieces of `json` are pieces of JSON text: a change must keep it JSON. */
  readonly type: 'text' | 'reasoning' | 'json'
  /** The same for all pieces of one text. */
  readonly segment: string
  /** The text ends: `text` is the `rest` before, or all of it if the response is no stream. There is one such piece for each text. */
  readonly isLast: boolean
  /** The piece, after the `rest` of the piece before. */
  text: string
  /** Text to hold back, at most 64 KiB: it is removed from `text` by the plugin, and comes first in `text` of the next piece. Default: none. Not used with `isLast`. */
  rest?: string
}

/** A tool of an MCP server, with all members that its server gave it. */
export interface McpTool {
  /** Name as the client sees it. It cannot be changed. */
  readonly name: string
  /** Name of the target that has the tool. */
  readonly server: string
  description?: string
  inputSchema?: object
  [member: string]: unknown
}

/** A call of an MCP tool. */
export interface McpCall {
  /** Name of the target. */
  readonly server: string
  /** Name of the tool at its server. */
  readonly tool: string
  /** Arguments that the server receives; undefined: none. */
  arguments?: unknown
}

/** The result of a call of an MCP tool. */
export interface McpResult {
  /** Name of the target. */
  readonly server: string
  /** Name of the tool at its server. */
  readonly tool: string
  /** Blocks of content as the server sent them, such as `{ type: 'text', text }`. */
  content: unknown[]
  /** If it is changed, it must match the output schema of the tool, unless `isError` is true. */
  structuredContent?: unknown
  /** Whether the tool failed. */
  isError?: boolean
}

/** What a hook returns: the value, changed or not, or a promise of it. Undefined stands for the value that it received, changed in place or not. */
export type HookResult<Value> = Value | undefined | void | Promise<Value | undefined | void>

/**
 * Hooks for requests to LLM backends. They see chats, token counts, embeddings, rankings and moderations in one form for all formats and providers; not requests of type Passthrough, Detect, Realtime and
 * Models. Values are copies, at most 4 MiB of JSON.
 */
export interface LlmHooks {
  /** Called once for each request, before its guards and before a provider is asked. A Response rejects the request. */
  request?(chat: LlmChat, caller: PluginCaller): HookResult<LlmChat | Response>
  /**
   * Called for each piece of the texts of a stream, after the guards of the response. Without `response`, it is also called for each text of other responses, with `isLast`. An error ends
   * the stream with an error event.
   */
  event?(delta: LlmDelta, caller: PluginCaller): HookResult<LlmDelta>
  /** Called for each complete response, after its guards. Without `event`, streams are held back until their end, up to 2 MiB. A Response replaces the response. */
  response?(answer: LlmAnswer, caller: PluginCaller): HookResult<LlmAnswer | Response>
}

/** Hooks for tools of MCP servers. Values are copies, at most 4 MiB of JSON. */
export interface McpHooks {
  /**
   * Called for each list of tools, after authorization: once for all targets, or for each page of a single one. Tools can be changed, moved and removed, not added or renamed; their
   * `outputSchema` can only be removed. A tool that is removed can still be called.
   */
  list?(tools: McpTool[], caller: PluginCaller): HookResult<McpTool[]>
  /** Called for each call of a tool, after authorization and before guards. `arguments` can be changed to another object. A Response rejects the call: its body is the text of the result that the client receives. */
  call?(call: McpCall, caller: PluginCaller): HookResult<McpCall | Response>
  /** Called for each result of a tool, after guards. A Response replaces it by its body as the text of a failed call. */
  result?(result: McpResult, caller: PluginCaller): HookResult<McpResult | Response>
}

/** What a plugin does: at least one hook. */
export interface PluginHooks {
  /**
   * A Hono middleware. With `body: Streamed`, `c.req.raw.body` and `c.res.body` are streams; what is read must be passed on. Before `next()` it may edit the headers of `c.req.raw`, or replace `c.req.raw`; after it, the response is in `c.res`. It responds itself
   * by returning a Response.
   */
  readonly request?: MiddlewareHandler
  /** Hooks for requests to LLM backends. */
  readonly llm?: LlmHooks
  /** Hooks for tools of MCP servers. */
  readonly mcp?: McpHooks
}

/** The default export of a plugin. */
export interface Plugin<Config = unknown> {
  /** JSON Schema of `config`. */
  readonly configSchema?: object
  /** Called once for each version of source and config, in each thread that runs the plugin. */
  readonly setup: (tools: PluginTools<Config>) => PluginHooks | Promise<PluginHooks>
}

/**
 * Returns the plugin; it gives the parameters of `setup` their types.
 *
 * @example
 * export default definePlugin<{ value: string }>({
 *   setup: ({ config }) => ({
 *     async request(c, next) {
 *       await next()
 *       c.header('x-served-by', config.value)
 *     },
 *   }),
 * })
 */
export function definePlugin<Config = unknown>(plugin: Plugin<Config>): Plugin<Config> {
  return plugin
}
