import type { AIModel, AIModelShadow, AIModelTarget, Backend } from '#gen/config/types.ts'

/** The models of an LLM backend, for people: a line for each rule and fallback, in the order in which they are used. */
export function describeModels({ ai }: Backend): string[] {
  return (ai?.models ?? []).flatMap(describeModel)
}

function describeModel({ name, visibility, to, rules = [], by = 'Weight', sticky, fallback = [], shadow }: AIModel): string[] {
  const choice = sticky === undefined ? `by ${by}` : `sticky by ${sticky}`
  const describe = (targets: readonly AIModelTarget[]): string =>
    targets.length === 1 ? targets.map(nameOf).join('') : `${targets.map((target) => `${nameOf(target)} (weight ${target.weight ?? 1})`).join(', ')}, ${choice}`
  const shown = visibility === 'Internal' ? `${name} (internal)` : name
  return [
    ...(to === undefined ? rules : [{ to, when: undefined }]).map(
      (rule) => `${shown}${rule.when === undefined ? '' : ` when ${rule.when}`} -> ${describe(rule.to)}`,
    ),
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
