import { parseDuration } from '#api/duration.ts'
import { harmlessFields } from './agentgateway-fields.ts'
import { compact, REJECT_ALL, type ImportSource } from './source.ts'

/** Policies of a route or a backend, by the place where the config file has them. */
export interface RoutePolicies {
  readonly filters?: Readonly<Record<string, unknown>> | undefined
  readonly timeouts?: Readonly<Record<string, unknown>> | undefined
  readonly retry?: Readonly<Record<string, unknown>> | undefined
  readonly traffic?: Readonly<Record<string, unknown>> | undefined
  readonly backend: Readonly<Record<string, unknown>>
}

/** Policies that are carried over, of routes and of destinations. */
const forDestinations: readonly string[] = ['ai', 'backendAuth', 'backendTLS', 'mcpAuthorization']
const forRoutes: readonly string[] = [
  ...forDestinations,
  'authorization',
  'cors',
  'csrf',
  'directResponse',
  'localRateLimit',
  'requestHeaderModifier',
  'requestRedirect',
  'responseHeaderModifier',
  'retry',
  'timeout',
  'urlRewrite',
]
const harmless: ReadonlySet<string> = new Set(harmlessFields.policies)

const routeTypes: Readonly<Record<string, string>> = {
  completions: 'Completions',
  messages: 'Messages',
  responses: 'Responses',
  embeddings: 'Embeddings',
  passthrough: 'Passthrough',
}

/**
 * Policies of a backend, an MCP server or an LLM provider. Undefined if one that admits or rejects requests is not supported: the destination has to be left
 * out, because it would be open.
 */
export function importOwnPolicies(source: ImportSource | undefined): RoutePolicies['backend'] | undefined {
  if (source === undefined) return {}
  source.withHarmless(...harmlessFields.policies)
  const lost = protectiveOf(source, forDestinations)
  for (const name of lost) source.lose(name, 'is not carried over, and the destination is left out')
  const ai = source.object('ai')
  const isGuarded = ai?.has('promptGuard') === true
  if (isGuarded) ai?.lose('promptGuard', 'is not carried over, and the destination is left out')
  return lost.length > 0 || isGuarded ? undefined : importBackendPolicies(source)
}

/** Policies of a section as traffic policies, for a listener or a short form, which have no filters. */
export function asTraffic({ filters = {}, timeouts, retry, traffic }: RoutePolicies, source: ImportSource | undefined): RoutePolicies['traffic'] {
  const { cors, requestHeaders, responseHeaders, ...others } = filters as Record<string, readonly object[] | undefined>
  for (const name of Object.keys(others))
    source?.lose(name === 'redirect' ? 'requestRedirect' : name, 'has no equivalent for all routes of a port; add it to each route')
  return compact({
    ...traffic,
    cors,
    headerModifiers: compact({ request: requestHeaders?.[0], response: responseHeaders?.[0] }),
    timeouts: timeouts && compact({ request: timeouts['request'] }),
    retry,
  })
}

/** Policies that may protect the route or destination and are not carried over. */
const protectiveOf = (source: ImportSource, known: readonly string[]): string[] =>
  source.names.filter((name) => source.has(name) && !known.includes(name) && !harmless.has(name))

export function importRoutePolicies(source: ImportSource | undefined): RoutePolicies {
  if (source === undefined) return { backend: {} }
  source.withHarmless(...harmlessFields.policies)
  const backend = importBackendPolicies(source)
  const jwt = importJwt(source)
  const rules = importRules(source, 'authorization')
  const lost = protectiveOf(source, forRoutes).filter((name) => name !== 'jwtAuth' || jwt === undefined)
  for (const name of lost) source.reject(name)
  const timeout = source.object('timeout')
  const retry = source.object('retry')?.withHarmless(...harmlessFields.retry)
  const direct = source.object('directResponse')
  const limits = source.list('localRateLimit').flatMap(importLimit)
  return {
    filters: importFilters(source),
    timeouts: timeout && compact({ request: timeout.text('requestTimeout'), backendRequest: timeout.text('backendRequestTimeout') }),
    retry: retry && compact({ attempts: retry.number('attempts'), backoff: retry.text('backoff'), codes: retry.texts('codes')?.map(Number) }),
    traffic: compact({
      authorization: rules,
      jwtAuthentication: jwt,
      rateLimit: limits.length > 0 ? { local: limits } : undefined,
      directResponse: direct && compact({ status: direct.number('status'), body: direct.text('body') }),
      csrf: source.has('csrf') ? { additionalOrigins: source.object('csrf')?.texts('additionalOrigins') ?? [] } : undefined,
    }),
    backend,
  }
}

