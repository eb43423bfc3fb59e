/** A target, as far as its list is checked. `id` names what it leads to. */
interface Target {
  readonly id: string
  readonly model?: string | undefined
  readonly weight?: number | undefined
}

/** The models of an LLM backend, in the form of the API or of the config, with each target reduced to what is compared. */
export interface ModelLists {
  readonly name: string
  readonly to?: readonly Target[] | undefined
  readonly rules?:
    | readonly { readonly when?: string | undefined; readonly to: readonly Target[]; readonly rollout?: { readonly steps: readonly number[] } | undefined }[]
    | undefined
  readonly fallback?: readonly { readonly to: readonly Target[] }[] | undefined
}

/** A model in any form, by its targets. */
interface WithTargets<T, C> {
  readonly to?: readonly T[] | undefined
  readonly rules?: readonly { readonly to: readonly T[] }[] | undefined
  readonly fallback?: readonly { readonly to: readonly T[] }[] | undefined
  readonly shadow?: { readonly to: C; readonly judge?: { readonly to: C } | undefined } | undefined
}

/** The targets that serve a model, those of fallbacks included. */
export const servingTargets = <T>({ to = [], rules = [], fallback = [] }: WithTargets<T, unknown>): T[] => [
  ...to,
  ...[...rules, ...fallback].flatMap((entry) => [...entry.to]),
]

/** The targets that get copies of requests, or are asked about them. */
export const shadowTargets = <C>({ shadow }: WithTargets<unknown, C>): C[] =>
  shadow === undefined ? [] : [shadow.to, ...(shadow.judge === undefined ? [] : [shadow.judge.to])]

/** A part of `ai.models` that has no effect, or another one than it seems to have. `path` is within `ai`. */
export interface ModelProblem {
  readonly path: readonly (string | number)[]
  readonly text: string
  readonly code: 'PX1381' | 'PX1382' | 'PX1383' | 'PX1384' | 'PX1389'
}

/** Finds rules and targets of models that no request reaches, and names that are ambiguous (llm.md §15.3). */
export function findModelProblems(models: readonly ModelLists[]): ModelProblem[] {
  return [...models.flatMap((model, index) => problemsOf(model, ['models', index])), ...findAmbiguous(models)]
}

function problemsOf({ to, rules, fallback = [] }: ModelLists, path: ModelProblem['path']): ModelProblem[] {
  const lists = [
    ...(to === undefined ? [] : [[[...path, 'to'], to] as const]),
    ...(rules ?? []).map((rule, index) => [[...path, 'rules', index, 'to'], rule.to] as const),
    ...fallback.map((entry, index) => [[...path, 'fallback', index, 'to'], entry.to] as const),
  ]
  const always = (rules ?? []).findIndex(({ when }) => when === undefined || when.trim() === 'true')
  const unreached = always === -1 ? [] : (rules ?? []).slice(always + 1)
  return [
    ...unreached.map((_, index): ModelProblem => {
      const text = `no request reaches the rule, because rule ${always} matches all; move it before rule ${always}, or give that one a condition (when)`
      return { path: [...path, 'rules', always + 1 + index], text, code: 'PX1381' }
    }),
    ...lists.flatMap(([at, targets]) => problemsOfTargets(targets, at)),
    ...(rules ?? []).flatMap(({ rollout }, index): ModelProblem[] => {
      const steps = rollout?.steps ?? []
      const fall = steps.findIndex((step, number) => number > 0 && step <= (steps[number - 1] ?? 0))
      if (fall === -1) return []
      const text = `${steps[fall]} % is not more than the step before, ${steps[fall - 1]} %; give rising percentages`
      return [{ path: [...path, 'rules', index, 'rollout', 'steps', fall], text, code: 'PX1389' }]
    }),
  ]
}

function problemsOfTargets(targets: readonly Target[], path: ModelProblem['path']): ModelProblem[] {
  const seen = new Map<string, number>()
  const problems: ModelProblem[] = []
  for (const [index, { id, model = '' }] of targets.entries()) {
    const first = seen.get(`${id} ${model}`)
    if (first === undefined) seen.set(`${id} ${model}`, index)
    else
      problems.push({
        path: [...path, index],
        text: `is the same as target ${first}; remove it, and add its weight to that of target ${first}`,
        code: 'PX1382',
      })
  }
  if (targets.every(({ weight }) => weight === 0))
    problems.push({ path, text: 'no target has a weight above 0, so that requests fail with 503; set a weight', code: 'PX1383' })
  return problems
}

/** Equal names; and a pattern for a beginning and one for an end, of equal length: both match some names, and neither is longer. */
function findAmbiguous(models: readonly ModelLists[]): ModelProblem[] {
  return models.flatMap(({ name }, index): ModelProblem[] => {
    const first = models.findIndex((model) => model.name === name)
    if (first < index) return [{ path: ['models', index, 'name'], text: `is that of model ${first}, which is used; give one another name`, code: 'PX1384' }]
    if (!name.startsWith('*') || name === '*') return []
    const other = models.find((model) => model.name.endsWith('*') && model.name !== '*' && model.name.length === name.length)
    if (other === undefined) return []
    const text = `some names match both ${JSON.stringify(name)} and ${JSON.stringify(other.name)}, of which the first in the list is used; make one longer`
    return [{ path: ['models', index, 'name'], text, code: 'PX1384' }]
  })
}
