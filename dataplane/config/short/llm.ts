import { LLM_PORT } from '#api/config/short-form-ports.ts'
import { presets } from '#api/llm-presets.ts'
import { chatRoutes } from '#api/llm-routes.ts'
import type {
  AIModel,
  AIModelShadow,
  AIModelTarget,
  BackendFull,
  FileBackend,
  FileRoute,
  GatewayRef,
  NamedLLMProvider,
  Policy,
  RouteMatch,
  Secret,
  ShortLLM,
  ShortLLMModel,
  ShortModelShadow,
  ShortModelTarget,
} from '#gen/config/types.ts'
import { readListen } from './listen.ts'
import type { Expansion, Path } from './expansion.ts'
import { ownHeaders } from '../../http/own-headers.ts'
import { findModelCircles, kindOf, nameProviders, type Models, type NamedModel, type ProviderKind } from './models.ts'
import { parseUpstreamUrl } from './upstream-url.ts'
import { formatPath, type SchemaProblem } from '../validate.ts'

/** Header with the model of the request. The transformation before routing sets or removes it, so that clients cannot choose its value. */
const MODEL_HEADER = ownHeaders.model
/** Routing needs the entire body, and requests with images are large. The limit is that of LLM backends (llm.md §2 step 6). */
const MAX_BODY_BYTES = 32 * 1024 * 1024
const HTTPS_PORT = 443
/** Limit of the body of a direct response. */
const MAX_RESPONSE_CHARACTERS = 4096

/** Fields that some or all providers of the short form have. */
interface ShortProvider {
  readonly apiKey?: string | undefined
  readonly url?: string | undefined
  readonly accessKeyId?: string | undefined
  readonly secretAccessKey?: string | undefined
  readonly sessionToken?: string | undefined
}

/** Paths of APIs whose errors have a format of their own: Anthropic's and Gemini's. */
const messagesPath = { type: 'PathPrefix', value: '/v1/messages' } as const
const geminiPath = { type: 'PathPrefix', value: '/v1beta' } as const

type Report = (path: Path, text: string) => void
/** Reports a problem of a field of the provider; the empty text stands for the provider. */
type ReportModel = (field: string, text: string) => void

export interface LlmOptions {
  /** Gateway of the listener. */
  readonly gateway: GatewayRef
  /** Whether the file sets `frontend.http` of the Gateway, which then determines the limit of bodies. */
  readonly hasHttpSettings: boolean
  /** The models with the real names of vendors. */
  readonly written: ShortLLM['models']
  /** Where the models are written: `llm.models` or `models`. */
  readonly at: Path
}

/** Expands the section `llm`: one listener, a route and a backend for each model, and routes for the list of models and for unknown models. */
export function expandLlm(section: ShortLLM, { gateway, hasHttpSettings, written, at }: LlmOptions): Expansion {
  const { tls, policies } = section
  const [root = ''] = at.map(String)
  const models = nameProviders(section.models, written, at)
  const problems: SchemaProblem[] = []
  const report: Report = (path, text) => void problems.push({ path, text, code: 'PX3008' })
  const { port = LLM_PORT, addresses } = readListen(section, (field, text) => report([root, field], text))
  const names = Object.keys(models)
    .filter((name) => models[name]?.model.visibility !== 'Internal')
    // An exact name wins, then the longest pattern.
    .toSorted((a, b) => Number(isPattern(a, models)) - Number(isPattern(b, models)) || (isPattern(a, models) ? b.length - a.length : 0))
  for (const { path, text } of findModelCircles(models, formatPath(at))) report(path, text)
  for (const entry of Object.values(models))
    if (entry.model.shadow !== undefined && !isVirtual(entry))
      report([...entry.path, 'shadow'], 'needs to or rules; give the provider a model of its own, and name that in to')
  const reportAt =
    ({ path, provider = '' }: NamedModel): ReportModel =>
    (field, text) =>
      report([...path, provider, ...(field === '' ? [] : [field])], text)
  if (policies?.phase === 'PreRouting' && policies.transformation !== undefined)
    report([root, 'policies', 'transformation'], 'is not available in phase PreRouting, where llm uses it to choose the model; use phase PostRouting')
  const expanded = Object.entries(models).map(([name, entry]) => ({
    path: entry.path,
    ...(isVirtual(entry) ? { backend: expandVirtual(name, models) } : expandModel(entry, gateway, reportAt(entry))),
  }))
  const routes = [...names.map((name) => routeToModel(name, models)), routeToList(root), ...routesToErrors(root, names)]
  return {
    binds: [
      {
        path: [root, 'port'],
        value: { port, ...(addresses && { addresses }), listeners: [{ name: root, ...(tls && { tls }), ...(policies && { policies }), routes }] },
      },
    ],
    backends: [...expanded.map(({ path, backend }) => ({ path, value: backend })), { path: at, value: listBackend(root, models) }],
    secrets: expanded.flatMap((one) => ('secret' in one && one.secret !== undefined ? [{ path: one.path, value: one.secret }] : [])),
    policies: [routingPolicy(root, gateway), ...(hasHttpSettings ? [] : [bodyPolicy(root, gateway)])].map((value) => ({ path: [root], value })),
    problems,
  }
}

