import { LLM_PORT } from '#api/config/short-form-ports.ts'
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
import { parseUpstreamUrl } from './upstream-url.ts'
import type { SchemaProblem } from '../validate.ts'

/** Name of the listener, and of the route and backend that list the models. Those of a model are `llm.<model>`. */
const NAME = 'llm'
/** Header with the model of the request. The transformation before routing sets or removes it, so that clients cannot choose its value. */
const MODEL_HEADER = ownHeaders.model
/** Types of requests by path, as SDKs call them. Other requests are rejected by the backend unless they are chat completions. */
const routeTypes = {
  '/chat/completions': 'Completions',
  '/responses': 'Responses',
  '/embeddings': 'Embeddings',
  '/messages': 'Messages',
  '/messages/count_tokens': 'TokenCount',
  ':generateContent': 'Gemini',
  ':streamGenerateContent': 'Gemini',
  ':countTokens': 'Gemini',
  ':embedContent': 'Gemini',
  ':batchEmbedContents': 'Gemini',
} as const
/** Routing needs the entire body, and requests with images are large. The limit is that of LLM backends (llm.md §2 step 6). */
const MAX_BODY_BYTES = 32 * 1024 * 1024
/** Limit of the body of a direct response. */
const MAX_RESPONSE_CHARACTERS = 4096

const providerKinds = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF'] as const
type ProviderKind = (typeof providerKinds)[number]

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

type Models = ShortLLM['models']
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
}

/** Expands the section `llm`: one listener, a route and a backend for each model, and routes for the list of models and for unknown models. */
export function expandLlm(section: ShortLLM, { gateway, hasHttpSettings, written }: LlmOptions): Expansion {
  const { tls, models, policies } = section
  const problems: SchemaProblem[] = []
  const report: Report = (path, text) => void problems.push({ path, text, code: 'PX3008' })
  const { port = LLM_PORT, addresses } = readListen(section, (field, text) => report([NAME, field], text))
  const names = Object.keys(models)
    .filter((name) => models[name]?.visibility !== 'Internal')
    // An exact name wins, then the longest pattern.
    .toSorted((a, b) => Number(isPattern(a, models)) - Number(isPattern(b, models)) || (isPattern(a, models) ? b.length - a.length : 0))
  for (const { path, text } of findModelCircles(models)) report([NAME, 'models', ...path], text)
  for (const [name, model] of Object.entries(models))
    if (model.shadow !== undefined && !isVirtual(model))
      report([NAME, 'models', name, 'shadow'], 'needs to or rules; give the provider a model of its own, and name that in to')
  const reportAt = (name: string): ReportModel => {
    const provider = Object.keys(written[name] ?? {}).find((field) => field !== 'policies') ?? ''
    return (field, text) => report([NAME, 'models', name, provider, ...(field === '' ? [] : [field])], text)
  }
  if (policies?.phase === 'PreRouting' && policies.transformation !== undefined)
    report([NAME, 'policies', 'transformation'], 'is not available in phase PreRouting, where llm uses it to choose the model; use phase PostRouting')
  const expanded = Object.entries(models).map(([name, model]) => ({
    path: [NAME, 'models', name],
    ...(isVirtual(model) ? { backend: expandVirtual(name, models) } : expandModel(name, model, gateway, reportAt(name))),
  }))
  const routes = [...names.map((name) => routeToModel(name, isPattern(name, models))), routeToList(), ...routesToErrors(names)]
  return {
    binds: [
      {
        path: [NAME, 'port'],
        value: { port, ...(addresses && { addresses }), listeners: [{ name: NAME, ...(tls && { tls }), ...(policies && { policies }), routes }] },
      },
    ],
    backends: [...expanded.map(({ path, backend }) => ({ path, value: backend })), { path: [NAME, 'models'], value: listBackend(models) }],
    secrets: expanded.flatMap((one) => ('secret' in one && one.secret !== undefined ? [{ path: one.path, value: one.secret }] : [])),
    policies: [routingPolicy(gateway), ...(hasHttpSettings ? [] : [bodyPolicy(gateway)])].map((value) => ({ path: [NAME], value })),
    problems,
  }
}

/** Names of models with targets may be patterns. */
const isPattern = (name: string, models: ShortLLM['models']): boolean => name.includes('*') && isVirtual(models[name])

