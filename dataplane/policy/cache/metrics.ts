import { defineMetrics } from '../../observe/telemetry/metrics/area.ts'
import type { Series } from '../../observe/telemetry/metrics/registry.ts'

/** What a cache did with a request. */
export type CacheResult = 'hit' | 'miss' | 'revalidated' | 'bypass'

/** Metrics of the cache of plain routes (traffic.md §8.15). */
export const cacheMetrics = defineMetrics((registry) => {
  const results = registry.counter('proxy_cache_requests_total', 'GET requests to routes with a cache, by result.', ['result'])
  return { results: (result: CacheResult): Series => results.series(result) }
})
