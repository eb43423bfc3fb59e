import { isDeepStrictEqual } from 'node:util'
import { withCode } from '#api/messages/code.ts'
import { isImagePermitted } from '#api/image.ts'
import { CONTROLLER_NAME, GATEWAY_GROUP, GROUP, MAX_ANCESTORS, STATUS_SUMMARY } from '#api/names.ts'
import type { Policy, Traffic } from '#gen/config/types.ts'
import type { ProxyPolicy } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { resolveTargets, type Owned, type ResolvedTarget } from './policy-targets.ts'
import { resolveBody, type ResolvedBody } from '../reference/references.ts'
import type { Condition, ObjectStatus } from '../../model/translation.ts'

type Section = 'frontend' | 'traffic' | 'backend'
const definitionOf: Readonly<Record<Section, string>> = { frontend: 'Frontend', traffic: 'Traffic', backend: 'BackendFull' }

/** A ProxyPolicy in the config's form, and where it takes effect. The sets are filled in while Gateways are walked. */
export interface PolicyState {
  readonly policy: ProxyPolicy
  readonly key: string
  readonly sections: readonly { readonly section: Section; readonly resolved: ResolvedBody }[]
  readonly errors: readonly string[]
  readonly targets: readonly ResolvedTarget[]
  readonly missing: readonly string[]
  /** Gateways that it takes effect on, with the targets that each reaches. */
  readonly gateways: Map<GatewayState, Set<ResolvedTarget>>
  /** How it fares on each target. */
  readonly standings: Map<ResolvedTarget, Standing>
}

/** How a policy fares against older ones on one target. */
interface Standing {
  /** Fields that they set too. */
  readonly losses: string[]
  /** Some field is in force. */
  isUsed: boolean
}

/** Fields that protect nothing. A policy that consists of nothing but broken expressions in them has no effect and is not attached. */
const unprotective = new Set(['transformation', 'accessLog', 'tracing', 'health'])

export function readPolicy(context: Context, policy: ProxyPolicy, owned: Owned): PolicyState {
  const { targets, problems } = resolveTargets(context, policy, owned)
  const errors: string[] = []
  const sections = (['frontend', 'traffic', 'backend'] as const).flatMap((section) => {
    const body = policy.spec[section]
    if (!body) return []
    const resolved = resolveBody(context, 'ProxyPolicy', policy.metadata, definitionOf[section], body)
    errors.push(...resolved.errors.map(({ path, message }) => `${section}.${path.join('.')}: ${message}`))
    return Object.keys(resolved.body).some((field) => field !== 'phase') ? [{ section, resolved }] : []
  })
  return {
    policy,
    key: keyOf(policy),
    sections: sections.some(({ resolved }) => hasEffect(resolved)) ? sections : [],
    errors,
    targets,
    missing: problems,
    gateways: new Map(),
    standings: new Map(),
  }
}

/** Whether two readings of one object have the same result: something changed that the policy only looked through, such as one of many labels. */
export function isSamePolicy(a: PolicyState, b: PolicyState): boolean {
  const resultOf = ({ sections, errors, targets, missing }: PolicyState): unknown[] => [sections, errors, targets, missing]
  return a.policy === b.policy && isDeepStrictEqual(resultOf(a), resultOf(b))
}

/** Whether a section has more than broken expressions in fields that protect nothing (operator.md §10 case 56). */
function hasEffect({ body, errors }: ResolvedBody): boolean {
  const broken = errors.filter(({ kind }) => kind === 'expression').map(({ path }) => path)
  return Object.entries(body).some(([field, value]) => field !== 'phase' && !(unprotective.has(field) && isBroken(value, [field], broken)))
}

/** Whether all of a value are broken expressions, and the names that they are for. */
function isBroken(value: unknown, path: readonly string[], broken: readonly (readonly string[])[]): boolean {
  if (broken.some((other) => other.join('.') === path.join('.'))) return true
  if (typeof value !== 'object' || value === null) return false
  const members = Object.entries(value).filter(([key]) => Array.isArray(value) || key !== 'name')
  return members.length > 0 && members.every(([key, member]) => isBroken(member, [...path, key], broken))
}