function expandModel(
  name: string,
  model: ShortLLMModel,
  gateway: GatewayRef,
  report: ReportModel,
): { readonly backend: FileBackend; readonly secret?: Secret } {
  const kind = kindOf(model)
  const { apiKey, url, accessKeyId, secretAccessKey, sessionToken, settings } = splitProvider(model[kind] ?? {})
  const address = url === undefined ? undefined : parseUpstreamUrl(url)
  if (typeof address === 'string') report('url', address)
  const target = typeof address === 'object' ? address : undefined
  if (target !== undefined && target.query !== '') report('url', 'contains a query, which the paths of the API do not have; remove it')
  if (apiKey !== undefined && model.policies?.auth !== undefined) report('apiKey', 'is not used with policies.auth; remove one of them')
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) report('', 'needs both accessKeyId and secretAccessKey, or neither')
  if (accessKeyId !== undefined && apiKey !== undefined) report('apiKey', 'is not used with accessKeyId; remove one of them')
  const secret: Secret | undefined =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : {
          key: `opaque/${gateway.namespace}/${backendName(name)}`,
          type: 'opaque',
          data: { accessKey: accessKeyId, secretKey: secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
        }
  const auth = authOf(kind, apiKey, secret)
  const transformation = withPath(model.policies?.transformation, target === undefined ? undefined : pathExpression(kind, target.path))
  const defaults: BackendFull = { ...(target?.isTls === true && { tls: {} }), ...(auth && { auth }) }
  const backend: FileBackend = {
    name: backendName(name),
    ai: { provider: { [kind]: settings, ...(target && { host: target.host, port: target.port }) } },
    policies: { ...defaults, ...model.policies, ...(transformation && { transformation }), ai: { routes: routeTypes, ...model.policies?.ai } },
  }
  return { backend, ...(secret && { secret }) }
}

/** Separates the fields of the short form from those that a provider has in the long form too. */
function splitProvider(provider: ShortProvider): ShortProvider & { readonly settings: Readonly<Record<string, unknown>> } {
  const { apiKey, url, accessKeyId, secretAccessKey, sessionToken, ...settings } = provider
  return { apiKey, url, accessKeyId, secretAccessKey, sessionToken, settings }
}

const kindOf = (model: ShortLLMModel): ProviderKind => providerKinds.find((kind) => model[kind] !== undefined) ?? 'providerA'

/** Credentials of a provider. Those of clouds are named, because a provider with an own URL has none by default (llm.md §16). */
function authOf(kind: ProviderKind, apiKey: string | undefined, secret: Secret | undefined): BackendFull['auth'] {
  if (apiKey !== undefined) return { key: apiKey }
  if (kind === 'providerE') return { cloudC: { type: 'AccessToken' } }
  if (kind === 'providerF') return { cloudA: secret === undefined ? {} : { secretRef: { secret: secret.key } } }
  return undefined
}

/** Base path of the APIs of OpenAI and Anthropic. */
const BASE_PATH = '/v1'

/**
 * Expression for the path of requests to a URL; undefined for the paths of the provider. The URL of OpenAI includes `/v1`, as its SDK takes it; for other
 * providers the path is put in front of theirs.
 */
