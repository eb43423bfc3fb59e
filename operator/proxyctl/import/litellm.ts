import { shortFormDefinitions } from '#api/config/short-forms.ts'
import { harmlessSettings, keyStores, switches } from './litellm-settings.ts'
import { closePolicies, compact, ImportSource, literal, type Imported, type Loss } from './source.ts'

/** Base URLs of services with the API of OpenAI, by the prefix of `model`. */
const compatible: Readonly<Record<string, string>> = {
  deepseek: 'https://api.deepseek.com/v1',
  fireworks_ai: 'https://api.fireworks.ai/inference/v1',
  groq: 'https://api.groq.com/openai/v1',
  mistral: 'https://api.mistral.ai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  perplexity: 'https://api.perplexity.ai',
  together_ai: 'https://api.together.xyz/v1',
  xai: 'https://api.x.ai/v1',
}
/** Prefixes of servers that need `api_base`. */
const selfHosted: ReadonlySet<string> = new Set(['hosted_vllm', 'vllm', 'lm_studio', 'openai_like', 'custom_openai', 'text-completion-openai', 'litellm_proxy'])

const MAX_MODELS = 64
const MAX_BUDGETS = 16
/** The highest limit of a budget of requests. */
const MAX_LIMIT = 1_000_000_000

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

const callbackFields = ['callbacks', 'success_callback', 'failure_callback', 'audit_log_callbacks'] as const
/** Callbacks that only record requests. */
const recorders: ReadonlySet<string> = new Set(
  'langfuse langfuse_otel langsmith prometheus otel datadog datadog_llm_observability s3 s3_v2 gcs_bucket gcs_pubsub azure_storage sentry helicone lunary arize arize_phoenix mlflow braintrust opik weave logfire galileo posthog slack athina supabase dynamodb traceloop humanloop argilla literalai deepeval cloudzero openmeter lago generic_api'.split(
    ' ',
  ),
)
/** A value of a LiteLLM config: `os.environ/NAME` becomes the placeholder `${NAME}`. */
function value(text: string | undefined): string | undefined {
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(text ?? '') ?? []
  return name === undefined ? text && literal(text) : `\${${name}}`
}

/** Imports the config.yaml of the LiteLLM proxy into the short forms `llm` and `mcp`. */
export function importLiteLlm(config: unknown): Imported {
  const losses: Loss[] = []
  const source = new ImportSource(config, '', losses).withHarmless(...harmlessSettings.file)
  if (source.has('include')) {
    source.lose('include', 'names files that may hold any setting; copy their content into this file')
    return { config: {}, losses }
  }
  const models: Record<string, unknown> = {}
  const limits: Limits = new Map()
  const entries = source.list('model_list')
  for (const entry of entries) importModel(entry, models, limits)
  importEnvironment(source, config)
  const secrets: unknown[] = []
  const { clients, ...others } = importSettings(source, secrets)
  const policies = compact({ apiKeyAuthentication: clients, budgets: budgetsOf(limits), ...others })
  const llm: Record<string, unknown> | undefined = Object.keys(models).length > 0 ? compact({ models, policies }) : undefined
  for (const entry of entries) entry.closedBy(() => llm && closePolicies(llm))
  const servers = source.object('mcp_servers')
  const imported = importServers(servers)
  // The keys of the proxy open its MCP servers, too.
  const mcp: Record<string, unknown> | undefined = imported && { ...(clients !== undefined && { policies: { apiKeyAuthentication: clients } }), ...imported }
  servers?.closedBy(() => mcp && closePolicies(mcp))
  source.closedBy(() => [llm, mcp].forEach((section) => section && closePolicies(section)))
  source.finish()
  return { config: llm === undefined && mcp === undefined ? {} : (compact({ llm, mcp, secrets }) ?? {}), losses }
}

/** Names of models by the limits of each of them for a minute. */
type Limits = Map<string, string[]>

/** Budgets that count each model for itself: by its route, because `llm.requestModel` is the name that the provider has for it. */
const budgetsOf = (limits: Limits): object[] =>
  Array.from(limits, ([key, models], index) => ({
    name: `models-${index + 1}`,
    key: 'proxy.route.name',
    models: `proxy.route.name in ${JSON.stringify(models.map((name) => `llm.${name}`))}`,
    limits: JSON.parse(key) as unknown,
  }))

