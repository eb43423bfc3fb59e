import { defineMetrics } from '../../telemetry/metrics/area.ts'

/** Metrics of plugins; label `plugin` is `<namespace>/<policy>/<plugin>`. */
export const pluginMetrics = defineMetrics((registry) => ({
  calls: registry.counter('proxy_plugin_calls_total', 'Requests that a plugin ran for, by result: passed, answered, failed or timeout.', ['plugin', 'result']),
  ends: registry.counter('proxy_plugin_ends_total', 'Threads of plugins that ended by an error, by a limit or while they were loaded.', ['plugin']),
  threads: registry.gauge('proxy_plugin_threads', 'Threads of plugins that run.', ['plugin']),
}))
