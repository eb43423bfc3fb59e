import { rolloutsOf, stateOf, weightsOf } from '#api/rollout/rollout.ts'
import type { AIModel, AIModelRolloutState, AIModelShadow, AIModelTarget, Backend } from '#gen/config/types.ts'

/** The models of an LLM backend, for people: a line for each rule and fallback, in the order in which they are used. */
export function describeModels(backend: Backend): string[] {
  return showRollouts(backend).flatMap(describeModel)
}

/** A rule, with the state of its rollout and the weights of its step. */
type ShownRule = NonNullable<AIModel['rules']>[number] & { readonly state?: Pick<AIModelRolloutState, 'phase' | 'message'> }

/** The models of a backend, with the weights that are in force. */
export function showRollouts(backend: Backend): (Omit<AIModel, 'rules'> & { readonly rules: readonly ShownRule[] })[] {
  const rollouts = rolloutsOf(backend)
  return (backend.ai?.models ?? []).map((model) => {
    if (model.rules === undefined) return { ...model, rules: [] }
    const rules = model.rules.map((rule, index): ShownRule => {
      const found = rollouts.find((each) => each.model === model.name && each.rule === index)
      if (found === undefined) return rule
      const first = found.rollout.steps[0] ?? 0
      const state = stateOf(backend.rollouts, found) ?? {
        phase: 'Progressing' as const,
        weight: first,
        message: `step 1 of ${found.rollout.steps.length}, ${first} %`,
      }
      const weights = weightsOf(rule.to, state.weight)
      return { ...rule, to: rule.to.map((target, number) => ({ ...target, weight: Number((weights[number] ?? 0).toPrecision(3)) })), state }
    })
    return { ...model, rules }
  })
}

function describeModel({ name, visibility, to, rules, by = 'Weight', sticky, fallback = [], shadow }: ReturnType<typeof showRollouts>[number]): string[] {
  const choice = sticky === undefined ? `by ${by}` : `sticky by ${sticky}`
  const describe = (targets: readonly AIModelTarget[]): string =>
    targets.length === 1 ? targets.map(nameOf).join('') : `${targets.map((target) => `${nameOf(target)} (weight ${target.weight ?? 1})`).join(', ')}, ${choice}`
  const shown = visibility === 'Internal' ? `${name} (internal)` : name
  return [
    ...(to === undefined ? rules : [{ to } satisfies ShownRule]).flatMap((rule: ShownRule) => [
      `${shown}${rule.when === undefined ? '' : ` when ${rule.when}`} -> ${describe(rule.to)}`,
      ...(rule.state === undefined ? [] : [`${shown} rollout ${rule.state.phase}: ${rule.state.message}`]),
    ]),
    ...fallback.map((entry) => `${shown} after ${entry.on.join(', ')} -> ${describe(entry.to)}`),
    ...(shadow === undefined ? [] : [describeShadow(shown, shadow)]),
  ]
}

function describeShadow(shown: string, { to, percent, budget, window = 'Month', judge }: AIModelShadow): string {
  const judged = judge === undefined ? '' : `, judged by ${nameOf(judge.to)}`
  return `${shown} copies ${percent} % of chats -> ${nameOf(to)}, for at most ${budget} USD per ${window}${judged}`
}

function nameOf({ backendRef: { backend, service, port, address }, model }: AIModelTarget): string {
  const place = backend ?? address ?? (service === undefined ? 'a backend that does not exist' : `${service}:${port ?? 0}`)
  return model === undefined ? place : `${place} ${model}`
}
