import { createHash } from 'node:crypto'
import { CelError, compilePermissive, Double, environments } from '#api/cel/index.ts'
import { parseDuration } from '#api/duration.ts'
import type { AIModelRollout, AIModelRolloutState, AIModelTarget, Backend } from '#gen/config/types.ts'
import { NO_SAMPLES, numbersOf, type Numbers, type RolloutSample } from './samples.ts'

const DEFAULT_MIN_SAMPLES = 50
const DEFAULT_EVERY_MS = 30 * 60_000

/** A rule of a model with a rollout. */
interface RolloutRule {
  readonly model: string
  readonly rule: number
  /** Of the targets and the steps: another id is another rollout. */
  readonly id: string
  readonly rollout: AIModelRollout
}

/** A state that differs from the last one in its phase or step. */
export interface RolloutChange {
  readonly backend: string
  readonly state: AIModelRolloutState
}

/** The rules of a backend that have a rollout. */
export function rolloutsOf({ ai }: Backend): RolloutRule[] {
  return (ai?.models ?? []).flatMap(({ name: model, rules = [] }) =>
    rules.flatMap(({ to, rollout }, rule): RolloutRule[] => (rollout === undefined ? [] : [{ model, rule, id: idOf(to, rollout), rollout }])),
  )
}

function idOf(to: readonly AIModelTarget[], { steps }: AIModelRollout): string {
  const targets = to.map(({ backendRef, model }) => [backendRef, model])
  return createHash('sha256')
    .update(JSON.stringify([targets, steps]))
    .digest('hex')
    .slice(0, 12)
}

/** The state of a rule in a list; undefined: none, or that of another rollout. */
export const stateOf = (states: readonly AIModelRolloutState[] | undefined, { model, rule, id }: Pick<RolloutRule, 'model' | 'rule' | 'id'>) =>
  states?.find((state) => state.model === model && state.rule === rule && state.id === id)

/** The weights of the targets of a rule at a share of the last one: the others divide the rest by their own weights, equally if these are all 0. */
export function weightsOf(to: readonly { readonly weight?: number | undefined }[], percent: number): number[] {
  const others = to.slice(0, -1).map(({ weight = 1 }) => weight)
  const sum = others.reduce((total, weight) => total + weight, 0)
  return [...others.map((weight) => (sum === 0 ? 1 / others.length : weight / sum) * (100 - percent)), percent]
}

/**
 * The states of the rollouts of a backend now (llm.md §15.7). A step ends after its time, with enough samples, if the condition is false; a condition that is
 * true ends the rollout at once. One that fails decides nothing.
 *
 * @param known the last states
 * @param samples of all processes, for the steps that these states are at
 */
export function advance(backend: Backend, known: readonly AIModelRolloutState[], samples: readonly RolloutSample[], nowMs: number): AIModelRolloutState[] {
  return rolloutsOf(backend).map((rule) => {
    const state = stateOf(known, rule)
    const sample = samples.find(
      (each) => each.backend === backend.key && each.model === rule.model && each.rule === rule.rule && each.id === rule.id && each.step === (state?.step ?? 0),
    )
    return next(rule, state, sample, nowMs)
  })
}

