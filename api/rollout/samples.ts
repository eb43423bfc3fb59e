/** Upper bounds of the buckets of times, in seconds: 5 ms to 8 min, each 1.2 times the last. */
export const ROLLOUT_BOUNDS: readonly number[] = Array.from({ length: 64 }, (_, power) => 0.005 * 1.2 ** power)
/** One bucket more than bounds: for times above the last. */
const BUCKETS = ROLLOUT_BOUNDS.length + 1

/** Attempts with the new target of a rollout, or with the others. */
export interface Arm {
  readonly attempts: number
  /** Attempts that failed for a cause of the target, not of the client. */
  readonly errors: number
  /** Times until the end of successful responses, by bucket. */
  readonly durations: readonly number[]
  /** Times until the first token of streams, by bucket. */
  readonly firstTokens: readonly number[]
  /** US dollars of the responses with a price, and their number. */
  readonly cost: number
  readonly priced: number
}

/** What a process measured in one step of a rollout. */
export interface RolloutSample {
  /** `<namespace>/<name>` of the backend. */
  readonly backend: string
  readonly model: string
  readonly rule: number
  readonly id: string
  readonly step: number
  readonly target: Arm
  readonly baseline: Arm
}

/** The numbers of conditions. One that is not known is absent, so that a condition that reads it fails. */
export type Numbers = Readonly<Partial<Record<'samples' | 'errorRate' | 'p50' | 'p95' | 'firstTokenP50' | 'firstTokenP95' | 'cost', number>>>

export const NO_SAMPLES: Arm = { attempts: 0, errors: 0, durations: [], firstTokens: [], cost: 0, priced: 0 }

export function numbersOf({ attempts, errors, durations, firstTokens, cost, priced }: Arm): Numbers {
  const set = (name: keyof Numbers, value: number | undefined): Numbers => (value === undefined ? {} : { [name]: value })
  return {
    samples: attempts,
    ...set('errorRate', attempts === 0 ? undefined : errors / attempts),
    ...set('p50', quantile(durations, 0.5)),
    ...set('p95', quantile(durations, 0.95)),
    ...set('firstTokenP50', quantile(firstTokens, 0.5)),
    ...set('firstTokenP95', quantile(firstTokens, 0.95)),
    ...set('cost', priced === 0 ? undefined : cost / priced),
  }
}

/** A quantile, interpolated within its bucket; undefined without values. */
function quantile(counts: readonly number[], share: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let left = share * total
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && left <= count) {
      const low = ROLLOUT_BOUNDS[bucket - 1] ?? 0
      return low + ((ROLLOUT_BOUNDS[bucket] ?? low) - low) * (left / count)
    }
    left -= count
  }
  return ROLLOUT_BOUNDS.at(-1)
}

/** Adds up the samples of several processes. */
export function sumSamples(samples: readonly RolloutSample[]): RolloutSample[] {
  const byStep = new Map<string, RolloutSample>()
  for (const sample of samples) {
    const key = JSON.stringify([sample.backend, sample.model, sample.rule, sample.id, sample.step])
    const known = byStep.get(key)
    byStep.set(
      key,
      known === undefined ? sample : { ...sample, target: addArms(known.target, sample.target), baseline: addArms(known.baseline, sample.baseline) },
    )
  }
  return [...byStep.values()]
}

const addArms = (a: Arm, b: Arm): Arm => ({
  attempts: a.attempts + b.attempts,
  errors: a.errors + b.errors,
  durations: addCounts(a.durations, b.durations),
  firstTokens: addCounts(a.firstTokens, b.firstTokens),
  cost: a.cost + b.cost,
  priced: a.priced + b.priced,
})

const addCounts = (a: readonly number[], b: readonly number[]): number[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, index) => (a[index] ?? 0) + (b[index] ?? 0))

/** The valid samples of a list that another process sent. */
export function readSamples(list: readonly unknown[]): RolloutSample[] {
  return list.flatMap((item): RolloutSample[] => {
    const { backend, model, rule, id, step, target, baseline } = (typeof item === 'object' && item !== null ? item : {}) as Record<string, unknown>
    const [own, others] = [readArm(target), readArm(baseline)]
    if (typeof backend !== 'string' || typeof model !== 'string' || typeof id !== 'string' || !isCount(rule) || !isCount(step)) return []
    return own === undefined || others === undefined ? [] : [{ backend, model, rule, id, step, target: own, baseline: others }]
  })
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.length <= BUCKETS && value.every(isCount)

function readArm(value: unknown): Arm | undefined {
  const { attempts, errors, durations, firstTokens, cost, priced } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  if (!isCount(attempts) || !isCount(errors) || !isCount(priced) || !isCounts(durations) || !isCounts(firstTokens)) return undefined
  return typeof cost === 'number' && Number.isFinite(cost) && cost >= 0 ? { attempts, errors, durations, firstTokens, cost, priced } : undefined
}
