import { harmlessFields } from './agentgateway-fields.ts'
import { asTraffic, importOwnPolicies, importRoutePolicies, type RoutePolicies } from './agentgateway-policies.ts'
import { importModels, leaveSection, providerFields, providerNames } from './agentgateway-models.ts'
import { toName } from './litellm.ts'
import { closePolicies, compact, ImportSource, type Imported, type Loss } from './source.ts'

/** Limit of a buffered body without a setting. */
const OWN_BUFFER_SIZE = 2_097_152

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
  const binds = source.list('binds').map(importBind)
  const llm = importModels(source.object('llm'), losses)
  const servers = importServers(source.object('mcp'))
  const settings = importProcess(source.object('config'))
  if (servers?.bind) binds.push(servers.bind)
  // Policies beside the binds name their targets, which may be any route.
  source.closedBy(() => {
    for (const { listeners } of binds) listeners.forEach(closeListener)
    for (const section of [llm, servers?.mcp]) if (section) closePolicies(section)
  })
  importGateways(source.object('gateways'))
  const frontend = source.object('frontendPolicies')?.withHarmless(...harmlessFields.frontend)
  const http = frontend?.object('http')?.withHarmless(...harmlessFields.frontendHttp)
  if ((http?.number('maxBufferSize') ?? 0) >= OWN_BUFFER_SIZE) http?.lose('maxBufferSize', 'is not carried over; the limit is 2 MiB, for LLM requests 32 MiB')
  else if (http?.has('maxBufferSize') === true) http.reject('maxBufferSize')
  for (const name of ['accessLog', 'logging']) frontend?.object(name)?.withHarmless(...harmlessFields.accessLog)
  frontend?.object('tracing')?.withHarmless(...harmlessFields.tracing)
  source.withHarmless(...harmlessFields.file).finish()
  const sections = { config: settings, llm, mcp: servers?.mcp, binds }
  return { config: compact(sections) ?? {}, losses }
}

/** Gateways serve the sections `llm` and `mcp`, also those that do not name one: what a gateway has beside its address protects them. */
function importGateways(gateways: ImportSource | undefined): void {
  for (const name of gateways?.names ?? []) {
    const gateway = gateways?.object(name)?.withHarmless(...harmlessFields.gateway)
    for (const listener of gateway?.list('listeners') ?? []) listener.withHarmless(...harmlessFields.gatewayListener)
  }
}

function importProcess(config: ImportSource | undefined): object | undefined {
  config?.withHarmless(...harmlessFields.config)
  const logging = config?.object('logging')?.withHarmless(...harmlessFields.logging)
  logging?.object('fields')?.withHarmless('add')
  config?.object('metrics')?.withHarmless(...harmlessFields.metrics)
  config
    ?.object('tracing')
    ?.withHarmless(...harmlessFields.tracing)
    .object('fields')
    ?.withHarmless('add')
  return compact({
    adminAddr: config?.text('adminAddr'),
    statsAddr: config?.text('statsAddr'),
    readinessAddr: config?.text('readinessAddr'),
    logging: logging && compact({ level: logging.text('level'), format: logging.text('format') }),
  })
}

interface Listener extends Record<string, unknown> {
  readonly routes?: Record<string, unknown>[]
  readonly tcpRoutes?: Record<string, unknown>[]
}

interface Bind {
  readonly port: number
  readonly listeners: Listener[]
}

/** Makes a listener reject everything, in its routes too: their policies take precedence over its own. TCP routes have no policies, and lose their backends. */
function closeListener(listener: Listener): void {
  closePolicies(listener)
  listener.routes?.forEach(closePolicies)
  for (const route of listener.tcpRoutes ?? []) delete route['backends']
}

function importBind(bind: ImportSource): Bind {
  const imported: Bind = { port: bind.number('port') ?? 0, listeners: bind.list('listeners').flatMap(importListener) }
  // Other modes open no socket, or take who the client is from a tunnel.
  for (const [name, plain] of [
    ['mode', 'standard'],
    ['tunnelProtocol', 'direct'],
  ] as const)
    if ((bind.text(name) ?? plain) !== plain) bind.reject(name)
  bind.closedBy(() => imported.listeners.forEach(closeListener))
  return imported
}