/** Names of models with targets may be patterns. */
const isPattern = (name: string, models: Models): boolean => name.includes('*') && isVirtual(models[name])

function expandModel(
  { model, backend: name }: NamedModel,
  gateway: GatewayRef,
  report: ReportModel,
): { readonly backend: FileBackend; readonly secret?: Secret } {
  const kind = kindOf(model) ?? 'providerA'
  const { apiKey, url: given, accessKeyId, secretAccessKey, sessionToken, settings } = splitProvider(model[kind] ?? {})
  const url = given ?? usualUrl(model.preset)
  const address = url === undefined ? undefined : parseUpstreamUrl(url)
  if (typeof address === 'string') report('url', address)
  const target = typeof address === 'object' ? address : undefined
  if (target !== undefined && target.query !== '') report('url', 'contains a query, which the paths of the API do not have; remove it')
  if (model.preset !== undefined && url === undefined && presets[model.preset.name].host === undefined)
    report('url', `is needed: ${model.preset.name} is a server of your own`)
  if (apiKey !== undefined && model.policies?.auth !== undefined) report('apiKey', 'is not used with policies.auth; remove one of them')
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) report('', 'needs both accessKeyId and secretAccessKey, or neither')
  if (accessKeyId !== undefined && apiKey !== undefined) report('apiKey', 'is not used with accessKeyId; remove one of them')
  const secret: Secret | undefined =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : {
          key: `opaque/${gateway.namespace}/${name}`,
          type: 'opaque',
          data: { accessKey: accessKeyId, secretKey: secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
        }
  const auth = authOf(kind, apiKey, secret)
  const transformation = withPath(model.policies?.transformation, target === undefined ? undefined : pathExpression(baseOf(kind, model), target.path))
  const defaults: BackendFull = { ...(target?.isTls === true && { tls: {} }), ...(auth && { auth }) }
  const backend: FileBackend = {
    name,
    ai: { provider: { ...providerOf(kind, settings), ...(target && { host: target.host, port: target.port }) } },
    policies: { ...defaults, ...model.policies, ...(transformation && { transformation }), ai: { routes: chatRoutes, ...model.policies?.ai } },
  }
  return { backend, ...(secret && { secret }) }
}

/** Separates the fields of the short form from those that a provider has in the long form too. */
function splitProvider(provider: ShortProvider): ShortProvider & { readonly settings: Readonly<Record<string, unknown>> } {
  const { apiKey, url, accessKeyId, secretAccessKey, sessionToken, ...settings } = provider
  return { apiKey, url, accessKeyId, secretAccessKey, sessionToken, settings }
}

/** Credentials of a provider. Those of clouds are named, because a provider with an own URL has none by default (llm.md §16). */
function authOf(kind: ProviderKind, apiKey: string | undefined, secret: Secret | undefined): BackendFull['auth'] {
  if (apiKey !== undefined) return { key: apiKey }
  if (kind === 'providerE') return { cloudC: { type: 'AccessToken' } }
  if (kind === 'providerF') return { cloudA: secret === undefined ? {} : { secretRef: { secret: secret.key } } }
  return undefined
}

/** A provider in the long form. */
function providerOf(kind: ProviderKind, settings: Readonly<Record<string, unknown>>): object {
  if (kind !== 'preset') return { [kind]: settings }
  const { name, ...rest } = settings
  return { preset: name, ...rest }
}

/** Where a server of the user's own listens by default. */
function usualUrl(preset: ShortLLMModel['preset']): string | undefined {
  const { host, port } = preset === undefined ? {} : presets[preset.name]
  return preset === undefined || host !== undefined || port === HTTPS_PORT ? undefined : `http://localhost:${port}`
}

/**
 * The path that URLs of a provider may end with, as its SDK takes them, and whether it is that of URLs with another path too: without it, the path of the
 * URL is put in front.
 */
function baseOf(kind: ProviderKind, { preset }: ShortLLMModel): { readonly base: string; readonly isReplaced: boolean } {
  if (preset !== undefined) return { base: presets[preset.name].base, isReplaced: true }
  return { base: kind === 'providerA' || kind === 'providerC' ? '/v1' : '', isReplaced: kind === 'providerA' }
}

