import { parseDuration } from '#api/duration.ts'
import type { BackendEviction, Health } from '#gen/config/types.ts'
import { compileExpression } from '../../request/expression/program.ts'
import type { Eviction, HealthPolicy } from '../upstream/balancer/health.ts'

const DEFAULT_EVICTION_MS = 3000

/** Cache by section, which is the same object over config versions. */
const compiled = new WeakMap<Health, HealthPolicy>()

/** Compiles the `health` section of a backend policy (part 2, Health). */
export function compileHealth(section: Health): HealthPolicy {
  let policy = compiled.get(section)
  if (policy === undefined) {
    const { unhealthyCondition, eviction } = section
    const condition = unhealthyCondition === undefined ? undefined : compileExpression(unhealthyCondition, 'response')
    compiled.set(section, (policy = { condition, eviction: eviction && compileEviction(eviction) }))
  }
  return policy
}

function compileEviction({ duration, restoreHealth, consecutiveFailures, healthThreshold }: BackendEviction): Eviction {
  return {
    durationMs: parseDuration(duration ?? '') ?? DEFAULT_EVICTION_MS,
    restoreHealth: fractionOf(restoreHealth),
    consecutiveFailures,
    healthThreshold: fractionOf(healthThreshold),
  }
}

const fractionOf = (percent: number | undefined): number | undefined => (percent === undefined ? undefined : percent / 100)
