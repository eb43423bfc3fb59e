import { harmlessSettings } from './litellm-settings.ts'
import { importProvider } from './litellm-providers.ts'
import { compact, importSeconds, toDuration, type ImportSource } from './source.ts'

const MAX_MODELS = 64
const MAX_BUDGETS = 16
const MAX_TARGETS = 16
const MAX_FALLBACKS = 8
const MAX_WEIGHT = 1_000_000
/** The highest limit of a budget of requests. */
const MAX_LIMIT = 1_000_000_000
/** Seconds for which LiteLLM keeps a deployment out of use unless `cooldown_time` is set. */
const COOLDOWN_SECONDS = 5
/** Failures in a row that evict, unless `allowed_fails` is set: LiteLLM counts more than half of at least five. */
const FAILURES = 3

/** Fields of the request body that LiteLLM fills in. */
const defaultFields = [
  'temperature',
  'max_tokens',
  'max_completion_tokens',
  'reasoning_effort',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'stop',
] as const

/** What `fallbacks` are for: all failures but those that have a list of their own, and those that another model would have too. */
const failures = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable', 'Auth', 'ModelNotFound', 'Budget'] as const

/** Lists of fallbacks, with the causes that each is for, in the order in which they are used. */
const fallbackFields = {
  context_window_fallbacks: ['ContextLength'],
  content_policy_fallbacks: ['ContentFilter'],
  fallbacks: failures,
} as const satisfies Readonly<Record<string, readonly string[]>>

/** Our name of a strategy of the router; of others by weight, which is the default here and there. */
const strategies: Readonly<Record<string, string | undefined>> = {
  'simple-shuffle': undefined,
  'least-busy': 'LeastBusy',
  'latency-based-routing': 'LeastLatency',
  'cost-based-routing': 'LeastCost',
}

type Target = Readonly<{ model: string; weight?: number }>

/** A provider with the key and the limits of one entry of `model_list`. */
interface Deployment {
  readonly params: ImportSource
  readonly model: Record<string, unknown>
  readonly limits: readonly object[]
}

/** The settings of the router, in both sections that have them. */
export interface RouterSections {
  readonly router: ImportSource | undefined
  readonly settings: ImportSource | undefined
}

/** A name of a model that is no pattern. */
const NAME = /^[^*\s]{1,256}$/

/** Models of the short form, and the budgets of their limits. */
export interface ImportedModels {
  readonly models: Readonly<Record<string, unknown>>
  readonly budgets: readonly object[]
}

/** Imports `model_list` and the router's settings. A model of one deployment is a provider; several, or one with fallbacks, are targets. */
export function importModels(entries: readonly ImportSource[], sections: RouterSections): ImportedModels {
  const { router, settings } = sections
  const groups = new Map<string, Deployment[]>()
  const isRouted = ['model_group_alias', 'default_fallbacks', ...Object.keys(fallbackFields)].some(
    (name) => router?.has(name) === true || settings?.has(name) === true,
  )
  for (const entry of entries) importDeployment(entry, groups, isRouted)
  const aliases = importAliases(router, groups, MAX_MODELS - sizeOf(groups, isRouted))
  return new ModelWriter(groups, aliases, importFallbacks(sections, groups, aliases), sections).write()
}

/** The most models of the result: a model with targets has deployments besides. */
const sizeOf = (groups: ReadonlyMap<string, readonly unknown[]>, isRouted: boolean): number =>
  groups.values().reduce((sum, { length }) => sum + length + (isRouted || length > 1 ? 1 : 0), 0)