/** Messages of a policy for one target on one Gateway, one for each section. */
export function policyMessages({ policy, key, sections }: PolicyState, { index, target }: ResolvedTarget, gateway: GatewayState): Policy[] {
  const { namespace, name, creationTimestamp } = policy.metadata
  return sections.map(({ section, resolved }) => ({
    key: `${section}/${key}:${index}`,
    policy: { kind: 'ProxyPolicy' as const, namespace, name },
    creationTimestamp,
    target,
    [section]: withoutDeniedImages(resolved, gateway),
  }))
}

/** A section without the sources of images that a Gateway does not permit. */
function withoutDeniedImages({ body, images }: ResolvedBody, { pluginImages }: GatewayState): object {
  const denied = new Map(images.filter(({ image }) => !isImagePermitted(image, pluginImages)).map(({ image, path }) => [path[1], image]))
  if (denied.size === 0) return body
  const { plugins = [] }: Traffic = body
  return {
    ...body,
    plugins: plugins.map((plugin, index) => {
      const image = denied.get(String(index))
      const { owner = '' } = plugin.source.configMapRef ?? {}
      return image === undefined ? plugin : { ...plugin, source: { configMapRef: { invalid: `the image ${image} is not permitted`, denied: true, owner } } }
    }),
  }
}

const isGatewayEntry = (gateway: GatewayState): object => ({
  group: GATEWAY_GROUP,
  kind: 'Gateway',
  namespace: gateway.gateway.metadata.namespace,
  name: gateway.gateway.metadata.name,
})

function acceptedCondition({ errors: own, sections, policy }: PolicyState, denied: readonly string[] = []): Condition {
  const { generation } = policy.metadata
  const errors = [...own, ...denied]
  const problems = errors.join('; ')
  if (sections.length === 0) return condition('Accepted', false, 'Invalid', problems, generation)
  if (errors.length > 0) return condition('Accepted', true, 'PartiallyValid', problems, generation)
  return condition('Accepted', true, 'Valid', 'Policy accepted', generation)
}

/** Plugins that a Gateway does not permit; its data planes do not run them. */
function findDeniedPlugins(state: PolicyState, gateway: GatewayState): string[] {
  return [...findDeniedInProcess(state, gateway), ...findImageProblems(state, gateway)]
}

/** Images that a Gateway does not permit, and problems of those that it permits. */
function findImageProblems({ sections }: PolicyState, { key, pluginImages }: GatewayState): string[] {
  return sections.flatMap(({ section, resolved }) =>
    resolved.images.flatMap(({ image, path, problem }) => {
      const field = `${section}.${path.join('.')}.image`
      if (isImagePermitted(image, pluginImages)) return problem === undefined ? [] : withCode(`${field}: ${problem.text}`, problem.code)
      const [name = ''] = image.split('@')
      const fix = `add ${name}, or the beginning of it, to spec.plugins.images in the ProxyParameters of the Gateway or of its class`
      return withCode(`${field}: the plugin fails, because Gateway ${key} does not permit the image ${image}; ${fix}`, 'PX1343')
    }),
  )
}

function findDeniedInProcess({ sections }: PolicyState, { key, permitsInProcess }: GatewayState): string[] {
  if (permitsInProcess) return []
  return sections.flatMap(({ section, resolved }) => {
    const { plugins = [] }: Traffic = section === 'traffic' ? resolved.body : {}
    return plugins.flatMap(({ name, isolation }, index) => {
      if (isolation !== 'InProcess') return []
      const fix = 'set spec.plugins.inProcess: true in the ProxyParameters of the Gateway or of its class, or use isolation: Worker'
      return withCode(`traffic.plugins.${index}.isolation: plugin ${name} fails, because Gateway ${key} does not permit InProcess; ${fix}`, 'PX1341')
    })
  })
}

