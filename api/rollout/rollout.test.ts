import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { AIModelRollout, AIModelRolloutState, Backend } from '#gen/config/types.ts'
import { advance, changesOf, rolloutsOf, weightsOf } from './rollout.ts'
import { NO_SAMPLES, numbersOf, readSamples, ROLLOUT_BOUNDS, sumSamples, type Arm, type RolloutSample } from './samples.ts'

const MINUTE = 60_000
const targets = [
  { backendRef: { backend: 'ns/openai' }, model: 'old' },
  { backendRef: { backend: 'ns/openai' }, model: 'new' },
]
const backend = (rollout: Partial<AIModelRollout> = {}, to = targets): Backend => ({
  key: 'ns/models',
  ai: { models: [{ name: 'assistant', rules: [{ to, rollout: { steps: [5, 50], every: '10m', minSamples: 10, ...rollout } }] }] },
})

/** An arm of equal attempts. */
function arm(attempts: number, errors = 0, seconds = 1, cost?: number): Arm {
  const bucket = ROLLOUT_BOUNDS.findIndex((bound) => seconds <= bound)
  const durations = ROLLOUT_BOUNDS.map((_, index) => (index === bucket ? attempts - errors : 0))
  return { ...NO_SAMPLES, attempts, errors, durations, ...(cost !== undefined && { cost: cost * (attempts - errors), priced: attempts - errors }) }
}

/** A rollout in time. */
class Run {
  states: AIModelRolloutState[] = []
  nowMs = 0
  backend: Backend

  constructor(rollout: Partial<AIModelRollout> = {}) {
    this.backend = backend(rollout)
    this.step()
  }

  get state(): AIModelRolloutState {
    const [state] = this.states
    if (state === undefined) throw new Error('no state')
    return state
  }

  step(minutes = 0, target?: Arm, baseline: Arm = arm(100)): AIModelRolloutState {
    this.nowMs += minutes * MINUTE
    const known = this.states[0]
    const { model = 'assistant', rule = 0, id = '' } = known ?? {}
    const samples: RolloutSample[] = target === undefined ? [] : [{ backend: 'ns/models', model, rule, id, step: known?.step ?? 0, target, baseline }]
    this.states = advance(this.backend, this.states, samples, this.nowMs)
    return this.state
  }
}

