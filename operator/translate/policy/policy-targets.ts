import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { PolicyTarget } from '#gen/config/types.ts'
import type { PolicyTargetReference, PolicyTargetSelector } from '#gen/v1alpha1/types.ts'
import { INFERENCE_GROUP } from '../../source/inference.ts'
import type { Kind, KubeObject, ProxyPolicy } from '../../source/objects.ts'
import { poolService } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'
import { sectionsOf } from '../backend/proxy-backend.ts'
import { matchesLabels } from '../../model/selectors.ts'

type TargetKind = 'Gateway' | 'ListenerSet' | 'HTTPRoute' | 'GRPCRoute' | 'Service' | 'ProxyBackend' | 'InferencePool'

/** One object that a policy applies to. */
export interface ResolvedTarget {
  /** Part of the message key that distinguishes the targets of one policy. */
  readonly index: string
  /** `<kind>/<namespace>/<name>` of the object. */
  readonly node: string
  readonly target: PolicyTarget
}

export interface ResolvedTargets {
  readonly targets: readonly ResolvedTarget[]
  /** One line for each target that does not exist. */
  readonly problems: readonly string[]
}

const groups: Readonly<Record<TargetKind, string>> = {
  Gateway: GATEWAY_GROUP,
  ListenerSet: GATEWAY_GROUP,
  HTTPRoute: GATEWAY_GROUP,
  GRPCRoute: GATEWAY_GROUP,
  Service: '',
  ProxyBackend: GROUP,
  InferencePool: INFERENCE_GROUP,
}
/** Disabled kinds are treated as absent. */
const isTargetKind = ({ options }: Context, kind: string): kind is TargetKind =>
  Object.hasOwn(groups, kind) && (kind !== 'InferencePool' || options.isInferenceEnabled)

/** Gateways and ListenerSets that are ours, by `<kind>/<namespace>/<name>`. */
export type Owned = Lookup<object>

/** Looks up targetRefs and targetSelectors: same namespace only (operator.md §4.7). */
export function resolveTargets(context: Context, policy: ProxyPolicy, owned: Owned): ResolvedTargets {
  const targets: ResolvedTarget[] = []
  const problems: string[] = []
  const { namespace } = policy.metadata
  const addOne = (object: KubeObject, ref: { kind: string; sectionName?: string }, index: string): void => {
    const problem = checkTarget(object, ref.sectionName, owned)
    if (problem === undefined) targets.push(toTarget(object, ref.sectionName, index))
    else problems.push(problem)
  }
  for (const [index, ref] of (policy.spec.targetRefs ?? []).entries()) {
    const object = findTarget(context, namespace, ref)
    if (object) addOne(object, ref, String(index))
    else problems.push(`${ref.kind} ${namespace}/${ref.name} not found`)
  }
  for (const [index, selector] of (policy.spec.targetSelectors ?? []).entries()) {
    const found = selectTargets(context, namespace, selector)
    if (found.length === 0) problems.push(`no ${selector.kind} in namespace ${namespace} has the labels ${JSON.stringify(selector.matchLabels)}`)
    for (const object of found) addOne(object, selector, `${index}.${object.metadata.name}`)
  }
  return { targets, problems }
}

function findTarget(context: Context, namespace: string, { group, kind, name }: PolicyTargetReference): KubeObject | undefined {
  return isTargetKind(context, kind) && groups[kind] === group ? context.snapshot.get<Kind>(kind, namespace, name) : undefined
}

function selectTargets(context: Context, namespace: string, { group, kind, matchLabels }: PolicyTargetSelector): readonly KubeObject[] {
  if (!isTargetKind(context, kind) || groups[kind] !== group) return []
  return context.snapshot.inNamespace<Kind>(kind, namespace).filter((object) => matchesLabels(matchLabels, object.metadata.labels ?? {}))
}

/** The problem of a target that exists; undefined if there is none. */
function checkTarget(object: KubeObject, section: string | undefined, owned: Owned): string | undefined {
  const { kind } = object
  const name = `${kind} ${object.metadata.namespace}/${object.metadata.name}`
  if ((kind === 'Gateway' || kind === 'ListenerSet') && !owned.get(`${kind}/${object.metadata.namespace}/${object.metadata.name}`))
    return `${name} does not belong to this controller`
  if (section === undefined) return undefined
  const sections = sectionsOfObject(object)
  return sections.includes(section) ? undefined : `${name} has no section ${section}; it has ${sections.length > 0 ? sections.join(', ') : 'none'}`
}

function sectionsOfObject(object: KubeObject): string[] {
  switch (object.kind) {
    case 'Gateway':
    case 'ListenerSet':
      return object.spec.listeners.map((listener) => listener.name)
    case 'HTTPRoute':
    case 'GRPCRoute':
      return (object.spec.rules ?? []).flatMap((rule) => rule.name ?? [])
    case 'Service':
      return (object.spec.ports ?? []).map((port) => String(port.port))
    case 'ProxyBackend':
      return sectionsOf(object)
    default:
      return []
  }
}

function toTarget(object: KubeObject, section: string | undefined, index: string): ResolvedTarget {
  const { namespace, name } = object.metadata
  if (object.kind === 'InferencePool')
    return { index, node: `InferencePool/${namespace}/${name}`, target: { kind: 'Service', namespace, name: poolService(name) } }
  // Only kinds of `groups` get here.
  const kind = object.kind === 'ProxyBackend' ? 'Backend' : (object.kind as PolicyTarget['kind'])
  const part = section === undefined ? {} : object.kind === 'Service' ? { port: Number(section) } : { section }
  return { index, node: `${object.kind}/${namespace}/${name}`, target: { kind, namespace, name, ...part } }
}
