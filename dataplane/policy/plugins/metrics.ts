import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'

/** Buckets for values of any unit. */
const VALUE_BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000, 5000, 10_000] as const

/** Metrics of plugins; label `plugin` is `<namespace>/<policy>/<plugin>`. */
export const pluginMetrics = defineMetrics((registry) => ({
  calls: registry.counter('proxy_plugin_calls_total', 'Requests that a plugin ran for, by result: passed, answered, failed or timeout.', ['plugin', 'result']),
  hooks: registry.counter('proxy_plugin_hooks_total', 'Calls of hooks for LLM and MCP backends, by result: passed, answered, failed or timeout.', [
    'plugin',
    'hook',
    'result',
  ]),
  ends: registry.counter('proxy_plugin_ends_total', 'Threads of plugins that ended by an error, by a limit or while they were loaded.', ['plugin']),
  events: registry.counter('proxy_plugin_events_total', 'Events that plugins count.', ['plugin', 'event', 'detail']),
  values: registry.histogram('proxy_plugin_values', 'Values that plugins observe.', VALUE_BOUNDS, ['plugin', 'value', 'detail']),
  fetches: registry.counter('proxy_plugin_fetches_total', 'Requests that plugins sent, by entry of fetch.hosts and result: class of the status, or failed.', [
    'plugin',
    'host',
    'result',
  ]),
  versions: registry.gauge(
    'proxy_plugin_version',
    'Version of a plugin that serves calls, with the value 1: the start of the SHA-256 of its source, in hex.',
    ['plugin', 'version'],
    'max',
  ),
  threads: registry.gauge('proxy_plugin_threads', 'Threads of plugins that run.', ['plugin']),
}))