/** Digests of the sources that data planes receive. Empty if there is none. */
function pluginSources({ sections }: PolicyState): { readonly plugins?: readonly { readonly name: string; readonly digest: string }[] } {
  const plugins = sections.flatMap(({ section, resolved }) => {
    const { plugins: list = [] }: Traffic = section === 'traffic' ? resolved.body : {}
    return list.flatMap(({ name, source }) => (source.configMapRef?.digest === undefined ? [] : [{ name, digest: `sha256:${source.configMapRef.digest}` }]))
  })
  return plugins.length > 0 ? { plugins } : {}
}

/** How it fares on the targets that one Gateway reaches. */
function attachedCondition({ sections, policy, missing, standings }: PolicyState, targets: ReadonlySet<ResolvedTarget>): Condition {
  const { generation } = policy.metadata
  if (sections.length === 0) return condition('Attached', false, 'Pending', 'Policy is not attached due to invalid status', generation)
  const reached = [...targets].flatMap((target) => standings.get(target) ?? [])
  const losses = [...new Set(reached.flatMap((standing) => standing.losses))].toSorted().join('; ')
  if (losses === '') {
    const text = missing.length > 0 ? `Attached to some targets; see ${STATUS_SUMMARY}` : 'Attached to all targets'
    return condition('Attached', true, 'Attached', text, generation)
  }
  return reached.some(({ isUsed }) => isUsed)
    ? condition('Attached', true, 'Merged', withCode(`An older policy of the same target wins: ${losses}`, 'PX1316'), generation)
    : condition('Attached', false, 'Overridden', withCode(`Older policies of the same target set every field: ${losses}`, 'PX1316'), generation)
}

/** `status.ancestors`: one entry for each Gateway, and one that summarizes targets that are not attached (operator.md §4.8). */
export function policyStatus(state: PolicyState): ObjectStatus {
  const { generation, namespace, name } = state.policy.metadata
  const accepted = acceptedCondition(state)
  const reached = new Set([...state.gateways.values()].flatMap((targets) => [...targets].map(({ node }) => node)))
  const problems = [
    ...state.missing,
    ...state.targets.filter(({ node }) => !reached.has(node)).map(({ node }) => `${node.replace('/', ' ')} is not attached to any Gateway`),
  ].map((problem) => `Policy is not attached: ${problem}`)
  const summary = problems.length > 0 ? [condition('Attached', false, 'Pending', withCode([...new Set(problems)].join('\n'), 'PX1315'), generation)] : []
  const previous: { ancestors?: readonly { controllerName?: string }[] } | undefined = state.policy.status
  const foreign = previous?.ancestors?.filter((entry) => entry.controllerName !== CONTROLLER_NAME).length ?? 0
  const entries = [...state.gateways]
    .toSorted(([a], [b]) => (a.key < b.key ? -1 : 1))
    .map(([gateway, targets]) => ({
      ancestorRef: isGatewayEntry(gateway),
      controllerName: CONTROLLER_NAME,
      conditions: [acceptedCondition(state, findDeniedPlugins(state, gateway)), attachedCondition(state, targets)],
    }))
  return {
    group: GROUP,
    kind: 'ProxyPolicy',
    namespace,
    name,
    status: { ancestors: capAncestors(entries, summary, accepted, MAX_ANCESTORS - foreign, generation), ...pluginSources(state) },
  }
}

/** Keeps the list within the API's bound; further entries are counted in the summary. */
export function capAncestors(entries: readonly object[], problems: readonly Condition[], accepted: Condition, room: number, generation: number): object[] {
  const ancestorRef = { group: GROUP, name: STATUS_SUMMARY }
  const isFull = entries.length + (problems.length > 0 ? 1 : 0) > room
  const kept = isFull ? entries.slice(0, Math.max(room - 1, 0)) : entries
  const ignored = entries.length - kept.length
  const conditions = [
    ...(problems.length > 0 ? [accepted, ...problems] : []),
    ...(ignored > 0 ? [condition('StatusSummarized', true, 'StatusSummary', `${ignored} AncestorRefs ignored due to max status size`, generation)] : []),
  ]
  return conditions.length > 0 && room > 0 ? [...kept, { ancestorRef, controllerName: CONTROLLER_NAME, conditions }] : [...kept]
}
