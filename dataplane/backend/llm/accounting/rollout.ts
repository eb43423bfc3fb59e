import { METRIC_PREFIX } from '#api/names.ts'
import { NO_SAMPLES, ROLLOUT_BOUNDS, type Arm, type RolloutSample } from '#api/rollout/samples.ts'
import { defineMetrics } from '../../../observe/telemetry/metrics/area.ts'
import type { FamilyDump, Registry } from '../../../observe/telemetry/metrics/registry.ts'

/** A side of a rollout that a target is on (llm.md §15.7). */
export interface RolloutArm {
  readonly backend: string
  readonly model: string
  readonly rule: number
  readonly id: string
  readonly step: number
  readonly isNew: boolean
}

/** A successful attempt. */
interface Success {
  readonly beganAtMs: number
  /** Of streams. */
  readonly firstTokenAtMs: number | undefined
  readonly endedAtMs: number
  readonly cost: number | undefined
}

const LABELS = ['backend', 'model', 'rule', 'rollout', 'step', 'arm'] as const
const names = {
  attempts: `${METRIC_PREFIX}llm_rollout_attempts_total`,
  durations: `${METRIC_PREFIX}llm_rollout_duration_seconds`,
  firstTokens: `${METRIC_PREFIX}llm_rollout_time_to_first_token_seconds`,
  cost: `${METRIC_PREFIX}llm_rollout_cost`,
} as const
/** Metrics that `samplesOf` reads. */
export const ROLLOUT_FAMILIES: readonly string[] = Object.values(names)

const rolloutMetrics = defineMetrics((registry) => ({
  attempts: registry.counter(names.attempts, 'Attempts with targets of a rule with a rollout, by result.', [...LABELS, 'result']),
  durations: registry.histogram(names.durations, 'Seconds until the end of successful responses of a rollout.', ROLLOUT_BOUNDS, LABELS),
  firstTokens: registry.histogram(names.firstTokens, 'Seconds until the first token of streams of a rollout.', ROLLOUT_BOUNDS, LABELS),
  cost: registry.histogram(names.cost, 'Cost of successful responses of a rollout, in US dollars.', [0.001, 0.01, 0.1, 1], LABELS),
}))

const valuesOf = ({ backend, model, rule, id, step, isNew }: RolloutArm): [string, string, string, string, string, string] => [
  backend,
  model,
  String(rule),
  id,
  String(step),
  isNew ? 'new' : 'baseline',
]

export function countFailure(registry: Registry, arm: RolloutArm): void {
  rolloutMetrics(registry).attempts.series(...valuesOf(arm), 'error').value++
}

export function countSuccess(registry: Registry, arm: RolloutArm, { beganAtMs, firstTokenAtMs, endedAtMs, cost }: Success): void {
  const metrics = rolloutMetrics(registry)
  const values = valuesOf(arm)
  metrics.attempts.series(...values, 'success').value++
  metrics.durations.series(...values).observe((endedAtMs - beganAtMs) / 1000)
  if (firstTokenAtMs !== undefined) metrics.firstTokens.series(...values).observe((firstTokenAtMs - beganAtMs) / 1000)
  if (cost !== undefined) metrics.cost.series(...values).observe(cost)
}

/** The samples in the metrics of all threads. */
export function samplesOf(threads: readonly (readonly FamilyDump[])[]): RolloutSample[] {
  const found = new Map<string, { -readonly [K in keyof RolloutSample]: RolloutSample[K] }>()
  for (const { name, labels, bounds, series, values } of threads.flat()) {
    const stride = values.length / Math.max(1, series.length)
    for (const [index, [backend = '', model = '', rule = '', id = '', step = '', arm = '', result]] of series.entries()) {
      if (labels.length < LABELS.length) continue
      const key = JSON.stringify([backend, model, rule, id, step])
      const sample = found.get(key) ?? { backend, model, rule: Number(rule), id, step: Number(step), target: NO_SAMPLES, baseline: NO_SAMPLES }
      found.set(key, sample)
      const side = arm === 'new' ? 'target' : 'baseline'
      sample[side] = add(sample[side], name, values.subarray(index * stride, (index + 1) * stride), bounds.length + 1, result)
    }
  }
  return [...found.values()].filter(({ rule, step }) => Number.isInteger(rule) && Number.isInteger(step))
}

/** Adds the numbers of a series: one, or sum, count and buckets. */
function add(arm: Arm, name: string, [first = 0, count = 0, ...buckets]: Float64Array, length: number, result: string | undefined): Arm {
  const sum = (known: readonly number[]): number[] => Array.from({ length }, (_, index) => (known[index] ?? 0) + (buckets[index] ?? 0))
  switch (name) {
    case names.attempts:
      return { ...arm, attempts: arm.attempts + first, errors: arm.errors + (result === 'error' ? first : 0) }
    case names.durations:
      return { ...arm, durations: sum(arm.durations) }
    case names.firstTokens:
      return { ...arm, firstTokens: sum(arm.firstTokens) }
    default:
      return { ...arm, cost: arm.cost + first, priced: arm.priced + count }
  }
}
