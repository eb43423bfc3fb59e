import type { ShadowIndex } from '#api/routing/shadows.ts'
import type { Backend, BackendFull, BackendRef, Listener, Policy, Route, Traffic } from '#gen/config/types.ts'
import { levelsOf, servicesWithTraffic, splitSections, targetKey, unitedSections, type PolicyIndex } from './merge.ts'
import { withRealNames } from './real-names.ts'
import { describeModels } from './models.ts'
import { describeShadows } from './shadows.ts'
import type { ConfigSnapshot } from './store.ts'

/** A policy, or the route itself, that sets a field. */
interface Source {
  /** `ProxyPolicy <namespace>/<name>`, or the route itself. */
  readonly from: string
  /** Its target: `<kind> <namespace>/<name>`, followed by the section if it names one. */
  readonly target: string
}

interface ExplainedField {
  /** The value in force, with the real names of vendors. */
  readonly value: unknown
  /** The source of the value; all sources for fields that accumulate (authorization, budgets), weakest first. */
  readonly sources: readonly Source[]
  /** Sources that were overridden, strongest first. */
  readonly overrides: readonly Source[]
}

/** By field: `timeouts`, `rateLimit.local`. Sorted by name. */
export type ExplainedTraffic = Readonly<Record<string, ExplainedField>>

export interface ExplainedRule {
  /** `<kind> <namespace>/<name>`. */
  readonly route: string
  /** Name of the rule, if it has one. */
  readonly rule: string | undefined
  readonly ruleIndex: number
  /** Key of the listener. */
  readonly listener: string
  /** Key of the Service whose traffic policies are included; absent for all other backends of the rule. */
  readonly service?: string
  /** Its matches that get no requests of some hosts, and what gets them; absent if there are none. */
  readonly shadows?: readonly string[]
  /** Models of its LLM backends with their targets, a line for each rule; absent if there are none. */
  readonly models?: readonly string[]
  readonly preRouting: ExplainedTraffic
  readonly postRouting: ExplainedTraffic
  /** Fields of the section `backend`, by the name of the backend; those without fields are left out. */
  readonly backends: Readonly<Record<string, ExplainedTraffic>>
}

type Phase = NonNullable<Traffic['phase']>