function importDeployment(entry: ImportSource, groups: Map<string, Deployment[]>, isRouted: boolean): void {
  const name = entry.text('model_name') ?? ''
  const params = entry.object('litellm_params')?.withHarmless(...harmlessSettings.litellm_params)
  entry.object('model_info')?.withHarmless(...harmlessSettings.model_info)
  if (params === undefined || name === '') return entry.lose('', 'has no model_name or no litellm_params')
  if (name.includes('*')) return entry.loseAll('is a pattern; list its models one by one')
  if (!NAME.test(name)) return entry.loseAll('has a name with white space, or a longer one than 256 characters')
  const group = groups.get(name) ?? []
  if (group.length >= MAX_TARGETS) return entry.loseAll(`is more than ${MAX_TARGETS} deployments of ${name}; use the long form`)
  if (sizeOf(new Map([...groups, [name, [...group, params]]]), isRouted) > MAX_MODELS)
    return entry.loseAll(`is more than ${MAX_MODELS} models; use the long form`)
  const provider = importProvider(params)
  if (provider === undefined) return entry.loseAll(`has model ${params.text('model') ?? ''}, whose provider is not supported`)
  const limits = importLimits(params)
  const defaults = defaultFields.flatMap((field) => (params.has(field) ? [{ field, value: params.take(field) }] : []))
  const [timeout, first] = [importSeconds(params, 'timeout'), importSeconds(params, 'stream_timeout')]
  const policies = compact({ http: timeout && { requestTimeout: timeout }, ai: compact({ defaults, firstTokenTimeout: first }) })
  groups.set(name, [...group, { params, model: { ...provider, ...(policies && { policies }) }, limits }])
}

/** Limits of requests and tokens for a minute. LiteLLM counts them in each process too, unless it has a Redis server. */
function importLimits(params: ImportSource): object[] {
  const own: object[] = []
  for (const [field, unit] of Object.entries({ rpm: 'requests', tpm: 'tokens' })) {
    const limit = params.number(field)
    if (limit === undefined) continue
    if (Number.isInteger(limit) && limit > 0 && limit <= MAX_LIMIT) own.push({ [unit]: limit, window: '1m' })
    else params.reject(field)
  }
  return own
}

/** Other names of models: `name: model`, or `name: {model, hidden}`. */
function importAliases(router: ImportSource | undefined, groups: ReadonlyMap<string, unknown>, most: number): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>()
  const source = router?.object('model_group_alias')
  for (const name of source?.names ?? []) {
    const fields = source?.object(name)
    const model = fields?.text('model') ?? source?.text(name) ?? ''
    if (fields?.flag('hidden') === true) fields.lose('hidden', 'has no equivalent; the name is listed by GET /v1/models')
    fields?.withHarmless('hidden')
    if (!groups.has(model)) source?.lose(name, 'names a model that was not carried over')
    else if (groups.has(name) || !NAME.test(name)) source?.lose(name, 'is the name of a model, a pattern, empty, or has white space')
    else if (aliases.size >= most) source?.lose(name, `is more than ${MAX_MODELS} models`)
    else aliases.set(name, model)
  }
  return aliases
}

/** Fallbacks of a model, in order. */
interface Fallback {
  readonly causes: readonly string[]
  readonly model: string
}
type Fallbacks = ReadonlyMap<string, readonly Fallback[]>

/** Reads lists such as `[{gpt-4o: [claude]}]`. `*` and `default_fallbacks` are those of models without a list of their own. */
function importFallbacks({ router, settings }: RouterSections, groups: ReadonlyMap<string, unknown>, aliases: ReadonlyMap<string, string>): Fallbacks {
  const found = new Map<string, Fallback[]>()
  for (const [field, causes] of Object.entries(fallbackFields)) {
    const section = router?.has(field) === true ? router : settings
    const lists = new Map<string, string[]>()
    for (const entry of section?.list(field) ?? [])
      for (const name of entry.names) {
        const models = readNames(entry, name, groups, aliases)
        if (name !== '*' && !groups.has(name)) entry.lose(name, 'is a model that was not carried over')
        else lists.set(name, models)
      }
    if (field === 'fallbacks') lists.set('*', [...(lists.get('*') ?? []), ...readDefaults({ router, settings }, groups, aliases)])
    for (const name of groups.keys()) {
      const models = (lists.get(name) ?? lists.get('*') ?? []).filter((model) => model !== name)
      found.set(name, [...(found.get(name) ?? []), ...models.map((model) => ({ causes, model }))])
    }
  }
  return found
}

function readDefaults({ router, settings }: RouterSections, ...known: [ReadonlyMap<string, unknown>, ReadonlyMap<string, string>]): string[] {
  const section = router?.has('default_fallbacks') === true ? router : settings
  return section?.has('default_fallbacks') === true ? readNames(section, 'default_fallbacks', ...known) : []
}

