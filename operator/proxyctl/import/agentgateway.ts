import { importOwnPolicies, importRoutePolicies, isProtective, type RoutePolicies } from './agentgateway-policies.ts'
import { toName } from './litellm.ts'
import { compact, ImportSource, REJECT_ALL, REJECTED, type Imported, type Loss } from './source.ts'

const providerNames: Readonly<Record<string, string>> = {
  openAI: 'openai',
  openai: 'openai',
  ollama: 'openai',
  azureOpenAI: 'azureOpenAI',
  azure: 'azureOpenAI',
  anthropic: 'anthropic',
  gemini: 'gemini',
  vertex: 'vertexAI',
  bedrock: 'bedrock',
}

/** Variables of agentgateway, `$NAME` and `${NAME}`, as placeholders. */
function replaceVariables(value: unknown): unknown {
  if (typeof value === 'string')
    return value.replaceAll(
      /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(:-[^}]*)?\})/g,
      (_, plain?: string, braced?: string, fallback = '') => `\${${plain ?? braced}${fallback}}`,
    )
  if (Array.isArray(value)) return value.map(replaceVariables)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaceVariables(inner)]))
}

/** Imports a config file of agentgateway: binds in the long form, its sections `llm` and `mcp` in the short forms. */
export function importAgentgateway(config: unknown): Imported {
  const losses: Loss[] = []
  const source = new ImportSource(replaceVariables(config), '', losses)
  // Policies beside the binds name their targets, which may be any route.
  const others = ['policies', 'frontendPolicies', 'routeGroups'].filter((name) => source.has(name) && isProtective(source.take(name)))
  for (const name of others) source.lose(name, REJECTED)
  const isOpen = others.length === 0
  const binds = source
    .list('binds')
    .map((bind) => ({ port: bind.number('port') ?? 0, listeners: bind.list('listeners').flatMap((listener) => importListener(listener, isOpen)) }))
  const llm = importModels(source.object('llm'))
  const mcp = importServers(source.object('mcp'))
  const settings = importProcess(source.object('config'))
  source.finish()
  return { config: { ...(settings && { config: settings }), ...(llm && { llm }), ...(mcp && { mcp }), ...(binds.length > 0 && { binds }) }, losses }
}

function importProcess(config: ImportSource | undefined): object | undefined {
  const logging = config?.object('logging')
  return compact({
    adminAddr: config?.text('adminAddr'),
    statsAddr: config?.text('statsAddr'),
    readinessAddr: config?.text('readinessAddr'),
    logging: logging && compact({ level: logging.text('level'), format: logging.text('format') }),
  })
}

function importListener(listener: ImportSource, isOpen: boolean): object[] {
  const protocol = listener.text('protocol')
  const isPassthrough = protocol === 'TLS' && !listener.has('tls')
  const isSecure = (protocol === 'HTTPS' || protocol === 'TLS') && !isPassthrough
  if (protocol === 'HBONE' || (isSecure && listener.object('tls')?.has('cert') !== true)) {
    for (const name of listener.names) listener.take(name)
    listener.lose('', protocol === 'HBONE' ? 'has protocol HBONE, which is not supported' : 'has no tls.cert; certificates of a mesh are not supported')
    return []
  }
  const tls = listener.object('tls')
  const own = listener.object('policies')
  const { traffic, filters, timeouts, retry } = importRoutePolicies(own)
  if (compact({ filters, timeouts, retry }) !== undefined) own?.lose('', 'has filters, timeouts or retries for all routes; add them to each route')
  return [
    compact({
      name: listener.text('name'),
      hostname: listener.text('hostname'),
      protocol,
      tls: isPassthrough ? { mode: 'Passthrough' } : tls && compact({ cert: tls.text('cert'), key: tls.text('key'), clientCa: tls.text('root') }),
      policies: isOpen ? traffic : { ...traffic, ...REJECT_ALL },
      routes: listener.list('routes').map(importRoute),
      tcpRoutes: listener.list('tcpRoutes').map((route) =>
        compact({
          name: route.text('name'),
          hostnames: route.texts('hostnames'),
          backends: route.list('backends').flatMap((backend) => importBackend(backend, {})),
        }),
      ),
    }) ?? {},
  ]
}

function importRoute(route: ImportSource): object {
  const policies = importRoutePolicies(route.object('policies'))
  const backends = route.list('backends').flatMap((backend) => importBackend(backend, policies.backend))
  return (
    compact({
      name: route.text('name'),
      hostnames: route.texts('hostnames'),
      matches: route.list('matches').flatMap(importMatch),
      filters: policies.filters,
      timeouts: policies.timeouts,
      retry: policies.retry,
      policies: policies.traffic,
      backends,
    }) ?? {}
  )
}