/** Explains the result of `effectiveTraffic`: the same walk, but records the source of each field and what it overrode. */
export function explainTraffic(index: PolicyIndex, phase: Phase, listener: Listener, route?: Route, service?: string): ExplainedTraffic {
  const fields = new Map<string, ExplainedField>()
  for (const key of levelsOf(listener, route?.route, service)) {
    // Policies of a level are sorted oldest first, and the oldest wins: apply it last.
    for (const policy of (index.get(key) ?? []).toReversed()) {
      const { traffic } = withRealNames('policy', policy)
      if (traffic === undefined || (traffic.phase ?? 'PostRouting') !== phase) continue
      for (const [field, value] of fieldsOf(traffic)) setField(fields, field, value, sourceOf(policy))
    }
  }
  if (route !== undefined && phase === 'PostRouting')
    for (const [field, value] of ruleFields(route)) setField(fields, field, value, { from: nameOf(route), target: 'the rule itself' })
  return Object.fromEntries([...fields].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Parts of the section `backend` whose fields merge separately. */
const splitBackend: readonly string[] = ['ai', 'mcp']

/** Explains the section `backend` for one backend of a rule: policies from the Gateway to the rule, those of the backend, and what is written on it. */
function explainBackend(index: PolicyIndex, listener: Listener, route: Route, ref: BackendRef, backend: Backend | undefined): ExplainedTraffic {
  const fields = new Map<string, ExplainedField>()
  const [namespace = '', name = ''] = (ref.service ?? ref.backend ?? '').split('/')
  const kind = ref.service === undefined ? 'Backend' : 'Service'
  const own = [
    targetKey(kind, namespace, name),
    ...(ref.service === undefined || ref.port === undefined ? [] : [targetKey(kind, namespace, name, String(ref.port))]),
  ]
  for (const key of [...levelsOf(listener, route.route), ...(name === '' ? [] : own)])
    for (const policy of (index.get(key) ?? []).toReversed())
      for (const [field, value] of backendFields(withRealNames('policy', policy).backend)) setField(fields, field, value, sourceOf(policy))
  for (const [field, value] of backendFields(backend && withRealNames('backend', backend).policies))
    setField(fields, field, value, { from: `ProxyBackend ${backend?.key ?? ''}`, target: 'the backend itself' })
  return Object.fromEntries([...fields].sort(([a], [b]) => (a < b ? -1 : 1)))
}

function backendFields(section: BackendFull = {}): [field: string, value: unknown][] {
  return Object.entries(section).flatMap(([field, value]: [string, unknown]): [string, unknown][] =>
    splitBackend.includes(field) ? Object.entries(value as object).map(([part, inner]) => [`backend.${field}.${part}`, inner]) : [[`backend.${field}`, value]],
  )
}

/**
 * Explains every rule of the HTTP and gRPC routes of a name, on every listener that accepts it, and once more for each backend with traffic
 * policies. Empty: no such route.
 */
export function explainRoute(
  { routes, listeners, backends }: Pick<ConfigSnapshot, 'routes' | 'listeners' | 'backends'>,
  index: PolicyIndex,
  shadowIndex: ShadowIndex,
  namespace: string,
  name: string,
): ExplainedRule[] {
  const explained: ExplainedRule[] = []
  for (const route of routes.values()) {
    if (route.route.namespace !== namespace || route.route.name !== name) continue
    const models = (route.backends ?? []).flatMap(({ ref }) => {
      const backend = ref.backend === undefined ? undefined : backends.get(ref.backend)
      return backend === undefined ? [] : describeModels(backend)
    })
    for (const key of route.listeners) {
      const listener = listeners.get(key)
      if (listener === undefined) continue
      const services = servicesWithTraffic(index, route)
      const shadows = describeShadows(shadowIndex, route, [key])
      const hasOthers = route.backends?.some(({ ref }) => ref.service === undefined || !services.includes(ref.service)) ?? false
      for (const service of hasOthers || services.length === 0 ? [undefined, ...services] : services)
        explained.push({
          route: nameOf(route),
          rule: route.route.rule,
          ruleIndex: route.route.ruleIndex,
          listener: key,
          ...(service === undefined ? {} : { service }),
          ...(shadows.length === 0 ? {} : { shadows }),
          ...(models.length === 0 ? {} : { models }),
          preRouting: explainTraffic(index, 'PreRouting', listener),
          postRouting: explainTraffic(index, 'PostRouting', listener, route, service),
          backends: explainBackends(index, listener, route, service, backends),
        })
    }
  }
  return explained
}

function explainBackends(
  index: PolicyIndex,
  listener: Listener,
  route: Route,
  service: string | undefined,
  backends: ConfigSnapshot['backends'],
): ExplainedRule['backends'] {
  const refs = (route.backends ?? []).map(({ ref }) => ref).filter((ref) => service === undefined || ref.service === service)
  const explained = refs.map((ref) => {
    const name = ref.service === undefined ? (ref.backend ?? ref.address ?? 'invalid') : `${ref.service}:${ref.port ?? 0}`
    return [name, explainBackend(index, listener, route, ref, ref.backend === undefined ? undefined : backends.get(ref.backend))] as const
  })
  return Object.fromEntries(explained.filter(([, fields]) => Object.keys(fields).length > 0))
}

/** Sets a field from a source that is stronger than all before. */
function setField(fields: Map<string, ExplainedField>, field: string, value: unknown, source: Source): void {
  const { sources = [], overrides = [], value: before } = fields.get(field) ?? {}
  if (unitedSections.includes(field)) fields.set(field, { value: [...((before ?? []) as unknown[]), value], sources: [...sources, source], overrides })
  else fields.set(field, { value, sources: [source], overrides: [...sources, ...overrides] })
}

/** Splits a section into the fields that merge separately. */
function fieldsOf(traffic: Traffic): [field: string, value: unknown][] {
  return Object.entries(traffic).flatMap(([section, value]: [string, unknown]): [string, unknown][] => {
    if (section === 'phase') return []
    if (!(section in splitSections)) return [[section, value]]
    return Object.entries(value as object).map(([part, inner]) => [`${section}.${part}`, inner])
  })
}

/** Fields that the rule itself sets; they override policies (traffic.md §4.2). */
function ruleFields({ filters, timeouts, retry }: Route): [field: string, value: unknown][] {
  const own = {
    cors: filters?.cors,
    'headerModifiers.request': filters?.requestHeaders,
    'headerModifiers.response': filters?.responseHeaders,
    timeouts,
    retry,
  }
  return Object.entries(own).filter(([, value]) => value !== undefined)
}

function sourceOf({ policy, target }: Policy): Source {
  const section = target.section === undefined ? '' : ` ${target.section}`
  return { from: `${policy.kind} ${policy.namespace}/${policy.name}`, target: `${target.kind} ${target.namespace}/${target.name}${section}` }
}

function nameOf({ route }: Route): string {
  return `${route.kind} ${route.namespace}/${route.name}`
}