function next(
  { model, rule, id, rollout }: RolloutRule,
  known: AIModelRolloutState | undefined,
  sample: RolloutSample | undefined,
  nowMs: number,
): AIModelRolloutState {
  const { steps, action = 'Run' } = rollout
  const since = new Date(nowMs).toISOString().replace(/\.\d+/, '')
  const begin = (): AIModelRolloutState => ({
    model,
    rule,
    id,
    phase: 'Progressing',
    step: 0,
    weight: steps[0] ?? 0,
    since,
    message: `${placeOf(steps, 0)}: ${waitsFor(rollout)}`,
  })
  const end = (phase: 'Promoted' | 'Aborted', from: AIModelRolloutState, message: string, byAction: boolean): AIModelRolloutState => ({
    ...from,
    phase,
    weight: phase === 'Promoted' ? 100 : 0,
    since: from.phase === phase ? from.since : since,
    message,
    byAction,
  })
  const isOver = known?.phase === 'Promoted' || known?.phase === 'Aborted'
  const state = known === undefined || (isOver && known.byAction === true && (action === 'Run' || action === 'Pause')) ? begin() : known
  if (action === 'Promote') return end('Promoted', state, 'by action Promote', true)
  if (action === 'Abort') return end('Aborted', state, 'by action Abort', true)
  if (isOver && state === known) return state
  const baseline = baselineOf(state, sample, rollout)
  const verdict = judge(rollout, numbersOf(sample?.target ?? NO_SAMPLES), baseline)
  // Kept for later steps, which may have no requests for the baseline; within a step it would change with each request.
  const kept = baseline === undefined ? state : { ...state, baseline: toTexts(baseline) }
  if (verdict.kind === 'abort') return end('Aborted', kept, verdict.message, false)
  const place = placeOf(steps, state.step)
  if (action === 'Pause') return { ...state, phase: 'Paused', message: `${place}: by action Pause` }
  const isDue = nowMs - Date.parse(state.since) >= everyMs(rollout)
  if (!isDue || verdict.kind === 'open')
    return { ...state, phase: 'Progressing', message: `${place}: ${verdict.kind === 'open' ? verdict.message : `at least ${rollout.every ?? '30m'}`}` }
  const step = state.step + 1
  const weight = steps[step]
  if (weight === undefined) return end('Promoted', kept, 'after the last step', false)
  return { ...kept, phase: 'Progressing', step, weight, since, message: `${placeOf(steps, step)}: ${waitsFor(rollout)}` }
}

const placeOf = (steps: readonly number[], step: number): string => `step ${step + 1} of ${steps.length}, ${steps[step] ?? 100} %`
const waitsFor = ({ minSamples = DEFAULT_MIN_SAMPLES }: Pick<AIModelRollout, 'minSamples'>): string => `waits for ${minSamples} attempts with the new target`

const everyMs = ({ every }: AIModelRollout): number => (every === undefined ? DEFAULT_EVERY_MS : (parseDuration(every) ?? DEFAULT_EVERY_MS))

type Verdict = { readonly kind: 'pass' } | { readonly kind: 'open' | 'abort'; readonly message: string }

function judge({ abortIf, minSamples = DEFAULT_MIN_SAMPLES }: AIModelRollout, target: Numbers, baseline: Numbers | undefined): Verdict {
  if ((target.samples ?? 0) < minSamples) return { kind: 'open', message: waitsFor({ minSamples }) }
  if (abortIf === undefined) return { kind: 'pass' }
  const { program } = compilePermissive(abortIf, environments.rollout)
  const result = program.eval({ ...toCel(target), baseline: toCel(baseline ?? {}) })
  if (result === true) return { kind: 'abort', message: `abortIf is true: ${describe(target)}; baseline: ${describe(baseline ?? {})}` }
  if (result === false) return { kind: 'pass' }
  const cause = result instanceof CelError ? result.message : 'it is not a bool'
  return { kind: 'open', message: `abortIf decides nothing: ${cause}`.slice(0, 500) }
}

/** A number without a fraction would be an int, which `*` does not combine with a double. */
const toCel = (numbers: Numbers): object =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, name === 'samples' ? BigInt(value) : new Double(value)]))

/** The baseline of the step, or the last known one while the step has too few attempts with it: at 100 % it has none. */
function baselineOf(state: AIModelRolloutState, sample: RolloutSample | undefined, { minSamples = DEFAULT_MIN_SAMPLES }: AIModelRollout): Numbers | undefined {
  if (sample !== undefined && sample.baseline.attempts >= minSamples) return numbersOf(sample.baseline)
  const { baseline } = state
  return baseline && Object.fromEntries(Object.entries(baseline).map(([name, text]) => [name, Number(text)]))
}

const toTexts = (numbers: Numbers): Record<string, string> =>
  Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, String(Number(value.toPrecision(3)))]))

const describe = (numbers: Numbers): string => {
  const texts = Object.entries(numbers).map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
  return texts.length === 0 ? 'not known' : texts.join(', ')
}

/** The states that are at another step or in another phase than before, for Events and logs. */
export function changesOf(backend: string, before: readonly AIModelRolloutState[], after: readonly AIModelRolloutState[]): RolloutChange[] {
  return after.flatMap((state) => {
    const last = stateOf(before, state)
    return last?.phase === state.phase && last.step === state.step ? [] : [{ backend, state }]
  })
}