function importBackendPolicies(source: ImportSource): Record<string, unknown> {
  const auth = source.object('backendAuth')?.withHarmless(...harmlessFields.backendAuth)
  const key = auth && (importSecret(auth, 'key') ?? importSecret(auth.object('key'), 'value'))
  const tls = source.object('backendTLS')?.withHarmless(...harmlessFields.backendTls)
  const insecure = tls?.flag('insecure') === true ? 'All' : tls?.flag('insecureHost') === true ? 'Hostname' : undefined
  const ai = source.object('ai')?.withHarmless(...harmlessFields.ai)
  const routes = ai?.object('routes')
  const types = (routes?.names ?? []).flatMap((path) => {
    const type = routeTypes[routes?.text(path) ?? '']
    if (type === undefined) routes?.lose(path, 'has a type that is not supported')
    return type === undefined ? [] : [[path, type]]
  })
  const aliases = ai?.object('modelAliases')
  const settings =
    ai &&
    compact({
      routes: types.length > 0 ? Object.fromEntries(types) : undefined,
      modelAliases: aliases && Object.fromEntries(aliases.names.map((name) => [name, aliases.text(name)])),
    })
  const mcpRules = importRules(source, 'mcpAuthorization')
  return (
    compact({
      auth: key !== undefined ? { key } : auth?.object('passthrough') !== undefined ? { passthrough: {} } : undefined,
      tls: tls && { ...compact({ insecureSkipVerify: insecure, sni: tls.text('hostname') }) },
      ai: settings,
      mcp: mcpRules && { authorization: mcpRules },
    }) ?? {}
  )
}

/** A secret of the config, or of a file. */
export function importSecret(source: ImportSource | undefined, name: string): string | undefined {
  const own = source?.text(name)
  if (own !== undefined || source?.has(name) !== true) return own
  const file = source.object(name)?.text('file')
  return file === undefined ? undefined : `\${file:${file}}`
}

/** CEL rules with one action; several actions cannot be combined in one policy of a route. */
function importRules(source: ImportSource, name: string): object | undefined {
  if (!source.has(name)) return undefined
  const section = source.object(name)
  const texts = section?.texts('rules')
  if (texts !== undefined) return { policy: { matchExpressions: texts } }
  const rules = section?.list('rules') ?? []
  const byAction = { Allow: [] as string[], Deny: [] as string[], Require: [] as string[] }
  for (const rule of rules)
    for (const action of ['Allow', 'Deny', 'Require'] as const) {
      const expression = rule.text(action.toLowerCase())
      if (expression !== undefined) byAction[action].push(expression)
    }
  const used = Object.entries(byAction).filter(([, list]) => list.length > 0)
  const [only] = used
  if (used.length === 1 && only !== undefined) return { action: only[0], policy: { matchExpressions: only[1] } }
  source.reject(name)
  return REJECT_ALL.authorization
}

/** Tokens are checked with a key set of a file, by a placeholder, or of the config. Key sets at a URL need an operator. */
function importJwt(source: ImportSource): object | undefined {
  const jwt = source.object('jwtAuth')
  if (jwt === undefined) return undefined
  const providers = jwt.has('providers') ? jwt.list('providers') : [jwt]
  const mode = { optional: 'Optional', permissive: 'Permissive', strict: 'Strict' }[jwt.text('mode') ?? 'strict']
  const imported = providers.flatMap((provider) => {
    const jwks = provider.object('jwks')
    const file = jwks?.text('file')
    const inline = file === undefined ? provider.text('jwks') : `\${file:${file}}`
    const [issuer, audiences] = [provider.text('issuer'), provider.texts('audiences')]
    return inline === undefined || issuer === undefined ? [] : [compact({ issuer, audiences, jwks: { inline } })]
  })
  return imported.length === providers.length && imported.length > 0 ? compact({ mode, providers: imported }) : undefined
}