/** Limits of requests and tokens. LiteLLM counts them in each process too, unless it has a Redis server. */
function importLimits(params: ImportSource, name: string, limits: Limits): void {
  const own: object[] = []
  for (const [field, unit] of Object.entries({ rpm: 'requests', tpm: 'tokens' })) {
    const limit = params.number(field)
    if (limit === undefined) continue
    if (Number.isInteger(limit) && limit > 0 && limit <= MAX_LIMIT) own.push({ [unit]: limit, window: '1m' })
    else params.reject(field)
  }
  const key = JSON.stringify(own)
  if (own.length === 0) return
  if (!limits.has(key) && limits.size >= MAX_BUDGETS)
    return params.reject('', `has limits of its own, and ${MAX_BUDGETS} budgets exist already; requests are rejected by an authorization rule`)
  limits.set(key, [...(limits.get(key) ?? []), name])
}

/** Variables that the file uses are those of its placeholders. Others may be settings, such as the master key. */
function importEnvironment(source: ImportSource, config: unknown): void {
  const used = JSON.stringify(config).matchAll(/"os\.environ\/(\w+)"/g)
  source.object('environment_variables')?.withHarmless(...Array.from(used, ([, name = '']) => name))
}

function importModel(entry: ImportSource, models: Record<string, unknown>, limits: Limits): void {
  const name = entry.text('model_name') ?? ''
  const params = entry.object('litellm_params')?.withHarmless(...harmlessSettings.litellm_params)
  entry.object('model_info')?.withHarmless(...harmlessSettings.model_info)
  if (params === undefined || name === '') return entry.lose('', 'has no model_name or no litellm_params')
  if (name.includes('*')) return entry.loseAll('is a pattern; list its models one by one')
  if (Object.hasOwn(models, name))
    return entry.loseAll(`is another deployment of ${name}; the short form has one provider for each model: use groups of providers in the long form`)
  if (Object.keys(models).length >= MAX_MODELS) return entry.loseAll(`is more than ${MAX_MODELS} models; use the long form`)
  const provider = importProvider(params)
  if (provider === undefined) return entry.loseAll(`has model ${params.text('model') ?? ''}, whose provider is not supported`)
  importLimits(params, name, limits)
  const defaults = defaultFields.flatMap((field) => (params.has(field) ? [{ field, value: params.take(field) }] : []))
  models[name] = { ...provider, ...(defaults.length > 0 && { policies: { ai: { defaults } } }) }
}

