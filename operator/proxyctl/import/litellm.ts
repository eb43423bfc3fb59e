import { shortFormDefinitions } from '#api/config/short-forms.ts'
import { harmlessSettings, keyStores, switches } from './litellm-settings.ts'
import { importModels, type RouterSections } from './litellm-models.ts'
import { value } from './litellm-providers.ts'
import { closePolicies, compact, importSeconds, ImportSource, literal, type Imported, type Loss } from './source.ts'

const callbackFields = ['callbacks', 'success_callback', 'failure_callback', 'audit_log_callbacks'] as const
/** Callbacks that only record requests. */
const recorders: ReadonlySet<string> = new Set(
  'langfuse langfuse_otel langsmith prometheus otel datadog datadog_llm_observability s3 s3_v2 gcs_bucket gcs_pubsub azure_storage sentry helicone lunary arize arize_phoenix mlflow braintrust opik weave logfire galileo posthog slack athina supabase dynamodb traceloop humanloop argilla literalai deepeval cloudzero openmeter lago generic_api'.split(
    ' ',
  ),
)
/** Imports the config.yaml of the LiteLLM proxy into the short forms `llm` and `mcp`. */
export function importLiteLlm(config: unknown): Imported {
  const losses: Loss[] = []
  const source = new ImportSource(config, '', losses).withHarmless(...harmlessSettings.file)
  if (source.has('include')) {
    source.lose('include', 'names files that may hold any setting; copy their content into this file')
    return { config: {}, losses }
  }
  const entries = source.list('model_list')
  const sections = {
    general: openSection(source, 'general_settings'),
    router: openSection(source, 'router_settings'),
    settings: openSection(source, 'litellm_settings'),
  }
  const { models, budgets } = importModels(entries, sections)
  importEnvironment(source, config)
  const secrets: unknown[] = []
  const { clients, ...others } = importSettings(sections, secrets)
  const policies = compact({ apiKeyAuthentication: clients, budgets, ...others })
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

/** Variables that the file uses are those of its placeholders. Others may be settings, such as the master key. */
function importEnvironment(source: ImportSource, config: unknown): void {
  const used = JSON.stringify(config).matchAll(/"os\.environ\/(\w+)"/g)
  source.object('environment_variables')?.withHarmless(...Array.from(used, ([, name = '']) => name))
}

type Sections = RouterSections & { readonly general: ImportSource | undefined }

const openSection = (source: ImportSource, name: 'general_settings' | 'router_settings' | 'litellm_settings'): ImportSource | undefined =>
  source
    .object(name)
    ?.withHarmless(...harmlessSettings[name])
    .withSwitches(...switches[name])

/** Settings of the proxy as policies of all models. */
function importSettings({ general, router, settings }: Sections, secrets: unknown[]): Record<string, unknown> {
  const attempts = router?.number('num_retries') ?? settings?.number('num_retries')
  const timeout = router?.has('timeout') === true ? importSeconds(router, 'timeout') : importSeconds(settings, 'request_timeout')
  const isRetried = attempts !== undefined && attempts > 0
  const pause = isRetried ? importSeconds(router, 'retry_after') : undefined
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
    ...(isRetried && {
      retry: { attempts, codes: [429, 500, 502, 503, 504], ...(pause !== undefined && { backoff: pause }) },
    }),
    ...(timeout !== undefined && { timeouts: { request: timeout } }),
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