function importListener(listener: ImportSource): Listener[] {
  listener.withHarmless(...harmlessFields.listener)
  const protocol = listener.text('protocol')
  const isPassthrough = protocol === 'TLS' && !listener.has('tls')
  const isSecure = (protocol === 'HTTPS' || protocol === 'TLS') && !isPassthrough
  if (protocol === 'HBONE' || (isSecure && listener.object('tls')?.has('cert') !== true)) {
    listener.loseAll(protocol === 'HBONE' ? 'has protocol HBONE, which is not supported' : 'has no tls.cert; certificates of a mesh are not supported')
    return []
  }
  const tls = listener.object('tls')?.withHarmless(...harmlessFields.tls)
  const own = listener.object('policies')
  const policies = importRoutePolicies(own)
  if (compact(policies.backend) !== undefined) own?.reject('', 'has policies of backends; add them to each route. Until then requests are rejected')
  const imported: Listener =
    compact({
      name: listener.text('name'),
      hostname: listener.text('hostname')?.toLowerCase(),
      protocol,
      tls: isPassthrough ? { mode: 'Passthrough' } : tls && compact({ cert: tls.text('cert'), key: tls.text('key'), clientCa: tls.text('root') }),
      policies: asTraffic(policies, own),
      routes: listener.list('routes').map(importRoute),
      tcpRoutes: listener.list('tcpRoutes').map(importTcpRoute),
    }) ?? {}
  listener.closedBy(() => closeListener(imported))
  return [imported]
}

function importTcpRoute(route: ImportSource): Record<string, unknown> {
  route.withHarmless(...harmlessFields.route)
  const backends = route.list('backends').flatMap((backend) => importBackend(backend, {}))
  const imported: Record<string, unknown> =
    compact({ name: route.text('name'), hostnames: route.texts('hostnames')?.map((name) => name.toLowerCase()), backends }) ?? {}
  route.closedBy(() => delete imported['backends'])
  return imported
}

function importRoute(route: ImportSource): Record<string, unknown> {
  const policies = importRoutePolicies(route.withHarmless(...harmlessFields.route).object('policies'))
  const imported = makeRoute(route, policies)
  route.closedBy(() => closePolicies(imported))
  return imported
}