/** Expression for the path of requests to a URL; undefined for the paths of the provider. */
function pathExpression({ base, isReplaced }: ReturnType<typeof baseOf>, urlPath: string): string | undefined {
  const path = urlPath.replace(/\/+$/, '')
  const hasBase = base !== '' && path.endsWith(base)
  const prefix = JSON.stringify(hasBase ? path.slice(0, -base.length) : path)
  if (prefix === '""') return undefined
  return isReplaced && !hasBase ? `${prefix} + request.pathAndQuery.stripPrefix(${JSON.stringify(base)})` : `${prefix} + request.pathAndQuery`
}

/** Adds the path to the transformation of the model's policies. */
function withPath(own: BackendFull['transformation'], path: string | undefined): BackendFull['transformation'] {
  if (path === undefined) return own
  return { ...own, request: { ...own?.request, set: [{ name: ':path', value: path }, ...(own?.request?.set ?? [])] } }
}

/**
 * Matches of a route to a model or to an error. All have the same method and paths: they take precedence over headers, which would decide only among equals.
 */
const matchesOf = (headers: RouteMatch['headers'] = []): RouteMatch[] =>
  [{}, { path: messagesPath }, { path: geminiPath }].map((match) => ({ ...match, method: 'POST', ...(headers.length > 0 && { headers }) }))

function routeToModel(name: string, models: Models): FileRoute {
  const isPatternName = isPattern(name, models)
  const backend = models[name]?.backend ?? ''
  const value = isPatternName ? name.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '.*') : name
  return {
    name: backend,
    matches: matchesOf([{ name: MODEL_HEADER, type: isPatternName ? 'RegularExpression' : 'Exact', value }]),
    filters: { requestHeaders: [{ remove: [MODEL_HEADER] }] },
    backends: [{ backend }],
  }
}

function routeToList(root: string): FileRoute {
  const paths = ['/v1/models', '/models', '/v1beta/models']
  return {
    name: root,
    matches: paths.map((value) => ({ path: { type: 'PathPrefix', value }, method: 'GET' })),
    backends: [{ backend: root }],
  }
}

/** The backend that lists the models of all providers. It responds by itself; no provider is called. */
function listBackend(root: string, models: Models): FileBackend {
  const policies = { ai: { routes: { '/models': 'Models', '*': 'Models' } } } as const
  const listed = Object.entries(models).filter(([, { model }]) => model.visibility !== 'Internal')
  if (listed.length < Object.keys(models).length || listed.some(([, entry]) => isVirtual(entry)))
    return { name: root, ai: { models: listed.map(([name]) => ({ name, to: [targetOf({ model: name }, models)] })) }, policies }
  const byKind = Map.groupBy(Object.entries(models), ([, { model }]) => model.preset?.name ?? kindOf(model) ?? 'providerA')
  const providers = Array.from(byKind, ([group, entries]): NamedLLMProvider => {
    const model: ShortLLMModel = entries[0]?.[1].model ?? {}
    const kind = kindOf(model) ?? 'providerA'
    const { model: _, ...settings } = splitProvider(model[kind] ?? {}).settings
    // Nothing is sent there.
    const place = model.preset === undefined || presets[model.preset.name].host !== undefined ? undefined : { host: 'localhost', port: HTTPS_PORT }
    return {
      name: group.toLowerCase(),
      ...providerOf(kind, settings),
      ...place,
      policies: { ai: { modelAliases: Object.fromEntries(entries.map(([name]) => [name, name])) } },
    }
  })
  return { name: root, ai: { groups: [{ providers }] }, policies }
}

/** Routes for requests without a known model. Errors have the format of the API that is called. */
function routesToErrors(root: string, names: readonly string[]): FileRoute[] {
  const unknown = `The model of this request does not exist. Models: ${listNames(names)}`
  const missing = 'The request body is not JSON, is too large, or has no field "model".'
  const [any = {}, messages = {}, gemini = {}] = matchesOf([{ name: MODEL_HEADER, type: 'RegularExpression', value: '.*' }])
  const [none = {}, noneOfMessages = {}, noneOfGemini = {}] = matchesOf()
  const openai = (code: string | null, message: string): object => ({ error: { message, type: 'invalid_request_error', param: 'model', code } })
  const google = (code: number, message: string, status: string): object => ({ error: { code, message, status } })
  const anthropic = (type: string, message: string): object => ({ type: 'error', error: { type, message } })
  const routeToError = (name: string, match: RouteMatch, status: number, body: object): FileRoute => ({
    name: `${root}-${name}`,
    matches: [match],
    filters: { responseHeaders: [{ set: [{ name: 'content-type', value: 'application/json' }] }] },
    policies: { directResponse: { status, body: JSON.stringify(body) } },
  })
  return [
    routeToError('unknown-model', any, 404, openai('model_not_found', unknown)),
    routeToError('unknown-model-messages', messages, 404, anthropic('not_found_error', unknown)),
    routeToError('unknown-model-gemini', gemini, 404, google(404, unknown, 'NOT_FOUND')),
    routeToError('no-model', none, 400, openai(null, missing)),
    routeToError('no-model-messages', noneOfMessages, 400, anthropic('invalid_request_error', missing)),
    routeToError('no-model-gemini', noneOfGemini, 400, google(400, missing, 'INVALID_ARGUMENT')),
  ]
}

