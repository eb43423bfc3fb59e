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

/** Arguments of `setup`. */
export interface PluginTools<Config> {
  /** `config` of the policy; valid according to `configSchema`. */
  readonly config: Config
  readonly log: PluginLog
  readonly metrics: PluginMetrics
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
  /** Called once for each version of source and config, in each worker thread. */
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
