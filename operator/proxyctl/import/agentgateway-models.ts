import { environments, compile, isParseError } from '#api/cel/index.ts'
import type { PresetName } from '#api/llm-presets.ts'
import { harmlessFields } from './agentgateway-fields.ts'
import { asTraffic, importRoutePolicies, importSecret, type RoutePolicies } from './agentgateway-policies.ts'
import { closePolicies, compact, ImportSource, type Loss } from './source.ts'

const MAX_MODELS = 64
const MAX_TARGETS = 16
const MAX_FALLBACKS = 8

export const providerNames: Readonly<Record<string, string>> = {
  openAI: 'openai',
  openai: 'openai',
  azureOpenAI: 'azureOpenAI',
  azure: 'azureOpenAI',
  anthropic: 'anthropic',
  gemini: 'gemini',
  vertex: 'vertexAI',
  bedrock: 'bedrock',
}

/** Names of presets -> ours. */
const presetNames: Readonly<Record<string, PresetName>> = {
  cohere: 'cohere',
  ollama: 'ollama',
  baseten: 'baseten',
  cerebras: 'cerebras',
  deepinfra: 'deepinfra',
  deepseek: 'deepseek',
  groq: 'groq',
  huggingface: 'huggingface',
  mistral: 'mistral',
  openrouter: 'openrouter',
  togetherai: 'together',
  xai: 'xai',
  fireworks: 'fireworks',
}

/** Fields of a provider, which a model of the section `llm` has under longer names. */
export function providerFields(ours: string, fields: ImportSource): object {
  const first = (name: string, long: string): string | undefined => fields.text(name) ?? fields.text(long)
  const model = fields.text('model')
  if (ours === 'azureOpenAI')
    return (
      compact({
        endpoint: fields.text('host') ?? first('resourceName', 'azureResourceName'),
        deploymentName: model,
        apiVersion: first('apiVersion', 'azureApiVersion'),
      }) ?? {}
    )
  if (ours === 'vertexAI') return compact({ model, projectId: first('projectId', 'vertexProject'), region: first('region', 'vertexRegion') ?? 'global' }) ?? {}
  if (ours !== 'bedrock') return compact({ model }) ?? {}
  const identifier = fields.text('guardrailIdentifier')
  const version = identifier === undefined ? undefined : fields.text('guardrailVersion')
  return (
    compact({ model, region: first('region', 'awsRegion'), guardrail: identifier === undefined ? undefined : { identifier, version: version ?? 'DRAFT' } }) ??
    {}
  )
}

const modelFields: ReadonlySet<string> = new Set(['name', 'provider', 'params', 'visibility', ...harmlessFields.model])
const paramFields: ReadonlySet<string> = new Set(
  ['model', 'apiKey', 'baseUrl', 'awsRegion', 'azureApiVersion', 'azureResourceName', 'vertexProject', 'vertexRegion'].concat(harmlessFields.params),
)

/** A model of the section that is carried over. */
interface Served {
  readonly source: ImportSource
  readonly isPublic: boolean
  /** What clients or targets name: exact, or with one `*`. */
  readonly name: string
  /** The short form, for one of the names that a pattern matches. */
  write(asked: string): Record<string, unknown>
}

/** Section `llm`. */
export function importModels(llm: ImportSource | undefined, losses: Loss[]): Record<string, unknown> | undefined {
  if (llm === undefined) return undefined
  const own = llm.withHarmless(...harmlessFields.llm).object('policies')
  const policies = importRoutePolicies(own)
  if (policies.backend['mcp'] !== undefined) own?.lose('mcpAuthorization', 'has no effect on models')
  const shared = importShared(llm)
  const served = new Map<string, Served>()
  for (const source of llm.list('models')) {
    const one = importModel(source, shared, policies.backend, losses)
    if (one !== undefined && served.has(one.name)) source.loseAll('is a second entry of a name; list models one by one')
    else if (one !== undefined) served.set(one.name, one)
  }
  const models = writeModels(served, llm.list('virtualModels'))
  if (Object.keys(models).length === 0) return leaveSection(llm, 'has no model that can be carried over')
  const imported: Record<string, unknown> = compact({ port: llm.number('port'), models, policies: asTraffic(policies, own) }) ?? {}
  llm.closedBy(() => closePolicies(imported))
  return imported
}

/** Providers that models refer to by name. */
function importShared(llm: ImportSource): ReadonlyMap<string, ImportSource> {
  const shared = new Map<string, ImportSource>()
  for (const source of llm.has('providers') ? llm.list('providers') : []) {
    const name = source.text('name') ?? ''
    if (!source.names.every((field) => ['name', 'provider', 'params'].includes(field)))
      source.loseAll('has defaults, which may protect it; repeat the provider in its models')
    else shared.set(name, source)
  }
  return shared
}