function importLimit(limit: ImportSource): object[] {
  const perFill = limit.number('tokensPerFill') ?? 1
  const seconds = (parseDuration(limit.text('fillInterval') ?? '') ?? 0) / 1000
  const unit = { 1: 'Seconds', 60: 'Minutes', 3600: 'Hours' }[seconds]
  const most = limit.number('maxTokens') ?? perFill
  const what = limit.text('type') ?? 'requests'
  if (what !== 'requests' && what !== 'tokens') {
    limit.reject('type')
    return []
  }
  if (unit !== undefined) return [{ [what]: perFill, unit, ...(most > perFill && { burst: most - perFill }) }]
  // The next longer unit has the same rate over time.
  const [longer, length] = seconds < 60 ? (['Minutes', 60] as const) : (['Hours', 3600] as const)
  const amount = Math.floor((perFill * length) / seconds)
  if (!(seconds > 0) || amount < 1) {
    limit.reject('fillInterval')
    return []
  }
  limit.lose('fillInterval', `is not 1s, 1m or 1h; the limit is ${amount} ${what} in 1 ${longer.slice(0, -1).toLowerCase()}`)
  return [{ [what]: amount, unit: longer, ...(most > amount && { burst: most - amount }) }]
}

const toPairs = (headers: ImportSource | undefined): object[] | undefined => {
  const pairs = (headers?.names ?? []).map((name) => ({ name, value: headers?.text(name) ?? '' }))
  return pairs.length === 0 ? undefined : pairs
}

function importFilters(source: ImportSource): Record<string, unknown> | undefined {
  const modifier = (name: string): object[] | undefined => {
    const headers = source.object(name)
    const found = headers && compact({ add: toPairs(headers.object('add')), set: toPairs(headers.object('set')), remove: headers.texts('remove') })
    return found && [found]
  }
  const cors = source.object('cors')
  const maxAge = cors?.text('maxAge')
  const seconds = maxAge === undefined ? undefined : /^\d+$/.test(maxAge) ? Number(maxAge) : Math.round((parseDuration(maxAge) ?? 5000) / 1000)
  const redirect = source.object('requestRedirect')
  const rewrite = source.object('urlRewrite')
  const [to, host] = [importAuthority(redirect), importAuthority(rewrite)]
  if (host.port !== undefined) rewrite?.lose('authority', 'has a port, which is left out of the Host header')
  return compact({
    requestHeaders: modifier('requestHeaderModifier'),
    responseHeaders: modifier('responseHeaderModifier'),
    redirect:
      redirect &&
      compact({
        scheme: redirect.text('scheme'),
        hostname: to.hostname?.toLowerCase(),
        port: to.port,
        path: importPath(redirect),
        statusCode: redirect.number('status') ?? 302,
      }),
    urlRewrite: rewrite && compact({ hostname: host.hostname?.toLowerCase(), path: importPath(rewrite) }),
    cors:
      cors &&
      compact({
        allowOrigins: cors.texts('allowOrigins'),
        allowMethods: cors.texts('allowMethods'),
        allowHeaders: cors.texts('allowHeaders'),
        exposeHeaders: cors.texts('exposeHeaders'),
        allowCredentials: cors.flag('allowCredentials'),
        maxAge: seconds,
      }),
  })
}

function importAuthority(source: ImportSource | undefined): { readonly hostname?: string | undefined; readonly port?: number | undefined } {
  const authority = source?.object('authority')
  const full = authority?.text('full')
  const [host, port] = (full ?? authority?.text('host') ?? '').split(/:(?=\d+$)/)
  const own = full === undefined ? authority?.number('port') : undefined
  return { hostname: host === '' ? undefined : host, port: port === undefined ? own : Number(port) }
}

function importPath(source: ImportSource): object | undefined {
  const path = source.object('path')
  const full = path?.text('full')
  const prefix = full === undefined ? path?.text('prefix') : undefined
  if (full !== undefined) return { type: 'ReplaceFullPath', value: full }
  return prefix === undefined ? undefined : { type: 'ReplacePrefixMatch', value: prefix }
}
