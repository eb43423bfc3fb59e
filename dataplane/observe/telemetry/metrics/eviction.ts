import type { EvictionEvent } from '../../../net/upstream/balancer/balancer.ts'
import type { Logger } from '../log.ts'
import type { Registry } from './registry.ts'

/**
 * Creates a listener that logs and counts evictions of endpoints by health policies: `proxy_upstream_evictions_total`; currently
 * evicted, `proxy_upstream_evicted_endpoints`, and those that fail their checks, `proxy_upstream_failing_endpoints`, all by backend.
 */
export function createEvictionReport(log: Logger, registry: Registry): (backend: string, event: EvictionEvent) => void {
  const evictions = registry.counter('proxy_upstream_evictions_total', 'Endpoints that were taken out for their health.', ['backend'])
  const evicted = registry.gauge('proxy_upstream_evicted_endpoints', 'Endpoints that are out for their health.', ['backend'], 'carried')
  const failing = registry.gauge('proxy_upstream_failing_endpoints', 'Endpoints whose health checks fail.', ['backend'], 'carried')
  return (backend, { kind, endpoint, durationMs, health, error }) => {
    if (kind === 'down') {
      failing.series(backend).value++
      return log.warn('endpoint fails its health checks', { code: 'PX4010', backend, endpoint, error })
    }
    if (kind === 'up' || kind === 'unchecked') {
      failing.series(backend).value--
      return log.info(kind === 'up' ? 'endpoint passes its health checks' : 'endpoint is no longer checked', { backend, endpoint })
    }
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