const prefixOf = (source: ImportSource | undefined): string | undefined =>
  source?.names.length === 1 ? /^llmRequest\.model\.stripPrefix\("([^"\\]*)"\)$/.exec(source.text('model') ?? '')?.[1] : undefined

function importModel(source: ImportSource, shared: ReadonlyMap<string, ImportSource>, backend: RoutePolicies['backend'], losses: Loss[]): Served | undefined {
  const name = source.text('name') ?? ''
  const reference = source.object('provider')?.text('reference')
  const provider = reference === undefined ? undefined : shared.get(reference)
  const kind = reference === undefined ? (source.text('provider') ?? '') : (provider?.text('provider') ?? '')
  const preset = Object.hasOwn(presetNames, kind) ? presetNames[kind] : undefined
  const ours = preset === undefined ? providerNames[kind] : 'preset'
  const params = paramsOf(source.withHarmless(...harmlessFields.model), provider, losses)
  const isPattern = name.includes('*')
  const prefix = isPattern ? prefixOf(source.object('transformation')) : undefined
  // Another host would get the prompts and the key.
  const isGuarded =
    source.names.some((field) => !modelFields.has(field) && (field !== 'transformation' || prefix === undefined)) ||
    params?.names.some((field) => !paramFields.has(field)) === true
  const visibility = source.has('visibility') ? source.text('visibility') : 'public'
  if (ours === undefined || name === '' || isGuarded || (visibility !== 'public' && visibility !== 'internal') || name.slice(1, -1).includes('*')) {
    const reason = isGuarded
      ? `has fields that may protect it: only ${[...modelFields].join(', ')} are carried over or ignored, and of params ${[...paramFields].join(', ')}`
      : 'has no name, or a visibility that is not supported'
    source.loseAll(ours === undefined ? 'has a provider that is not supported' : reason)
    return undefined
  }
  const [apiKey, base] = [importSecret(params, 'apiKey'), params?.text('baseUrl')]
  const fields = providerFields(ours, params ?? new ImportSource({}, '', []))
  const health = importHealth(source.object('health'))
  // A key of the model takes precedence over that of the section.
  const { auth, mcp: _, ...others } = backend
  const policies = compact({ auth: apiKey === undefined ? auth : undefined, health, ...others })
  const modelField = ours === 'azureOpenAI' ? 'deploymentName' : 'model'
  const write = (asked: string): Record<string, unknown> => {
    const model = isPattern ? { [modelField]: prefix !== undefined && asked.startsWith(prefix) ? asked.slice(prefix.length) : asked } : {}
    return { [ours]: { ...(preset !== undefined && { name: preset }), ...model, ...fields, ...compact({ apiKey, url: base }) }, ...compact({ policies }) }
  }
  if (provider !== undefined) params?.finish()
  return { source, name, isPublic: visibility === 'public', write }
}

/** The parameters of a model, those of its provider where it has none. */
function paramsOf(model: ImportSource, provider: ImportSource | undefined, losses: Loss[]): ImportSource | undefined {
  const own = model.object('params')?.withHarmless(...harmlessFields.params)
  const outer = provider?.object('params')
  if (outer === undefined) return own
  const merged = Object.fromEntries([outer, own].flatMap((params) => (params?.names ?? []).map((name) => [name, params?.take(name)] as const)))
  return new ImportSource(merged, `${model.path}.params`, losses, model).withHarmless(...harmlessFields.params)
}

/** A share of 1, as one of 100. */
const toScore = (share: number | undefined): number | undefined => (share === undefined ? undefined : Math.round(Math.min(Math.max(share, 0), 1) * 100))

function importHealth(health: ImportSource | undefined): object | undefined {
  const eviction = health?.object('eviction')?.withHarmless('consecutiveFailures', 'duration', 'healthThreshold', 'restoreHealth')
  const failures = eviction?.number('consecutiveFailures')
  return (
    health?.withHarmless('eviction', 'unhealthyExpression') &&
    compact({
      unhealthyCondition: health.text('unhealthyExpression'),
      eviction: eviction && {
        ...compact({
          duration: eviction.text('duration'),
          consecutiveFailures: failures === undefined ? undefined : Math.max(0, Math.trunc(failures)),
          restoreHealth: toScore(eviction.number('restoreHealth')),
          healthThreshold: toScore(eviction.number('healthThreshold')),
        }),
      },
    })
  )
}