function importMatch(match: ImportSource): object[] {
  const path = match.object('path')
  const regex = path?.texts('regex')?.[0] ?? path?.text('regex')
  const [exact, prefix] = [path?.text('exact'), path?.text('pathPrefix')]
  const method = match.text('method') ?? match.object('method')?.text('method')
  const values = (name: string): object[] =>
    match.list(name).map((each) => {
      const value = each.object('value')
      const pattern = value?.text('regex')
      return { name: each.text('name'), type: pattern === undefined ? 'Exact' : 'RegularExpression', value: pattern ?? value?.text('exact') ?? '' }
    })
  const found = compact({
    path:
      exact !== undefined
        ? { type: 'Exact', value: exact }
        : prefix !== undefined
          ? { type: 'PathPrefix', value: prefix }
          : regex === undefined
            ? undefined
            : { type: 'RegularExpression', value: regex },
    headers: values('headers'),
    queryParams: values('query'),
    method,
  })
  return found === undefined ? [] : [found]
}

/** A weighted backend; none if its kind is not supported. */
function importBackend(backend: ImportSource, inherited: RoutePolicies['backend']): object[] {
  const own = importOwnPolicies(backend.object('policies'))
  if (own === undefined) {
    for (const name of backend.names) backend.take(name)
    return []
  }
  const ai = backend.object('ai')
  const mcp = backend.object('mcp')
  const common = { weight: backend.number('weight'), policies: compact({ ...inherited, ...own }) }
  const host = backend.text('host')
  if (host !== undefined) return [compact({ host, ...common }) ?? {}]
  if (ai) return importAi(ai, common)
  if (mcp) return importMcp(mcp, common)
  if (backend.has('dynamic')) {
    backend.take('dynamic')
    return [compact({ dynamicForwardProxy: {}, ...common }) ?? {}]
  }
  backend.lose('', 'is not host, ai, mcp or dynamic; requests to it fail with 500 until you add a destination')
  for (const name of backend.names) backend.take(name)
  return []
}

interface Common {
  readonly weight: number | undefined
  readonly policies: Readonly<Record<string, unknown>> | undefined
}

function importAi(ai: ImportSource, { weight, policies }: Common): object[] {
  ai.text('name')
  const groups = ai
    .list('groups')
    .map((group) => ({ providers: group.list('providers').flatMap((each) => importProvider(each, toName(each.text('name') ?? 'backend'))) }))
  const [single] = groups.length > 0 ? [] : importProvider(ai)
  if (groups.length === 0 && single === undefined) return []
  const { policies: own, ...provider } = (single ?? {}) as { policies?: object }
  return [compact({ ai: groups.length > 0 ? { groups } : { provider }, weight, policies: compact({ ...policies, ...own }) }) ?? {}]
}

/** Fields of an LLM provider of the long form. */
function importProvider(source: ImportSource, name?: string): Record<string, unknown>[] {
  const provider = source.object('provider')
  const [kind = ''] = provider?.names ?? []
  const ours = providerNames[kind]
  const fields = provider?.object(kind) ?? new ImportSource({}, '', [])
  if (provider !== undefined && ours !== undefined) provider.take(kind)
  if (ours === undefined) {
    source.lose('provider', `${kind === '' ? 'a backend without provider' : kind} is not supported`)
    return []
  }
  const own = importOwnPolicies(source.object('policies'))
  if (own === undefined) return []
  const [host, port] = source.text('hostOverride')?.split(/:(?=\d+$)/) ?? []
  return [
    compact({
      name,
      [ours]: providerFields(ours, fields),
      host,
      port: port === undefined ? undefined : Number(port),
      path: source.text('pathOverride'),
      policies: compact({ ...own }),
    }) ?? {},
  ]
}

function providerFields(ours: string, fields: ImportSource): object {
  const model = fields.text('model')
  if (ours === 'azureOpenAI')
    return compact({ endpoint: fields.text('host') ?? fields.text('resourceName'), deploymentName: model, apiVersion: fields.text('apiVersion') }) ?? {}
  if (ours === 'vertexAI') return compact({ model, projectId: fields.text('projectId'), region: fields.text('region') ?? 'global' }) ?? {}
  if (ours !== 'bedrock') return compact({ model }) ?? {}
  const [identifier, version] = [fields.text('guardrailIdentifier'), fields.text('guardrailVersion')]
  return compact({ model, region: fields.text('region'), guardrail: identifier === undefined ? undefined : { identifier, version: version ?? 'DRAFT' } }) ?? {}
}

interface Target {
  readonly host: string
  readonly port: number
  readonly path: string | undefined
  readonly isTls: boolean
  readonly isSse: boolean
}

