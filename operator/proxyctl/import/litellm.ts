import { compact, ImportSource, literal, REJECT_ALL, REJECTED, type Imported, type Loss } from './source.ts'

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

/** Fields of the request body that LiteLLM fills in. */
const defaultFields = ['temperature', 'max_tokens', 'top_p', 'frequency_penalty', 'presence_penalty', 'seed', 'stop'] as const

/** A value of a LiteLLM config: `os.environ/NAME` becomes the placeholder `${NAME}`. */
function value(text: string | undefined): string | undefined {
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(text ?? '') ?? []
  return name === undefined ? text && literal(text) : `\${${name}}`
}

/** Imports the config.yaml of the LiteLLM proxy into the short forms `llm` and `mcp`. */
export function importLiteLlm(config: unknown): Imported {
  const losses: Loss[] = []
  const source = new ImportSource(config, '', losses)
  const models: Record<string, unknown> = {}
  for (const entry of source.list('model_list')) importModel(entry, models)
  const secrets: unknown[] = []
  const policies = importSettings(source, secrets)
  const mcp = importServers(source.object('mcp_servers'))
  source.finish()
  return {
    config: {
      ...(Object.keys(models).length > 0 && { llm: compact({ models, policies }) }),
      ...(mcp && { mcp }),
      ...(secrets.length > 0 && { secrets }),
    },
    losses,
  }
}

function importModel(entry: ImportSource, models: Record<string, unknown>): void {
  const name = entry.text('model_name') ?? ''
  const params = entry.object('litellm_params')
  entry.object('model_info')?.text('id')
  if (params === undefined || name === '') return entry.lose('', 'has no model_name or no litellm_params')
  if (name.includes('*')) return loseAll(entry, params, 'is a pattern; list its models one by one')
  if (Object.hasOwn(models, name))
    return loseAll(entry, params, `is another deployment of ${name}; the short form has one provider for each model: use groups of providers in the long form`)
  if (Object.keys(models).length >= MAX_MODELS) return loseAll(entry, params, `is more than ${MAX_MODELS} models; use the long form`)
  const provider = importProvider(params)
  if (provider === undefined) return loseAll(entry, params, `has model ${params.text('model') ?? ''}, whose provider is not supported`)
  const defaults = defaultFields.flatMap((field) => (params.has(field) ? [{ field, value: params.take(field) }] : []))
  models[name] = { ...provider, ...(defaults.length > 0 && { policies: { ai: { defaults } } }) }
}

/** Reports a model as a whole instead of each of its fields. */
function loseAll(entry: ImportSource, params: ImportSource | undefined, reason: string): void {
  for (const field of params?.names ?? []) params?.take(field)
  for (const field of entry.names) entry.take(field)
  entry.lose('', reason)
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
function importSettings(source: ImportSource, secrets: unknown[]): Record<string, unknown> | undefined {
  const general = source.object('general_settings')
  const [router, settings] = [source.object('router_settings'), source.object('litellm_settings')]
  const attempts = router?.number('num_retries') ?? settings?.number('num_retries')
  const timeout = router?.number('timeout') ?? settings?.number('request_timeout')
  const masterKey = value(general?.text('master_key'))
  if (masterKey !== undefined) secrets.push({ key: 'opaque/default/clients', type: 'opaque', data: { master: masterKey } })
  const custom = ['custom_auth', 'enable_jwt_auth', 'enable_oauth2_auth'].filter((field) => general?.has(field) === true && general.text(field) !== 'false')
  for (const field of custom) general?.lose(field, REJECTED)
  const isGuarded = source.has('guardrails')
  if (isGuarded) source.lose('guardrails', `${REJECTED}, such as promptGuard (docs/guide/prompt-guards.md)`)
  if (general?.has('database_url') === true)
    general.lose('database_url', 'keys, teams and budgets of the database have no equivalent; list keys in secrets, see docs/guide/llm.md')
  return compact({
    ...(masterKey !== undefined && { apiKeyAuthentication: { secretRef: { secret: 'opaque/default/clients' } } }),
    ...(attempts !== undefined && attempts > 0 && { retry: { attempts, codes: [429, 500, 502, 503, 504] } }),
    ...(timeout !== undefined && { timeouts: { request: `${Math.round(timeout * 1000)}ms` } }),
    ...((custom.length > 0 || isGuarded) && REJECT_ALL),
  })
}

function importServers(servers: ImportSource | undefined): Record<string, unknown> | undefined {
  const imported: Record<string, unknown> = {}
  for (const name of servers?.names ?? []) {
    const server = servers?.object(name)
    const url = value(server?.text('url'))
    if (server === undefined || url === undefined) {
      for (const field of server?.names ?? []) server?.take(field)
      servers?.lose(name, 'has no url; run a server with stdio transport behind an HTTP server')
      continue
    }
    const [transport, type] = [server.text('transport') ?? 'sse', server.text('auth_type')]
    const token = value(server.text('authentication_token') ?? server.text('auth_value'))
    if (token !== undefined && type !== 'bearer_token') server.lose('auth_type', 'is not bearer_token; the token is sent as Authorization: Bearer')
    imported[toName(name)] = compact({ url, protocol: transport === 'sse' ? 'SSE' : undefined, apiKey: token })
  }
  return compact(imported)
}

/** A name that can be the prefix of tools. */
export const toName = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