/** Public models, and virtual ones with the models that they lead to. */
function writeModels(served: ReadonlyMap<string, Served>, virtual: readonly ImportSource[]): Record<string, unknown> {
  const models: Record<string, unknown> = {}
  const isFull = (): boolean => Object.keys(models).length >= MAX_MODELS
  for (const { name, isPublic, source, write } of served.values())
    if (isPublic && !name.includes('*')) {
      if (isFull()) source.loseAll(`is more than ${MAX_MODELS} models; use the long form`)
      else models[name] = write(name)
    }
  const used = new Set<Served>()
  for (const source of virtual) {
    const name = source.text('name') ?? ''
    const found = importRouting(source.object('routing'))
    const targets = typeof found === 'object' ? found.names.map((asked) => findServed(served, asked)) : []
    const added = typeof found === 'object' ? [...new Set([name, ...found.names])].filter((each) => !Object.hasOwn(models, each)).length : 0
    if (name === '' || name.includes('*') || Object.hasOwn(models, name) || served.has(name)) source.loseAll('has no name, or that of another model')
    else if (typeof found === 'string') source.loseAll(found)
    else if (targets.some((target) => target === undefined) || found.names.includes(name)) source.loseAll('has a target that is not carried over')
    else if (Object.keys(models).length + added > MAX_MODELS) source.loseAll(`needs more than ${MAX_MODELS} models; use the long form`)
    else {
      for (const [index, asked] of found.names.entries()) {
        const target = targets[index]
        if (target === undefined) continue
        used.add(target)
        models[asked] ??= { ...target.write(asked), visibility: 'Internal' }
      }
      models[name] = found.model
    }
  }
  for (const one of served.values()) {
    if (one.isPublic && one.name.includes('*')) one.source.lose('name', 'is a pattern: clients cannot request its models; list them one by one')
    else if (!used.has(one) && !one.isPublic) one.source.loseAll('is not public, and no virtual model leads to it')
  }
  return models
}

/** The model that serves a name: an exact one, else that of the longest pattern. */
function findServed(served: ReadonlyMap<string, Served>, asked: string): Served | undefined {
  const matches = (pattern: string): boolean => {
    const [before = '', after] = pattern.split('*')
    return after !== undefined && asked.length >= before.length + after.length && asked.startsWith(before) && asked.endsWith(after)
  }
  const patterns = [...served.values()].filter(({ name }) => matches(name)).toSorted((a, b) => b.name.length - a.name.length)
  return served.get(asked) ?? patterns[0]
}

/** Failures after which a lower priority is used. */
const failures = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable'] as const

/** A model with targets, and the names of these; or why it cannot be carried over. */
function importRouting(routing: ImportSource | undefined): { readonly names: readonly string[]; readonly model: object } | string {
  const kinds = routing?.names.filter((name) => routing.has(name)) ?? []
  const [kind = ''] = kinds
  const section = kinds.length === 1 ? routing?.object(kind) : undefined
  const targets = section?.names.length === 1 ? section.list('targets') : []
  const names = targets.map((target) => target.text('model') ?? '')
  const fields = { weighted: ['model', 'weight'], failover: ['model', 'priority'], conditional: ['model', 'when'] }[kind]
  if (fields === undefined || targets.some((target) => target.names.some((name) => !fields.includes(name)))) return 'has a routing that is not supported'
  if (targets.length === 0 || targets.length > MAX_TARGETS) return `has no targets, or more than ${MAX_TARGETS}`
  const numbers = (field: string): number[] => targets.map((target) => (target.has(field) ? (target.number(field) ?? NaN) : 1))
  const shares = numbers(kind === 'failover' ? 'priority' : 'weight')
  if (!shares.every((share) => Number.isInteger(share) && share >= 0 && share <= 1_000_000))
    return 'has a weight or a priority that is not an integer from 0 to 1000000'
  if (kind === 'weighted') {
    // A model that is named twice has the sum of its weights.
    const sums = new Map<string, number>()
    for (const [index, name] of names.entries()) sums.set(name, Math.min((sums.get(name) ?? 0) + (shares[index] ?? 0), 1_000_000))
    return { names, model: { to: Array.from(sums, ([model, weight]) => ({ model, weight })) } }
  }
  if (kind === 'failover') {
    const levels = Map.groupBy([...names.keys()], (index) => shares[index] ?? 0)
    const lists = [...levels.keys()]
      .toSorted((a, b) => a - b)
      .map((level) => [...new Set(levels.get(level)?.map((index) => names[index] ?? ''))].map((model) => ({ model })))
    const [to = [], ...others] = lists
    if (others.length > MAX_FALLBACKS) return `has more than ${MAX_FALLBACKS + 1} priorities`
    const isShared = lists.some(({ length }) => length > 1)
    return {
      names,
      model: { to, ...(others.length > 0 && { fallback: others.map((list) => ({ on: failures, to: list })) }), ...(isShared && { by: 'LeastLatency' }) },
    }
  }
  const whens = targets.map((target) => target.text('when'))
  const broken = whens.find((when) => when !== undefined && isParseError(compile(when, environments.llm)))
  if (broken !== undefined) return `has a condition that is not valid here: ${broken}`
  return { names, model: { rules: names.map((model, index) => ({ ...(whens[index] !== undefined && { when: whens[index] }), to: [{ model }] })) } }
}

/** A section without a model or server opens no port: its policies protect nothing. */
export function leaveSection(section: ImportSource, reason: string): undefined {
  if (section.names.length > 0) section.loseAll(reason)
}