/** Names of models for a message, as many as the body of a direct response can have. */
function listNames(names: readonly string[]): string {
  const shown: string[] = []
  let length = 0
  for (const name of names) {
    length += JSON.stringify(name).length + 2
    if (length > MAX_RESPONSE_CHARACTERS - 400) return `${shown.join(', ')}, ...`
    shown.push(name)
  }
  return shown.join(', ')
}

const policyName = (root: string, gateway: GatewayRef): Policy['policy'] => ({ kind: 'ProxyPolicy', namespace: gateway.namespace, name: root })

/** The model of a request: Gemini's clients name it in the path. */
const MODEL =
  'request.path.matches("/models/.+:[A-Za-z]+$") ? request.path.regexReplace("^.*?/models/(.+):[A-Za-z]+$", "$1").replace("%2F", "/").replace("%3A", ":") : string(json(request.body).model)'

/** Copies the model of the request to a header before routing. The oldest policy, so that no other one replaces it. */
const routingPolicy = (root: string, gateway: GatewayRef): Policy => ({
  key: `traffic/${gateway.namespace}/${root}:0`,
  policy: policyName(root, gateway),
  creationTimestamp: '1970-01-01T00:00:00Z',
  target: { kind: 'Gateway', ...gateway, section: root },
  traffic: { phase: 'PreRouting', transformation: { request: { set: [{ name: MODEL_HEADER, value: MODEL }] } } },
})

/** Raises the limit of bodies that are buffered. The youngest policy, so that those of a config stream take precedence. */
const bodyPolicy = (root: string, gateway: GatewayRef): Policy => ({
  key: `frontend/${gateway.namespace}/${root}:0`,
  policy: policyName(root, gateway),
  creationTimestamp: '9999-12-31T23:59:59Z',
  target: { kind: 'Gateway', ...gateway },
  frontend: { http: { maxBufferSize: MAX_BODY_BYTES } },
})

/** Whether a model has targets instead of a provider. */
const isVirtual = (entry: NamedModel | undefined): boolean => entry?.model.to !== undefined || entry?.model.rules !== undefined

/** The backend of a model with targets: one model, whose targets are the backends of other models. */
function expandVirtual(name: string, models: Models): FileBackend {
  const { backend = '', model: { to, rules, fallback, by, sticky, shadow, policies } = {} } = models[name] ?? {}
  const toTargets = (targets: readonly ShortModelTarget[]): AIModelTarget[] => targets.map((target) => targetOf(target, models))
  const model: AIModel = {
    name,
    ...(to && { to: toTargets(to) }),
    ...(rules && { rules: rules.map((rule) => ({ ...rule, to: toTargets(rule.to) })) }),
    ...(fallback && { fallback: fallback.map(({ on = [], to: others = [] }) => ({ on, to: toTargets(others) })) }),
    ...(by && { by }),
    ...(sticky !== undefined && { sticky }),
    ...(shadow && { shadow: shadowOf(shadow, models) }),
  }
  return { name: backend, ai: { models: [model] }, policies: { ...policies, ai: { routes: chatRoutes, ...policies?.ai } } }
}

function shadowOf({ to, judge, ...rest }: ShortModelShadow, models: Models): AIModelShadow {
  return { ...rest, to: targetOf(to, models), ...(judge && { judge: { ...judge, to: targetOf(judge.to, models) } }) }
}

/** A target in the long form. A provider without a model of its own is asked for the model by its name here, or by that of the request if it has none. */
function targetOf({ model = '', weight }: ShortModelTarget, models: Models): AIModelTarget {
  const isNamed = models[model]?.isInline !== true && ownModel(models[model]?.model) === undefined
  return { backendRef: { backend: models[model]?.backend ?? model }, ...(isNamed && { model }), ...(weight !== undefined && { weight }) }
}

function ownModel(model: ShortLLMModel | undefined): string | undefined {
  const { providerA, providerB, providerC, providerD, providerE, providerF, preset, custom } = model ?? {}
  return [providerA, providerC, providerD, providerE, providerF, preset, custom].find((provider) => provider !== undefined)?.model ?? providerB?.deploymentName
}