/** `{ <provider>: fields }` of the short form; undefined if the provider is not supported. */
function importProvider(params: ImportSource): Record<string, unknown> | undefined {
  const full = params.text('model') ?? ''
  const slash = full.indexOf('/')
  const custom = params.text('custom_llm_provider')
  const prefix = custom ?? (slash < 0 ? guessProvider(full) : full.slice(0, slash))
  const model = literal(custom === undefined && slash >= 0 ? full.slice(slash + 1) : full)
  const apiKey = value(params.text('api_key'))
  const base = value(params.text('api_base') ?? params.text('base_url'))
  const common = { model, apiKey, url: base }
  switch (prefix) {
    case 'openai':
    case 'text-completion-openai':
      return { openai: compact(common) }
    case 'anthropic':
      return { anthropic: compact(common) }
    case 'gemini':
      return { gemini: compact(common) }
    case 'azure':
      return base === undefined
        ? undefined
        : { azureOpenAI: compact({ endpoint: base, deploymentName: model, apiVersion: value(params.text('api_version')), apiKey }) }
    case 'vertex_ai':
    case 'vertex_ai_beta': {
      const [projectId, region] = [value(params.text('vertex_project')), value(params.text('vertex_location'))]
      return projectId === undefined || region === undefined ? undefined : { vertexAI: compact({ ...common, projectId, region }) }
    }
    case 'bedrock':
      return {
        bedrock: compact({
          model: model.replace(/^(?:converse|invoke)\//, ''),
          region: value(params.text('aws_region_name')),
          accessKeyId: value(params.text('aws_access_key_id')),
          secretAccessKey: value(params.text('aws_secret_access_key')),
          sessionToken: value(params.text('aws_session_token')),
          url: base ?? value(params.text('aws_bedrock_runtime_endpoint')),
        }),
      }
    case 'ollama':
    case 'ollama_chat':
      return { openai: compact({ ...common, url: `${(base ?? 'http://localhost:11434').replace(/\/$/, '')}/v1` }) }
    default: {
      const url = base ?? compatible[prefix]
      return url === undefined || (compatible[prefix] === undefined && !selfHosted.has(prefix)) ? undefined : { openai: compact({ ...common, url }) }
    }
  }
}

/** Models without a prefix are recognized by their names. */
function guessProvider(model: string): string {
  if (/^claude/i.test(model)) return 'anthropic'
  if (/^gemini/i.test(model)) return 'gemini'
  return /^(?:gpt|o\d|chatgpt|text-embedding|dall-e|whisper|tts)/i.test(model) ? 'openai' : ''
}

/** Settings of the proxy as policies of all models. */
function importSettings(source: ImportSource, secrets: unknown[]): Record<string, unknown> {
  const section = (name: 'general_settings' | 'router_settings' | 'litellm_settings'): ImportSource | undefined =>
    source
      .object(name)
      ?.withHarmless(...harmlessSettings[name])
      .withSwitches(...switches[name])
  const [general, router, settings] = [section('general_settings'), section('router_settings'), section('litellm_settings')]
  const attempts = router?.number('num_retries') ?? settings?.number('num_retries')
  const timeout = router?.number('timeout') ?? settings?.number('request_timeout')
  const masterKey = value(general?.text('master_key'))
  if (masterKey !== undefined) secrets.push({ key: 'opaque/default/clients', type: 'opaque', data: { master: masterKey } })
  // Callbacks record requests, or change and reject them as guardrails do.
  for (const field of callbackFields) {
    const callbacks = settings?.has(field) === true ? [settings.take(field)].flat() : []
    const guards = callbacks.filter((name) => !recorders.has(String(name)))
    if (guards.length > 0) settings?.reject(field)
    else if (callbacks.length > 0) settings?.lose(field, 'has no equivalent; see docs/guide/telemetry.md')
  }
  for (const field of keyStores)
    if (masterKey !== undefined && general?.has(field) === true)
      general.lose(field, 'keys, teams and budgets that LiteLLM stores have no equivalent; list keys in secrets, see docs/guide/llm.md')
  return {
    ...(masterKey !== undefined && { clients: { secretRef: { secret: 'opaque/default/clients' } } }),
    ...(attempts !== undefined && attempts > 0 && { retry: { attempts, codes: [429, 500, 502, 503, 504] } }),
    ...(timeout !== undefined && { timeouts: { request: `${Math.round(timeout * 1000)}ms` } }),
  }
}

/** Transports of servers at a URL; http is the default. */
const transports: ReadonlySet<string> = new Set(['http', 'sse', 'streamable_http'])

/** Names of fields that servers have beside them. */
const reserved = shortFormDefinitions['ShortMCP']?.properties ?? {}

function importServers(servers: ImportSource | undefined): Record<string, unknown> | undefined {
  const imported: Record<string, unknown> = {}
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name)?.withHarmless(...harmlessSettings.mcp_servers)
    const ownName = toName(name)
    if (ownName === '' || Object.hasOwn(imported, ownName) || Object.hasOwn(reserved, ownName)) {
      server?.loseAll('has the name of another server or of a field of the section mcp; rename it')
      continue
    }
    const url = value(server?.text('url'))
    if (server === undefined || url === undefined) {
      if (server === undefined) servers?.lose(name, 'is not a server')
      else if (server.has('command')) imported[ownName] = importProgram(server)
      else server.loseAll('has no url')
      continue
    }
    const [transport, type] = [server.text('transport'), server.text('auth_type')]
    const token = value(server.text('authentication_token') ?? server.text('auth_value'))
    if (token !== undefined && type !== 'bearer_token') server.lose('auth_type', 'is not bearer_token; the token is sent as Authorization: Bearer')
    if (token === undefined && type !== undefined && type !== 'none') server.reject('auth_type')
    if (transport !== undefined && !transports.has(transport)) server.reject('transport')
    imported[ownName] = compact({ url, protocol: transport === 'sse' ? 'SSE' : undefined, apiKey: token })
  }
  return compact(imported)
}

/** A server that speaks stdio. Its environment is that of the gateway, as in LiteLLM. */
function importProgram(server: ImportSource): object {
  server.take('transport')
  const env = server.object('env')
  const variables = (env?.names ?? []).map((name) => [name, value(env?.text(name)) ?? ''] as const)
  const command = [server.text('command') ?? '', ...(server.texts('args') ?? [])].map(literal)
  return { command, ...(variables.length > 0 && { env: Object.fromEntries(variables) }), inheritEnv: true }
}

/** A name that can be the prefix of tools. */
export const toName = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
