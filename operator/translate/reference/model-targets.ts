import { withCode } from '#api/messages/code.ts'
import { findModelProblems, servingTargets, shadowTargets, type ModelLists } from '#api/model-problems.ts'
import { GROUP } from '#api/names.ts'
import type { AIModel, AIModelBackendReference, AIModelTarget } from '#gen/v1alpha1/types.ts'
import { fault } from '../../model/conditions.ts'
import { INFERENCE_GROUP } from '../../source/inference.ts'
import { permitsBackend, resolveBackend, type ResolvedBackend } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Referrer } from '../common/reference-grant.ts'

/** Groups of the kinds that serve models. */
const groups: Readonly<Record<NonNullable<AIModelBackendReference['kind']>, string>> = { ProxyBackend: GROUP, Service: '', InferencePool: INFERENCE_GROUP }

/** Looks up a target of a model: an LLM backend, a Service or an InferencePool. */
export function resolveModelTarget(context: Context, from: Referrer, reference: Partial<AIModelBackendReference>): ResolvedBackend {
  const { kind = 'ProxyBackend', group = groups[kind], name = '' } = reference
  const resolved = resolveBackend(context, from, { ...reference, kind, group, name }, true)
  if ('fault' in resolved || resolved.target.kind !== 'ProxyBackend') return resolved
  if (modelsOf(context, resolved.target.key) !== undefined) return resolved
  return {
    fault: fault('InvalidKind', `ProxyBackend ${resolved.target.key} is no LLM backend; name one with spec.ai, a Service or an InferencePool`, 'PX1380'),
  }
}

/** The models of an LLM backend; empty if it has providers, undefined if there is no such LLM backend. */
function modelsOf({ snapshot }: Context, key: string): readonly AIModel[] | undefined {
  const [namespace = '', name = ''] = key.split('/')
  const ai = snapshot.get('ProxyBackend', namespace, name)?.spec.ai
  return ai && (ai.models ?? [])
}

const keyOf = ({ kind = 'ProxyBackend', namespace, name, port }: AIModelBackendReference, own: string): string =>
  `${kind} ${namespace ?? own.split('/')[0]}/${name}${port === undefined ? '' : `:${port}`}`

/** What is wrong with the models of a ProxyBackend, beyond references that do not resolve. `key` is that of the backend. */
export function describeModelProblems(context: Context, key: string, models: readonly AIModel[], policies: object = {}): string[] {
  if (models.length === 0) return []
  const reduce = (targets: readonly AIModelTarget[]) => targets.map(({ backendRef, model, weight }) => ({ id: keyOf(backendRef, key), model, weight }))
  const lists = models.map(({ name, to, rules, fallback }): ModelLists => ({
    name,
    to: to && reduce(to),
    rules: rules?.map((rule) => ({ ...rule, to: reduce(rule.to) })),
    fallback: fallback?.map((entry) => ({ to: reduce(entry.to) })),
  }))
  const own = findModelProblems(lists).map(({ path, text, code }) => withCode(`ai.${path.join('.')}: ${text}`, code))
  const unused = Object.keys(policies).filter((field) => field !== 'ai')
  const ofPolicies =
    unused.length === 0 ? [] : [withCode(`policies.${unused.join(', policies.')}: has no effect on models; set it on the backends of their targets`, 'PX1387')]
  return [...own, ...ofPolicies, ...findBrokenPaths(context, key, models)]
}

interface Place {
  readonly key: string
  readonly model: AIModel
}

/** Targets that lead back to their own model, or to a model that the other backend does not have. */
function findBrokenPaths(context: Context, key: string, models: readonly AIModel[]): string[] {
  return models.flatMap((model) => {
    const place = { key, model }
    const copied = new Set<AIModelTarget>(shadowTargets(model))
    return [...servingTargets(model), ...copied].flatMap((target) => {
      const next = nextOf(context, place, target)
      if (next === undefined) return []
      const shown = `ai.models: target ${keyOf(target.backendRef, key)} of model ${model.name}`
      if (next === 'missing') return [withCode(`${shown} has no model ${JSON.stringify(target.model ?? model.name)}; correct model of the target`, 'PX1386')]
      // Only the own target is named: its backend may lead on to namespaces that are not to be seen from here.
      // Copies are not copied again: a model may be compared with itself.
      if (copied.has(target)) return []
      return leadsTo(context, next, model, new Set()) ? [withCode(`${shown} leads back to it; remove one of the targets in the circle`, 'PX1385')] : []
    })
  })
}

/** Whether a place is a model or leads to it. Each model is visited once. */
function leadsTo(context: Context, from: Place, wanted: AIModel, seen: Set<AIModel>): boolean {
  if (from.model === wanted) return true
  if (seen.has(from.model)) return false
  seen.add(from.model)
  return servingTargets(from.model).some((target) => {
    const next = nextOf(context, from, target)
    return next !== undefined && next !== 'missing' && leadsTo(context, next, wanted, seen)
  })
}

/** The model of another backend that a target leads to; undefined: it leads to a provider, is not permitted, or depends on the request. */
function nextOf(context: Context, { key, model }: Place, target: AIModelTarget): Place | 'missing' | undefined {
  const own = key.split('/')[0] ?? ''
  const { kind = 'ProxyBackend', namespace = own, name } = target.backendRef
  const other = `${namespace}/${name}`
  if (kind !== 'ProxyBackend' || !permitsBackend(context, { group: GROUP, kind, namespace: own }, { group: GROUP, kind, name }, namespace)) return undefined
  const models = modelsOf(context, other) ?? []
  const wanted = target.model ?? model.name
  if (models.length === 0 || wanted.includes('*')) return undefined
  const found = models.filter((each) => matches(each.name, wanted)).toSorted((a, b) => rank(b, wanted) - rank(a, wanted))[0]
  return found === undefined ? 'missing' : { key: other, model: found }
}

/** An exact name wins, then the longest pattern. */
const rank = ({ name }: AIModel, wanted: string): number => (name === wanted ? Infinity : name.length)

function matches(pattern: string, name: string): boolean {
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1))
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}
