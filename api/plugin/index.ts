import type { MiddlewareHandler } from 'hono'

/** Writes log lines of the gateway with the name of the plugin. The number of lines per second is limited. */
export interface PluginLog {
  error(...parts: unknown[]): void
  warn(...parts: unknown[]): void
  info(...parts: unknown[]): void
  debug(...parts: unknown[]): void
}

/** Arguments of `setup`. */
export interface PluginTools<Config> {
  /** `config` of the policy; valid according to `configSchema`. */
  readonly config: Config
  readonly log: PluginLog
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