describe('a rollout', () => {
  test('moves after its time with enough samples, and ends with all requests', () => {
    const run = new Run({ abortIf: 'errorRate > 0.1' })
    expect(run.state).toMatchObject({ phase: 'Progressing', step: 0, weight: 5, since: '1970-01-01T00:00:00Z' })
    expect(run.step(9, arm(100))).toMatchObject({ step: 0 })
    expect(run.step(2, arm(9))).toMatchObject({ step: 0, message: 'step 1 of 2, 5 %: waits for 10 attempts with the new target' })
    expect(run.step(0, arm(10))).toMatchObject({ step: 1, weight: 50, since: '1970-01-01T00:11:00Z' })
    expect(run.step(10, arm(10))).toMatchObject({ phase: 'Promoted', weight: 100, message: 'after the last step' })
    expect(run.step(100, arm(100, 100))).toMatchObject({ phase: 'Promoted', weight: 100 })
  })

  test('samples of another step or rollout do not count', () => {
    const run = new Run()
    const { id } = run.state
    const sample = { backend: 'ns/models', model: 'assistant', rule: 0, target: arm(100), baseline: arm(100) }
    for (const other of [
      { id, step: 1 },
      { id: 'other', step: 0 },
    ]) {
      run.states = advance(run.backend, run.states, [{ ...sample, ...other }], 60 * MINUTE)
      expect(run.state.step).toBe(0)
    }
  })

  test.each<[string, string, Arm]>([
    ['errors', 'errorRate > 0.02', arm(100, 3)],
    ['latency', 'p95 > 1.3 * baseline.p95', arm(100, 0, 2)],
    ['cost', 'cost > 1.5 * baseline.cost', arm(100, 0, 1, 0.2)],
    ['errors although the cost is not known', 'errorRate > 0.02 || cost > 1.5 * baseline.cost', arm(100, 3)],
    ['samples', 'samples >= 100', arm(100)],
  ])('is aborted at once by %s', (_, abortIf, target) => {
    const run = new Run({ abortIf })
    const state = run.step(1, target, arm(100, 0, 1, 0.1))
    expect(state).toMatchObject({ phase: 'Aborted', weight: 0, step: 0, byAction: false })
    expect(state.message).toMatch(/^abortIf is true: samples 100, errorRate .*; baseline: samples 100/)
    expect(run.step(60, arm(100))).toBe(state)
  })

  test('is not aborted by fewer attempts than minSamples', () => {
    expect(new Run({ abortIf: 'errorRate > 0.02' }).step(1, arm(9, 9))).toMatchObject({ phase: 'Progressing' })
  })

  test('stays at its step while the condition fails, and names the cause', () => {
    const run = new Run({ abortIf: 'cost > 1.5 * baseline.cost' })
    expect(run.step(60, arm(100))).toMatchObject({ step: 0, message: expect.stringMatching(/^step 1 of 2, 5 %: abortIf decides nothing: .*cost/) })
    expect(run.step(0, arm(100, 0, 1, 1), arm(100, 0, 1, 1))).toMatchObject({ step: 1 })
  })

  test('compares with the baseline of an earlier step if the step has none', () => {
    const run = new Run({ steps: [5, 100], abortIf: 'p95 > 1.3 * baseline.p95' })
    expect(run.step(10, arm(100), arm(100))).toMatchObject({ step: 1, weight: 100, baseline: { p95: expect.any(String) } })
    expect(run.step(1, arm(100, 0, 3), arm(0))).toMatchObject({ phase: 'Aborted' })
  })

  test('stays as it is, whatever the numbers, until a phase or a step changes', () => {
    const run = new Run({ abortIf: 'errorRate > 0.5' })
    const [first, ...others] = [10, 20, 5000].map((attempts) => JSON.stringify(run.step(1, arm(attempts, 1))))
    expect(others).toEqual([first, first])
  })

  test('is paused, promoted and aborted by its action, and begins anew after the last two', () => {
    const run = new Run({ abortIf: 'errorRate > 0.1' })
    run.step(10, arm(100))
    run.backend = backend({ abortIf: 'errorRate > 0.1', action: 'Pause' })
    expect(run.step(100, arm(100))).toMatchObject({ phase: 'Paused', step: 1, weight: 50 })
    run.backend = backend({ action: 'Promote' })
    expect(run.step()).toMatchObject({ phase: 'Promoted', weight: 100, byAction: true })
    run.backend = backend({ action: 'Abort' })
    expect(run.step()).toMatchObject({ phase: 'Aborted', weight: 0 })
    run.backend = backend({})
    expect(run.step()).toMatchObject({ phase: 'Progressing', step: 0, weight: 5 })
  })

  test('that is paused is still aborted by its condition, and stays aborted', () => {
    const run = new Run({ abortIf: 'errorRate > 0.1', action: 'Pause' })
    expect(run.step(1, arm(100, 50))).toMatchObject({ phase: 'Aborted' })
    run.backend = backend({ abortIf: 'errorRate > 0.1' })
    expect(run.step()).toMatchObject({ phase: 'Aborted' })
  })

  test('begins anew with other targets or steps, not with another condition', () => {
    const run = new Run()
    run.step(10, arm(100))
    run.backend = backend({ abortIf: 'errorRate > 0.9', every: '1h', minSamples: 3 })
    expect(run.step()).toMatchObject({ step: 1 })
    run.backend = backend({ steps: [5, 60] })
    expect(run.step()).toMatchObject({ step: 0 })
    run.backend = backend({}, [targets[0] ?? { backendRef: {} }, { backendRef: { backend: 'ns/openai' }, model: 'newer' }] as typeof targets)
    expect(run.step()).toMatchObject({ step: 0 })
  })

  test('changes are steps and phases', () => {
    const run = new Run()
    const before = run.states
    run.step(1, arm(100))
    expect(changesOf('ns/models', before, run.states)).toEqual([])
    run.step(10, arm(100))
    expect(changesOf('ns/models', before, run.states)).toEqual([{ backend: 'ns/models', state: run.state }])
  })
})

