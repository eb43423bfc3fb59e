import type { TryResult } from '#api/management/requests.ts'

type Step = NonNullable<TryResult['trace']>['steps'][number]

/** One row of the waterfall. */
export interface Span {
  readonly step: Step
  /** Milliseconds until the next step of the same or a higher level. */
  readonly durationMs: number
  /** Expressions are shown below the policy that evaluates them. */
  readonly depth: number
  readonly outcome: Outcome
}

interface Outcome {
  readonly tone: 'good' | 'warn' | 'bad' | 'plain'
  readonly text: string
}

/** The steps of a trace with their durations. An attempt lasts until the next attempt or the response. */
export function toSpans(steps: readonly Step[]): Span[] {
  let isInPolicy = false
  const depths = steps.map(({ kind }) => {
    if (kind !== 'expression') isInPolicy = kind === 'policy'
    return kind === 'expression' && isInPolicy ? 1 : 0
  })
  return steps.map((step, index) => {
    const end = steps.findIndex(
      (next, at) => at > index && (step.kind === 'upstream' ? next.kind === 'upstream' || next.kind === 'answer' : (depths[at] ?? 0) <= (depths[index] ?? 0)),
    )
    return { step, depth: depths[index] ?? 0, durationMs: Math.max(0, (steps[end]?.atMs ?? step.atMs) - step.atMs), outcome: outcomeOf(step) }
  })
}

function outcomeOf({ kind, name, detail = {} }: Step): Outcome {
  const { refused, answered, failed, masked, status, result, by, hidden } = detail
  if (refused !== undefined) return { tone: 'bad', text: `rejected${refused === '' ? '' : `: ${refused}`}` }
  if (answered !== undefined) return { tone: 'warn', text: `responded ${answered}` }
  if (failed !== undefined) return { tone: 'bad', text: `failed: ${failed}` }
  if (masked === true) return { tone: 'warn', text: 'masked' }
  if (hidden !== undefined) return { tone: 'warn', text: `hidden: ${hidden}` }
  if (kind === 'policy') return { tone: 'good', text: 'passed' }
  if (kind === 'expression') return { tone: typeof result === 'string' && result.startsWith('error') ? 'bad' : 'plain', text: String(result ?? '') }
  if (kind === 'upstream') return status === undefined ? { tone: 'warn', text: 'no response' } : { tone: toneOf(Number(status)), text: String(status) }
  if (kind === 'model') return { tone: 'plain', text: `${String(detail['target'])}: ${String(by)}` }
  if (kind === 'answer') return { tone: toneOf(Number(name)), text: by === undefined ? '' : `by the ${by}` }
  return { tone: 'plain', text: '' }
}

const toneOf = (status: number): Outcome['tone'] => (status >= 500 || status === 0 ? 'bad' : status >= 400 ? 'warn' : 'good')