/** The address of an MCP target: `host` is a URL, or has `port` and `path` beside it. */
function readTarget(target: ImportSource): Target | undefined {
  const kind = ['mcp', 'sse'].find((name) => target.has(name))
  const fields = kind === undefined ? undefined : target.object(kind)
  const host = fields?.text('host')
  if (fields === undefined || host === undefined) return undefined
  const [port, path] = [fields.number('port'), fields.text('path')]
  const url = /^https?:\/\//.test(host) ? URL.parse(host) : null
  const isTls = url?.protocol === 'https:'
  return {
    host: url?.hostname ?? host,
    port: url === null ? (port ?? 80) : Number(url.port || (isTls ? 443 : 80)),
    path: url === null ? path : url.pathname === '/' ? undefined : url.pathname + url.search,
    isTls,
    isSse: kind === 'sse',
  }
}

function loseTarget(target: ImportSource): void {
  const kind = ['stdio', 'openapi'].find((name) => target.has(name))
  for (const name of target.names) target.take(name)
  target.lose('', kind === 'stdio' ? 'is a stdio server; run it behind an HTTP server' : `${kind ?? 'its transport'} is not supported`)
}

function importMcp(mcp: ImportSource, common: Common): object[] {
  const targets = mcp.list('targets').flatMap((target) => {
    const name = toName(target.text('name') ?? 'target')
    const address = readTarget(target)
    const own = importOwnPolicies(target.object('policies'))
    if (address === undefined) return loseTarget(target) ?? []
    if (own === undefined) return []
    const { host, port, path, isTls, isSse } = address
    const policies = compact({ ...(isTls && { tls: {} }), ...own })
    return [{ name, static: compact({ host, port, path, protocol: isSse ? 'SSE' : undefined, policies }) }]
  })
  if (targets.length === 0) return []
  const mode = mcp.text('statefulMode')
  const prefixMode = { always: 'Always', conditional: 'Conditional' }[mcp.text('prefixMode') ?? '']
  return [compact({ mcp: compact({ targets, sessionRouting: mode?.toLowerCase() === 'stateless' ? 'Stateless' : undefined, prefixMode }), ...common }) ?? {}]
}

/** Fields of a model that protect nothing. */
const modelFields: ReadonlySet<string> = new Set(['name', 'provider', 'params', 'visibility', 'defaults', 'overrides', 'transformation', 'health'])

/** Section `llm`. */
function importModels(llm: ImportSource | undefined): object | undefined {
  if (llm === undefined) return undefined
  const models: Record<string, unknown> = {}
  for (const model of llm.list('models')) {
    const name = model.text('name') ?? ''
    const kind = model.text('provider') ?? ''
    const ours = providerNames[kind]
    const params = model.object('params')
    const isGuarded = model.names.some((field) => !modelFields.has(field))
    if (ours === undefined || name === '' || name.includes('*') || Object.hasOwn(models, name) || isGuarded) {
      for (const field of params?.names ?? []) params?.take(field)
      const reason = isGuarded
        ? `has fields that may protect it: only ${[...modelFields].join(', ')} are carried over or ignored`
        : 'is a pattern or a second entry of a name; list models one by one'
      model.lose('', ours === undefined ? 'has a provider that is not supported' : reason)
      for (const field of model.names) model.take(field)
      continue
    }
    const isLocal = kind === 'ollama'
    const [apiKey, base] = [params?.text('apiKey'), params?.text('baseUrl') ?? (isLocal ? 'http://localhost:11434/v1' : undefined)]
    models[name] = { [ours]: { ...providerFields(ours, params ?? new ImportSource({}, '', [])), ...compact({ apiKey, url: base }) } }
  }
  if (Object.keys(models).length === 0) return undefined
  const policies = importRoutePolicies(llm.object('policies'))
  return compact({ port: llm.number('port'), models, policies: policies.traffic })
}

/** Section `mcp`. */
function importServers(mcp: ImportSource | undefined): object | undefined {
  if (mcp === undefined) return undefined
  const servers: Record<string, unknown> = {}
  for (const target of mcp.list('targets')) {
    const name = toName(target.text('name') ?? 'target')
    const address = readTarget(target)
    if (address === undefined) {
      loseTarget(target)
      continue
    }
    const { host, port, path = '', isTls, isSse } = address
    const policies = importOwnPolicies(target.object('policies'))
    if (policies === undefined) continue
    servers[name] = compact({
      url: `${isTls ? 'https' : 'http'}://${host}:${port}${path}`,
      protocol: isSse ? 'SSE' : undefined,
      policies: compact({ ...policies }),
    })
  }
  if (Object.keys(servers).length === 0) return undefined
  const policies = importRoutePolicies(mcp.object('policies'))
  return compact({ port: mcp.number('port'), policies: policies.traffic, ...servers })
}