/** Models of a list. Others, and objects with parameters of their own, are lost. */
function readNames(source: ImportSource, name: string, groups: ReadonlyMap<string, unknown>, aliases: ReadonlyMap<string, string>): string[] {
  const names = (source.texts(name) ?? []).map((each) => aliases.get(each) ?? each)
  const models = names.filter((each) => groups.has(each))
  if (names.length === 0 || models.length < names.length) source.lose(name, 'has a fallback that is no model of the result')
  return models
}

/** How long a deployment is not used, and after how many failures. */
interface Health {
  readonly seconds: number
  readonly failures: number
}

class ModelWriter {
  readonly #groups: ReadonlyMap<string, readonly Deployment[]>
  readonly #aliases: ReadonlyMap<string, string>
  readonly #fallbacks: Fallbacks
  readonly #sections: RouterSections
  readonly #models: Record<string, unknown> = {}
  /** Names of routes and targets by their limits. */
  readonly #limits = { route: new Map<string, string[]>(), target: new Map<string, string[]>() }

  constructor(groups: ReadonlyMap<string, readonly Deployment[]>, aliases: ReadonlyMap<string, string>, fallbacks: Fallbacks, sections: RouterSections) {
    this.#groups = groups
    this.#aliases = aliases
    this.#fallbacks = fallbacks
    this.#sections = sections
  }

