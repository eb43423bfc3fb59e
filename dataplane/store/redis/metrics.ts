import { METRIC_PREFIX } from '#api/names.ts'
import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'

/** Metrics of the connection to Redis. */
export const redisMetrics = defineMetrics((registry) => ({
  /** `command`: get, set, remove or evaluate; `result`: ok or failed. */
  commands: registry.counter(
    `${METRIC_PREFIX}redis_commands_total`,
    'Commands to Redis; failed ones are misses of caches, and budgets that cannot be charged.',
    ['command', 'result'],
  ),
}))
