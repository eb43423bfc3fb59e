import type { EvictionEvent } from '../../../net/upstream/balancer/balancer.ts'
import type { Logger } from '../log.ts'
import type { Registry } from './registry.ts'

/**
 * Creates a listener that logs and counts evictions of endpoints by health policies: `proxy_upstream_evictions_total` and, currently
 * evicted, `proxy_upstream_evicted_endpoints`, both by backend.
 */
export function createEvictionReport(log: Logger, registry: Registry): (backend: string, event: EvictionEvent) => void {
  const evictions = registry.counter('proxy_upstream_evictions_total', 'Endpoints that were taken out for their health.', ['backend'])
  const evicted = registry.gauge('proxy_upstream_evicted_endpoints', 'Endpoints that are out for their health.', ['backend'], 'carried')
  return (backend, { kind, endpoint, durationMs, health }) => {
    const fields = { backend, endpoint, health: Number(health.toFixed(3)) }
    if (kind === 'evicted') {
      evictions.series(backend).value++
      evicted.series(backend).value++
      log.warn('endpoint evicted', { code: 'PX4010', ...fields, durationMs: Math.round(durationMs) })
    } else {
      evicted.series(backend).value--
      log.info('endpoint is back', fields)
    }
  }
}
