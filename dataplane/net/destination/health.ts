import { parseDuration, parseTimeout } from '#api/duration.ts'
import type { BackendEviction, Health, HealthCheck as HealthCheckSection } from '#gen/config/types.ts'
import { compileExpression } from '../../request/expression/program.ts'
import type { HealthCheck, Probe } from '../upstream/balancer/check.ts'
import type { Eviction, HealthPolicy } from '../upstream/balancer/health.ts'

const DEFAULT_EVICTION_MS = 3000

/** Cache by section, which is the same object over config versions. */
const compiled = new WeakMap<Health, HealthPolicy>()

/** Compiles the `health` section of a backend policy (part 2, Health). */
export function compileHealth(section: Health): HealthPolicy {
  let policy = compiled.get(section)
  if (policy === undefined) {
    const { unhealthyCondition, eviction, active } = section
    const condition = unhealthyCondition === undefined ? undefined : compileExpression(unhealthyCondition, 'response')
    compiled.set(section, (policy = { condition, eviction: eviction && compileEviction(eviction), active: active && compileCheck(active) }))
  }
  return policy
}

function compileEviction({ duration, restoreHealth, consecutiveFailures, healthThreshold, failurePercentage, maxEvictedPercent }: BackendEviction): Eviction {
  return {
    durationMs: parseDuration(duration ?? '') ?? DEFAULT_EVICTION_MS,
    restoreHealth: fractionOf(restoreHealth),
    consecutiveFailures,
    healthThreshold: fractionOf(healthThreshold),
    maxEvicted: fractionOf(maxEvictedPercent),
    failureRate: failurePercentage && {
      share: failurePercentage.threshold / 100,
      intervalMs: parseDuration(failurePercentage.interval ?? '') ?? 10_000,
      minRequests: failurePercentage.minRequests ?? 50,
    },
  }
}

const fractionOf = (percent: number | undefined): number | undefined => (percent === undefined ? undefined : percent / 100)

function compileCheck(section: HealthCheckSection): HealthCheck {
  const intervalMs = parseTimeout(section.interval) ?? 3000
  return {
    key: JSON.stringify(section),
    intervalMs,
    jitterMs: parseTimeout(section.jitter) ?? intervalMs / 10,
    timeoutMs: parseTimeout(section.timeout) ?? 1000,
    unhealthyThreshold: section.unhealthyThreshold ?? 3,
    healthyThreshold: section.healthyThreshold ?? 1,
    probe: compileProbe(section),
  }
}

function compileProbe({ http, grpc }: HealthCheckSection): Probe {
  if (http !== undefined)
    return { type: 'http', path: http.path, hostname: http.hostname, statuses: new Set(http.expectedStatuses ?? [200]), text: http.expectedBody }
  return grpc === undefined ? { type: 'tcp' } : { type: 'grpc', service: grpc.service ?? '' }
}