test('weights are the share of the last target and, in proportion, the others', () => {
  const weight = fc.integer({ min: 0, max: 1000 })
  fc.assert(
    fc.property(fc.array(weight, { minLength: 1, maxLength: 5 }), fc.integer({ min: 0, max: 100 }), (others, percent) => {
      const weights = weightsOf([...others.map((each) => ({ weight: each })), { weight: 7 }], percent)
      expect(weights.at(-1)).toBe(percent)
      expect(weights.reduce((sum, each) => sum + each, 0)).toBeCloseTo(100, 9)
      const sum = others.reduce((total, each) => total + each, 0)
      for (const [index, each] of others.entries()) expect(weights[index]).toBeCloseTo((sum === 0 ? 1 / others.length : each / sum) * (100 - percent), 9)
    }),
  )
})

describe('samples', () => {
  test('quantiles are within a bucket of the true ones', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0.006, max: 400, noNaN: true }), { minLength: 1, maxLength: 200 }), (seconds) => {
        const durations = ROLLOUT_BOUNDS.map((bound, index) => seconds.filter((each) => each <= bound && each > (ROLLOUT_BOUNDS[index - 1] ?? 0)).length)
        const sorted = seconds.toSorted((a, b) => a - b)
        for (const [name, share] of [
          ['p50', 0.5],
          ['p95', 0.95],
        ] as const) {
          const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0
          const found = numbersOf({ ...NO_SAMPLES, attempts: seconds.length, durations })[name] ?? 0
          expect(found).toBeGreaterThan(exact / 1.21)
          expect(found).toBeLessThan(exact * 1.21)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('of several processes are added up, by rollout and step', () => {
    const sample = { backend: 'b', model: 'm', rule: 0, id: 'i', step: 0, target: arm(10, 1, 1, 0.5), baseline: arm(20) }
    const sum = sumSamples([sample, { ...sample, step: 1 }, sample])
    expect(sum.map(({ step, target }) => [step, target.attempts, target.errors, target.cost])).toEqual([
      [0, 20, 2, 9],
      [1, 10, 1, 4.5],
    ])
    expect(numbersOf(sum[0]?.target ?? NO_SAMPLES)).toMatchObject({ samples: 20, errorRate: 0.1, cost: 0.5 })
  })

  test('that another process sent are read as they are, and anything else is left out', () => {
    const sample = { backend: 'b', model: 'm', rule: 0, id: 'i', step: 0, target: arm(10), baseline: NO_SAMPLES }
    const bad = [
      { ...sample, step: -1 },
      { ...sample, target: { ...sample.target, cost: Number.NaN } },
      { ...sample, baseline: undefined },
      null,
      1,
      { ...sample, target: { ...NO_SAMPLES, durations: Array.from({ length: 70 }, () => 1) } },
    ]
    expect(readSamples([...bad, sample])).toEqual([sample])
    fc.assert(
      fc.property(fc.anything(), (value) => expect(Array.isArray(readSamples([value]))).toBe(true)),
      { numRuns: 200 },
    )
  })
})

test('the rules with a rollout are found with their model and place', () => {
  expect(rolloutsOf(backend()).map(({ model, rule }) => [model, rule])).toEqual([['assistant', 0]])
  expect(rolloutsOf({ key: 'k', ai: { provider: { providerA: {} } } })).toEqual([])
})
