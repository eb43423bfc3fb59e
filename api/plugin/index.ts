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

/** What a plugin does with requests. */
export interface PluginHooks {
  /**
   * A Hono middleware. Before `next()` it may edit the headers of `c.req.raw`, or replace `c.req.raw`; after it, the response is in `c.res`. It responds itself
   * by returning a Response.
   */
  readonly request: MiddlewareHandler
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
