import { withCode } from '#api/messages/code.ts'
import { servingTargets, shadowTargets } from '#api/model-problems.ts'
import type { Backend, BackendFull, Policy, PolicyTarget, Route, RouteType, Secret, Traffic } from '#gen/config/types.ts'

/** Types whose requests evade some or all checks (llm.md §3). */
const unguardedTypes: ReadonlySet<RouteType> = new Set(['Passthrough', 'Detect', 'Realtime'])

/** For each LLM backend of a Gateway, by key, the paths that no check covers although one is in force, and these checks. */
export type UnguardedPaths = ReadonlyMap<string, { readonly paths: readonly string[]; readonly checks: readonly string[] }>

/** A message of the config, by its kind. */
export interface Message {
  readonly kind: string
  readonly message: object
}

/** The messages of one Gateway that matter for LLM backends. */
export interface Messages {
  readonly backends: readonly Backend[]
  readonly routes: readonly Route[]
  readonly policies: readonly Policy[]
  readonly secrets: ReadonlyMap<string, Secret>
}

/** Finds the paths of LLM backends that evade prompt guards, `models` of API keys or token limits, in the messages of one Gateway. */
export function findUnguardedPaths(list: readonly Message[]): UnguardedPaths {
  if (!list.some(({ kind, message }) => kind === 'backend' && (message as Backend).ai !== undefined)) return new Map()
  const messages = sortOut(list)
  const byKey = new Map(messages.backends.map((backend) => [backend.key, backend]))
  const found = messages.backends.map((backend) => [backend.key, inspect(backend, messages, byKey)] as const)
  return new Map(found.filter(([, { paths, checks }]) => paths.length > 0 && checks.length > 0))
}

/** For each LLM backend, by key, a line for its status about the unguarded paths of all Gateways. */
export function describeUnguardedPaths(gateways: Iterable<UnguardedPaths>): ReadonlyMap<string, string> {
  const found = new Map<string, { paths: Set<string>; checks: Set<string> }>()
  for (const unguarded of gateways) {
    for (const [key, { paths, checks }] of unguarded) {
      const known = found.get(key) ?? { paths: new Set(), checks: new Set() }
      found.set(key, known)
      for (const path of paths) known.paths.add(path)
      for (const check of checks) known.checks.add(check)
    }
  }
  return new Map([...found].map(([key, { paths, checks }]) => [key, describe([...paths], [...checks])]))
}

function describe(paths: readonly string[], checks: readonly string[]): string {
  return withCode(
    `ai.routes: requests for ${paths.toSorted().join(', ')} are not covered by ${checks.toSorted().join(' and ')}; ai.unguardedRoutes: Reject rejects them`,
    'PX1318',
  )
}

export function sortOut(list: readonly Message[]): Messages {
  const all = <T>(wanted: string): T[] => list.filter(({ kind }) => kind === wanted).map(({ message }) => message as T)
  return {
    backends: all<Backend>('backend').filter(({ ai }) => ai !== undefined),
    routes: all('route'),
    policies: all('policy'),
    secrets: new Map(all<Secret>('secret').map((secret) => [secret.key, secret])),
  }
}

/** The paths of a backend that evade checks, and the checks in force for it. */
function inspect(backend: Backend, { routes, policies, secrets }: Messages, byKey: ReadonlyMap<string, Backend>): { paths: string[]; checks: string[] } {
  const reaching = routes.filter((route) => route.backends?.some(({ ref }) => ref.backend === backend.key))
  const isOuter = ({ target }: Policy): boolean => isAbove(target, reaching)
  const isOwn = ({ target }: Policy): boolean => target.kind === 'Backend' && `${target.namespace}/${target.name}` === backend.key
  // Weakest first, as they are merged; listeners and sections count for the whole object.
  const outer = policies.filter(isOuter)
  const sections = [...outer, ...policies.filter(isOwn)].map((policy) => policy.backend)
  const levels: (BackendFull | undefined)[] = [...sections, ...levelsOf(backend)]
  const settings = levels.flatMap((level) => level?.ai ?? [])
  if (settings.findLast((ai) => ai.unguardedRoutes !== undefined)?.unguardedRoutes === 'Reject') return { paths: [], checks: [] }
  const table = settings.findLast((ai) => ai.routes !== undefined)?.routes ?? {}
  const traffic = outer.flatMap((policy) => policy.traffic ?? [])
  const guarded = [...settings, ...targetsOf(backend, byKey).flatMap((target) => levelsOf(target).flatMap((level) => level?.ai ?? []))]
  return {
    paths: Object.entries(table).flatMap(([path, type]) => (unguardedTypes.has(type) ? [`${JSON.stringify(path)} (${type})`] : [])),
    checks: [
      ...(guarded.some((ai) => ai.promptGuard !== undefined) ? ['prompt guards'] : []),
      ...(traffic.some(limitsTokens) ? ['token limits'] : []),
      ...(traffic.some((section) => hasKeyRules(section, secrets)) ? ['models and budgets of API keys'] : []),
    ],
  }
}

/** The policies in a backend. */
const levelsOf = ({ policies, ai }: Backend): (BackendFull | undefined)[] => [
  policies,
  ...(ai?.groups ?? []).flatMap((group) => group.providers.map((provider) => provider.policies)),
]

/** The backends that the models of a backend lead to; each is visited once. Their routes are not used, but their guards are (llm.md §15.3). */
function targetsOf(backend: Backend, byKey: ReadonlyMap<string, Backend>, found = new Set<Backend>()): Backend[] {
  for (const model of backend.ai?.models ?? [])
    for (const { backendRef } of [...servingTargets(model), ...shadowTargets(model)]) {
      const target = byKey.get(backendRef.backend ?? '')
      if (target === undefined || found.has(target)) continue
      found.add(target)
      targetsOf(target, byKey, found)
    }
  return [...found]
}

/** Whether a policy on this target holds for one of the routes. A Gateway's config holds only policies that reach it. */
export function isAbove({ kind, namespace, name }: PolicyTarget, routes: readonly Route[]): boolean {
  if (routes.length === 0) return false
  if (kind === 'Gateway' || kind === 'ListenerSet') return true
  return routes.some(({ route }) => route.kind === kind && route.namespace === namespace && route.name === name)
}

function limitsTokens({ rateLimit }: Traffic): boolean {
  return rateLimit?.local?.some(({ tokens }) => tokens !== undefined) === true || rateLimit?.global?.descriptors.some(({ unit }) => unit === 'Tokens') === true
}

/** Whether a Secret of API keys has an entry whose metadata restricts models or tokens. */
function hasKeyRules({ apiKeyAuthentication }: Traffic, secrets: ReadonlyMap<string, Secret>): boolean {
  const names = [apiKeyAuthentication?.secretRef?.secret, ...(apiKeyAuthentication?.secretSelector?.secrets ?? [])]
  return names.some((name) => Object.values(secrets.get(name ?? '')?.data ?? {}).some((entry) => /"(?:models|tokenBudget)"\s*:/.test(entry)))
}