function pathExpression(kind: ProviderKind, urlPath: string): string | undefined {
  const path = urlPath.replace(/\/+$/, '')
  const hasBase = path.endsWith(BASE_PATH) && (kind === 'providerA' || kind === 'providerC')
  const prefix = JSON.stringify(hasBase ? path.slice(0, -BASE_PATH.length) : path)
  if (prefix === '""') return undefined
  return kind === 'providerA' && !hasBase ? `${prefix} + request.pathAndQuery.stripPrefix(${JSON.stringify(BASE_PATH)})` : `${prefix} + request.pathAndQuery`
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

function routeToModel(name: string, isPatternName: boolean): FileRoute {
  const value = isPatternName ? name.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replace('*', '.*') : name
  return {
    name: backendName(name),
    matches: matchesOf([{ name: MODEL_HEADER, type: isPatternName ? 'RegularExpression' : 'Exact', value }]),
    filters: { requestHeaders: [{ remove: [MODEL_HEADER] }] },
    backends: [{ backend: backendName(name) }],
  }
}

function routeToList(): FileRoute {
  const paths = ['/v1/models', '/models', '/v1beta/models']
  return {
    name: NAME,
    matches: paths.map((value) => ({ path: { type: 'PathPrefix', value }, method: 'GET' })),
    backends: [{ backend: NAME }],
  }
}

/** The backend that lists the models of all providers. It responds by itself; no provider is called. */
function listBackend(models: ShortLLM['models']): FileBackend {
  const policies = { ai: { routes: { '/models': 'Models', '*': 'Models' } } } as const
  const listed = Object.entries(models).filter(([, { visibility }]) => visibility !== 'Internal')
  if (listed.length < Object.keys(models).length || listed.some(([, model]) => isVirtual(model)))
    return { name: NAME, ai: { models: listed.map(([name]) => ({ name, to: [targetOf({ model: name }, models)] })) }, policies }
  const byKind = Map.groupBy(Object.entries(models), ([, model]) => kindOf(model))
  const providers = Array.from(byKind, ([kind, entries]): NamedLLMProvider => {
    const { model: _, ...settings } = splitProvider(entries[0]?.[1][kind] ?? {}).settings
    return { name: kind.toLowerCase(), [kind]: settings, policies: { ai: { modelAliases: Object.fromEntries(entries.map(([name]) => [name, name])) } } }
  })
  return { name: NAME, ai: { groups: [{ providers }] }, policies }
}

/** Routes for requests without a known model. Errors have the format of the API that is called. */
function routesToErrors(names: readonly string[]): FileRoute[] {
  const unknown = `The model of this request does not exist. Models: ${listNames(names)}`
  const missing = 'The request body is not JSON, is too large, or has no field "model".'
  const [any = {}, messages = {}, gemini = {}] = matchesOf([{ name: MODEL_HEADER, type: 'RegularExpression', value: '.*' }])
  const [none = {}, noneOfMessages = {}, noneOfGemini = {}] = matchesOf()
  const openai = (code: string | null, message: string): object => ({ error: { message, type: 'invalid_request_error', param: 'model', code } })
  const google = (code: number, message: string, status: string): object => ({ error: { code, message, status } })
  const anthropic = (type: string, message: string): object => ({ type: 'error', error: { type, message } })
  return [
    routeToError('unknown-model', any, 404, openai('model_not_found', unknown)),
    routeToError('unknown-model-messages', messages, 404, anthropic('not_found_error', unknown)),
    routeToError('unknown-model-gemini', gemini, 404, google(404, unknown, 'NOT_FOUND')),
    routeToError('no-model', none, 400, openai(null, missing)),
    routeToError('no-model-messages', noneOfMessages, 400, anthropic('invalid_request_error', missing)),
    routeToError('no-model-gemini', noneOfGemini, 400, google(400, missing, 'INVALID_ARGUMENT')),
  ]
}

const routeToError = (name: string, match: RouteMatch, status: number, body: object): FileRoute => ({
  name: `${NAME}-${name}`,
  matches: [match],
  filters: { responseHeaders: [{ set: [{ name: 'content-type', value: 'application/json' }] }] },
  policies: { directResponse: { status, body: JSON.stringify(body) } },
})

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

const policyName = (gateway: GatewayRef): Policy['policy'] => ({ kind: 'ProxyPolicy', namespace: gateway.namespace, name: NAME })

/** The model of a request: Gemini's clients name it in the path. */
const MODEL =
  'request.path.matches("/models/.+:[A-Za-z]+$") ? request.path.regexReplace("^.*?/models/(.+):[A-Za-z]+$", "$1").replace("%2F", "/").replace("%3A", ":") : string(json(request.body).model)'

/** Copies the model of the request to a header before routing. The oldest policy, so that no other one replaces it. */
const routingPolicy = (gateway: GatewayRef): Policy => ({
  key: `traffic/${gateway.namespace}/${NAME}:0`,
  policy: policyName(gateway),
  creationTimestamp: '1970-01-01T00:00:00Z',
  target: { kind: 'Gateway', ...gateway, section: NAME },
  traffic: { phase: 'PreRouting', transformation: { request: { set: [{ name: MODEL_HEADER, value: MODEL }] } } },
})

/** Raises the limit of bodies that are buffered. The youngest policy, so that those of a config stream take precedence. */
const bodyPolicy = (gateway: GatewayRef): Policy => ({
  key: `frontend/${gateway.namespace}/${NAME}:0`,
  policy: policyName(gateway),
  creationTimestamp: '9999-12-31T23:59:59Z',
  target: { kind: 'Gateway', ...gateway },
  frontend: { http: { maxBufferSize: MAX_BODY_BYTES } },
})

/** Name of the backend of a model. */
const backendName = (model: string): string => `${NAME}.${model}`

/** Whether a model has targets instead of a provider. */
const isVirtual = (model: ShortLLMModel | undefined): boolean => model?.to !== undefined || model?.rules !== undefined

/** The backend of a model with targets: one model, whose targets are the backends of other models. */
function expandVirtual(name: string, models: Models): FileBackend {
  const { to, rules, fallback, by, sticky, shadow, policies } = models[name] ?? {}
  const toTargets = (targets: readonly ShortModelTarget[]): AIModelTarget[] => targets.map((target) => targetOf(target, models))
  const model: AIModel = {
    name,
    ...(to && { to: toTargets(to) }),
    ...(rules && { rules: rules.map((rule) => ({ ...rule, to: toTargets(rule.to) })) }),
    ...(fallback && { fallback: fallback.map((entry) => ({ ...entry, to: toTargets(entry.to) })) }),
    ...(by && { by }),
    ...(sticky !== undefined && { sticky }),
    ...(shadow && { shadow: shadowOf(shadow, models) }),
  }
  return { name: backendName(name), ai: { models: [model] }, policies: { ...policies, ai: { routes: routeTypes, ...policies?.ai } } }
}

function shadowOf({ to, judge, ...rest }: ShortModelShadow, models: Models): AIModelShadow {
  return { ...rest, to: targetOf(to, models), ...(judge && { judge: { ...judge, to: targetOf(judge.to, models) } }) }
}

/** A target in the long form. A provider without a model of its own is asked for the model by its name here. */
function targetOf({ model, weight }: ShortModelTarget, models: Models): AIModelTarget {
  return { backendRef: { backend: backendName(model) }, ...(ownModel(models[model]) === undefined && { model }), ...(weight !== undefined && { weight }) }
}

function ownModel(model: ShortLLMModel | undefined): string | undefined {
  const { providerA, providerB, providerC, providerD, providerE, providerF } = model ?? {}
  return [providerA, providerC, providerD, providerE, providerF].find((provider) => provider !== undefined)?.model ?? providerB?.deploymentName
}

/** Targets that are no model of the section, or that lead back to their own model. */
function findModelCircles(models: Models): { readonly path: Path; readonly text: string }[] {
  return Object.entries(models).flatMap(([name, model]) =>
    [...listTargets(model), ...listCopies(model)].flatMap(({ path, target }) => {
      const at = [name, ...path, 'model']
      if (!Object.hasOwn(models, target.model)) return [{ path: at, text: `${target.model} is not the name of one of llm.models` }]
      return path[0] !== 'shadow' && leadsTo(target.model, name, models, new Set())
        ? [{ path: at, text: `${target.model} leads back to ${name}; remove one of the targets in the circle` }]
        : []
    }),
  )
}

function leadsTo(from: string, wanted: string, models: Models, seen: Set<string>): boolean {
  if (from === wanted) return true
  if (seen.has(from)) return false
  seen.add(from)
  return listTargets(models[from]).some(({ target }) => leadsTo(target.model, wanted, models, seen))
}

/** Targets of copies. Copies are not copied again: a model may be compared with itself. */
const listCopies = ({ shadow }: ShortLLMModel): { readonly path: Path; readonly target: ShortModelTarget }[] => [
  ...(shadow === undefined ? [] : [{ path: ['shadow', 'to'], target: shadow.to }]),
  ...(shadow?.judge === undefined ? [] : [{ path: ['shadow', 'judge', 'to'], target: shadow.judge.to }]),
]

function listTargets({ to = [], rules = [], fallback = [] }: ShortLLMModel = {}): { readonly path: Path; readonly target: ShortModelTarget }[] {
  const place = (targets: readonly ShortModelTarget[], path: Path) => targets.map((target, index) => ({ path: [...path, index], target }))
  return [
    ...place(to, ['to']),
    ...rules.flatMap((rule, index) => place(rule.to, ['rules', index, 'to'])),
    ...fallback.flatMap((entry, index) => place(entry.to, ['fallback', index, 'to'])),
  ]
}