  write(): ImportedModels {
    const by = this.#strategy()
    const virtual = [...this.#groups.keys()].filter((name) => this.#isVirtual(name))
    // Settings that nothing uses are left to be listed.
    const health = virtual.length === 0 ? undefined : this.#health()
    for (const [name, deployments] of this.#groups) {
      const [only] = deployments
      if (only !== undefined && !virtual.includes(name)) {
        this.#models[name] = only.model
        this.#limit('route', `llm.${name}`, only)
        continue
      }
      for (const [index, deployment] of deployments.entries()) {
        const own = this.#nameOf(name, index)
        this.#models[own] = { ...this.#withHealth(deployment, health), visibility: 'Internal' }
        this.#limit('target', `default/llm.${own}`, deployment)
      }
      this.#models[name] = this.#virtualModel(name, by)
    }
    for (const [name, model] of this.#aliases) this.#models[name] = { to: [{ model }] }
    return { models: this.#models, budgets: this.#budgets() }
  }

  /** Whether a model has targets: several deployments, fallbacks, or limits that hold also for requests that other models send to it. */
  #isVirtual(name: string): boolean {
    const deployments = this.#groups.get(name) ?? []
    if (deployments.length > 1 || (this.#fallbacks.get(name) ?? []).length > 0) return true
    const isNamed = [...this.#aliases.values()].includes(name) || this.#fallbacks.values().some((list) => list.some(({ model }) => model === name))
    return isNamed && deployments.some(({ limits }) => limits.length > 0)
  }

  #nameOf(name: string, index: number): string {
    let own = `${name}-${index + 1}`
    while (this.#groups.has(own) || this.#aliases.has(own)) own += '-'
    return own
  }

  /** The deployments of a model, by order, as lists of targets. */
  #levels(name: string): Target[][] {
    const deployments = this.#groups.get(name) ?? []
    if (!this.#isVirtual(name)) return [[{ model: name }]]
    const orderOf = ({ params }: Deployment): number => (deployments.length > 1 ? (params.number('order') ?? Infinity) : 0)
    const levels = Map.groupBy(deployments, orderOf)
    return [...levels.keys()]
      .toSorted((a, b) => (a < b ? -1 : 1))
      .map((order) => {
        const level = levels.get(order) ?? []
        const weights = weightsOf(level)
        return level.map((each, index) => ({ model: this.#nameOf(name, deployments.indexOf(each)), ...(weights && { weight: weights[index] ?? 0 }) }))
      })
  }

  #virtualModel(name: string, by: string | undefined): object {
    const [to = [], ...further] = this.#levels(name)
    const fallback = [
      // What a retry of LiteLLM does: another deployment of the model.
      ...(to.length > 1 ? [{ on: failures, to }] : []),
      ...further.map((level) => ({ on: failures, to: level })),
      ...(this.#fallbacks.get(name) ?? []).flatMap(({ causes, model }) => this.#levels(model).map((level) => ({ on: causes, to: level }))),
    ]
    if (fallback.length > MAX_FALLBACKS)
      this.#sections.router?.lose('fallbacks', `has more than ${MAX_FALLBACKS} steps for ${name}; the first ones are carried over`)
    return { to, ...(fallback.length > 0 && { fallback: fallback.slice(0, MAX_FALLBACKS) }), ...(by !== undefined && to.length > 1 && { by }) }
  }

  #strategy(): string | undefined {
    const { router } = this.#sections
    if (this.#groups.values().every(({ length }) => length < 2)) return undefined
    const strategy = router?.text('routing_strategy') ?? 'simple-shuffle'
    if (Object.hasOwn(strategies, strategy)) return strategies[strategy]
    router?.lose('routing_strategy', 'has no equivalent; targets are chosen by weight, see docs/guide/models.md')
    return undefined
  }

  #health(): Health | undefined {
    const { router, settings } = this.#sections
    if (router?.flag('disable_cooldowns') === true) return undefined
    const cooldown = router?.number('cooldown_time') ?? COOLDOWN_SECONDS
    const section = router?.has('allowed_fails') === true ? router : settings
    const allowed = section?.number('allowed_fails')
    if (allowed !== undefined) section?.lose('allowed_fails', 'counts failures in a row, instead of those of a minute')
    return { seconds: cooldown, failures: allowed === undefined ? FAILURES : Math.min(Math.max(Math.trunc(allowed), 0), MAX_LIMIT) + 1 }
  }

  #withHealth({ params, model }: Deployment, health: Health | undefined): Record<string, unknown> {
    const own = params.number('cooldown_time') ?? health?.seconds ?? 0
    if (health === undefined || !(own > 0)) return model
    // The shortest eviction takes 1 s.
    const eviction = { duration: toDuration(Math.max(own, 1)), consecutiveFailures: health.failures }
    return { ...model, policies: { ...(model['policies'] as object | undefined), health: { unhealthyCondition: UNHEALTHY, eviction } } }
  }

  #limit(kind: 'route' | 'target', name: string, { params, limits }: Deployment): void {
    if (limits.length === 0) return
    const key = JSON.stringify(limits)
    const { route, target } = this.#limits
    if (!this.#limits[kind].has(key) && route.size + target.size >= MAX_BUDGETS)
      return params.reject('', `has limits of its own, and ${MAX_BUDGETS} budgets exist already; requests are rejected by an authorization rule`)
    this.#limits[kind].set(key, [...(this.#limits[kind].get(key) ?? []), name])
  }

  /** Budgets that count each deployment for itself. A provider that clients name is counted by its route, because it is no target. */
  #budgets(): object[] {
    const both = [
      ...Array.from(this.#limits.route, ([key, names]) => ({ key, by: 'proxy.route.name', models: `proxy.route.name in ${JSON.stringify(names)}` })),
      ...Array.from(this.#limits.target, ([key, names]) => ({ key, by: 'llm.target', models: `has(llm.target) && llm.target in ${JSON.stringify(names)}` })),
    ]
    return both.map(({ key, by, models }, index) => ({ name: `models-${index + 1}`, key: by, models, limits: JSON.parse(key) as unknown }))
  }
}

/** Statuses for which LiteLLM does not use a deployment for a while. */
const UNHEALTHY = 'response.code in [401, 402, 404, 408, 429] || response.code >= 500'

/** Shares of deployments, by the first of these fields that the first one has, as LiteLLM's router takes them; undefined: equal. */
function weightsOf(deployments: readonly Deployment[]): number[] | undefined {
  const field = ['weight', 'rpm', 'tpm'].find((name) => deployments[0]?.params.number(name) !== undefined)
  if (field === undefined || deployments.length < 2) return undefined
  const shares = deployments.map(({ params }) => Math.max(0, params.number(field) ?? 0))
  const most = Math.max(...shares)
  if (most === 0 || (most <= MAX_WEIGHT && shares.every(Number.isInteger))) return most === 0 ? undefined : shares
  return shares.map((share) => (share === 0 ? 0 : Math.max(1, Math.round((share / most) * MAX_WEIGHT))))
}