function makeRoute(route: ImportSource, policies: RoutePolicies): Record<string, unknown> {
  const backends = route.list('backends').flatMap((backend) => importBackend(backend, policies.backend))
  return (
    compact({
      name: route.text('name'),
      hostnames: route.texts('hostnames')?.map((name) => name.toLowerCase()),
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
  const exact = path?.text('exact')
  const prefix = exact === undefined ? path?.text('pathPrefix') : undefined
  const regex = (exact ?? prefix) === undefined ? (path?.texts('regex')?.[0] ?? path?.text('regex')) : undefined
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
  if (own === undefined) return leaveOut(backend)
  const ai = backend.object('ai')
  const mcp = backend.object('mcp')
  const common = { weight: backend.number('weight'), policies: compact({ ...inherited, ...own }) }
  const host = backend.text('host')
  if (host !== undefined) return [compact({ host, ...common }) ?? {}]
  if (ai) return importAi(ai, common)
  if (mcp) return importMcp(mcp, common)
  if (backend.object('dynamic') !== undefined) {
    return [compact({ dynamicForwardProxy: {}, ...common }) ?? {}]
  }
  backend.loseAll('is not host, ai, mcp or dynamic; requests to it fail with 500 until you add a destination')
  return []
}

/** The destination has a policy that is not carried over, which is reported: its other fields are not. */
function leaveOut(source: ImportSource): [] {
  for (const name of source.names) source.take(name)
  return []
}

interface Common {
  readonly weight: number | undefined
  readonly policies: Readonly<Record<string, unknown>> | undefined
}

function importAi(ai: ImportSource, { weight, policies }: Common): object[] {
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
  const provider = source.withHarmless(...harmlessFields.provider).object('provider')
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
  const url = /^https?:\/\//.test(host) ? URL.parse(host) : null
  const [port, path] = url === null ? [fields.number('port'), fields.text('path')] : []
  const isTls = url?.protocol === 'https:'
  return {
    host: url?.hostname ?? host,
    port: url === null ? (port ?? 80) : Number(url.port || (isTls ? 443 : 80)),
    path: url === null ? path : url.pathname === '/' ? undefined : url.pathname + url.search,
    isTls,
    isSse: kind === 'sse',
  }
}

function loseTarget(target: ImportSource): [] {
  target.loseAll(`${target.has('openapi') ? 'openapi' : 'its transport'} is not supported by import`)
  return []
}

/** A server that speaks stdio: it gets the environment of the gateway, as in agentgateway. */
function readProgram(target: ImportSource): object | undefined {
  const stdio = target.object('stdio')
  const command = stdio?.text('cmd')
  if (stdio === undefined || command === undefined) return undefined
  const env = stdio.object('env')
  const variables = Object.fromEntries((env?.names ?? []).map((name) => [name, env?.text(name) ?? '']))
  const isCleared = stdio.flag('clear_env') === true
  return { command: [command, ...(stdio.texts('args') ?? [])], ...(env && { env: variables }), ...(!isCleared && { inheritEnv: true }) }
}

function importMcp(mcp: ImportSource, common: Common): object[] {
  const targets = mcp.list('targets').flatMap((target) => {
    const name = toName(target.text('name') ?? 'target')
    const address = readTarget(target)
    const own = importOwnPolicies(target.object('policies'))
    if (own === undefined) return leaveOut(target)
    const program = readProgram(target)
    if (program !== undefined) return [{ name, ...program }]
    if (address === undefined) return loseTarget(target)
    const { host, port, path, isTls, isSse } = address
    const policies = compact({ ...(isTls && { tls: {} }), ...own })
    return [{ name, static: compact({ host, port, path, protocol: isSse ? 'SSE' : undefined, policies }) }]
  })
  if (targets.length === 0) return []
  const sessionRouting = choose(mcp, 'statefulMode', { stateful: undefined, stateless: 'Stateless' })
  importOriginCheck(mcp)
  const prefixMode = choose(mcp, 'prefixMode', { always: 'Always', conditional: 'Conditional' })
  return [compact({ mcp: compact({ targets, sessionRouting, prefixMode }), ...common }) ?? {}]
}

/** Our name of a value. Another value is reported, and closes. */
function choose<T>(source: ImportSource, name: string, names: Readonly<Record<string, T>>): T | undefined {
  const value = source.take(name)
  if (typeof value === 'string' && Object.hasOwn(names, value)) return names[value]
  if (value !== undefined) source.reject(name)
  return undefined
}

/** MCP backends reject foreign origins by default. */
function importOriginCheck(mcp: ImportSource): void {
  mcp.withHarmless(...harmlessFields.mcp)
  if (mcp.flag('dnsRebindingProtection') === false) mcp.lose('dnsRebindingProtection', 'stays on: requests of foreign origins are rejected')
}

/** Section `mcp`: as the short form, or as a port of the long form if it has policies that the short form lacks. */
function importServers(mcp: ImportSource | undefined): { readonly mcp?: Record<string, unknown>; readonly bind?: Bind } | undefined {
  if (mcp === undefined) return undefined
  const policies = importRoutePolicies(mcp.object('policies'))
  const port = mcp.number('port')
  if (compact({ ...policies.filters, timeouts: policies.timeouts, retry: policies.retry, ...policies.backend }) !== undefined) {
    const backends = importMcp(mcp, { weight: undefined, policies: compact({ ...policies.backend }) })
    const { filters, timeouts, retry, traffic } = policies
    const route: Record<string, unknown> = compact({ name: 'mcp', filters, timeouts, retry, policies: traffic, backends }) ?? {}
    mcp.closedBy(() => closePolicies(route))
    return { bind: { port: port ?? 3000, listeners: [{ name: 'mcp', routes: [route] }] } }
  }
  const servers: Record<string, unknown> = {}
  for (const target of mcp.list('targets')) {
    const name = toName(target.text('name') ?? 'target')
    const address = readTarget(target)
    const own = importOwnPolicies(target.object('policies'))
    const program = readProgram(target)
    if (own === undefined) leaveOut(target)
    else if (program !== undefined) servers[name] = program
    else if (address === undefined) loseTarget(target)
    else {
      const { path = '', isTls, isSse } = address
      const url = `${isTls ? 'https' : 'http'}://${address.host}:${address.port}${path}`
      servers[name] = compact({ url, protocol: isSse ? 'SSE' : undefined, policies: compact({ ...own }) })
    }
  }
  importOriginCheck(mcp)
  if (Object.keys(servers).length === 0) return leaveSection(mcp, 'has no server that can be carried over')
  const imported: Record<string, unknown> = compact({ port, policies: policies.traffic, ...servers }) ?? {}
  mcp.closedBy(() => closePolicies(imported))
  return { mcp: imported }
}
