import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { harmlessFields } from './agentgateway-fields.ts'
import { importAgentgateway } from './agentgateway.ts'
import { harmlessSettings, keyStores, switches } from './litellm-settings.ts'
import { importLiteLlm } from './litellm.ts'
import type { Imported } from './source.ts'

/** Names of the fields that a release of the other gateway has, by place. */
function readFields(file: string): Readonly<Record<string, string[]>> {
  const { fields } = JSON.parse(readFileSync(join(import.meta.dirname, 'testdata', file), 'utf8')) as { fields: Record<string, string> }
  return Object.fromEntries(Object.entries(fields).map(([place, names]) => [place, names.split(' ')]))
}

/** One of each shape that a field can have. `x` is no field of any object. */
const values: readonly unknown[] = [true, false, 7, 'x', ['x'], { x: 'x' }, [{ x: 'x' }]]

const isNamed = (pattern: string, name: string): boolean => pattern === name || (pattern.endsWith('*') && name.startsWith(pattern.slice(0, -1)))
const partsOf = (path: string): string[] => path.split(/[.[\]]+/).filter((part) => part !== '')
const valueAt = (config: unknown, path: string): unknown =>
  partsOf(path).reduce((value, part) => (value as Record<string, unknown> | undefined)?.[part], config)

/** What serves requests: without what is lost, an import may have less of it, or more rules that reject all, and never the opposite. */
interface Outcome {
  readonly isListed: boolean
  readonly isCarriedOver: boolean
  readonly isClosed: boolean
}

const rejections = (config: unknown): number => JSON.stringify(config).split('"matchExpressions":["true"]').length - 1
const isEqual = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)
/** Models, servers, routes and destinations. */
const served = (config: unknown): number =>
  JSON.stringify(config).match(/"(?:openai|bedrock|vertexAI|azureOpenAI|host|url|command|dynamicForwardProxy|to)":/g)?.length ?? 0

function outcomeOf(before: Imported, after: Imported, path: string): Outcome {
  const covers = (lost: string): boolean => [path, ...prefixes(path)].includes(lost) || lost.startsWith(`${path}.`) || lost.startsWith(`${path}[`)
  const known = new Set(before.losses.map((loss) => loss.path))
  return {
    isListed: after.losses.some((loss) => !known.has(loss.path) && covers(loss.path)),
    isCarriedOver: !isEqual(before.config, after.config),
    isClosed: rejections(after.config) > rejections(before.config) || served(after.config) < served(before.config),
  }
}

const prefixes = (path: string): string[] => Array.from(path.matchAll(/[.[]/g), ({ index }) => path.slice(0, index))

/** What is wrong with the outcome of a field. */
function problemsOf(before: Imported, after: Imported, path: string, value: unknown, isHarmless: boolean): string[] {
  const { isListed, isCarriedOver, isClosed } = outcomeOf(before, after, path)
  const problems = [
    ...(isCarriedOver || isListed ? [] : ['vanishes']),
    ...(!isListed || isHarmless || isClosed ? [] : ['is lost, may protect something, and closes nothing']),
    ...(!isClosed || after.losses.length > before.losses.length ? [] : ['closes something, and is not listed']),
  ]
  return problems.map((problem) => `${path}: ${JSON.stringify(value)} ${problem}`)
}

describe('each field of LiteLLM is carried over, listed as lost, or closes what it protected', () => {
  const sections = readFields('litellm-fields.json')
  const base = {
    model_list: [
      { model_name: 'a', litellm_params: { model: 'gpt-4o', api_base: 'https://a.example' }, model_info: {} },
      { model_name: 'b', litellm_params: { model: 'gpt-4o' } },
    ],
    general_settings: {},
    litellm_settings: {},
    router_settings: {},
    mcp_servers: { wiki: { url: 'https://a.example/mcp' }, other: { url: 'https://b.example/mcp' } },
    guardrails: [{}],
  }
  const places: Readonly<Record<string, string>> = {
    file: '',
    general_settings: 'general_settings',
    litellm_settings: 'litellm_settings',
    router_settings: 'router_settings',
    litellm_params: 'model_list[0].litellm_params',
    model_info: 'model_list[0].model_info',
    mcp_servers: 'mcp_servers.wiki',
    guardrails: 'guardrails[0]',
  }

  test.each(Object.keys(places))('%s', (section) => {
    const place = places[section] ?? ''
    const harmless: readonly string[] = (harmlessSettings as Record<string, readonly string[]>)[section] ?? []
    const names = sections[section] ?? []
    expect(names.length).toBeGreaterThan(2)
    const { guardrails, ...unguarded } = base
    const isGuardrail = section === 'guardrails'
    const before = importLiteLlm(unguarded)
    const problems: string[] = []
    for (const name of [...names, 'a_field_of_a_later_version'])
      for (const value of values) {
        const config = structuredClone({ ...unguarded, ...(isGuardrail && { guardrails }) })
        const fields = valueAt(config, place) as Record<string, unknown>
        if (Object.hasOwn(fields, name)) continue
        fields[name] = value
        const isOff = value === false && ((switches as Record<string, readonly string[]>)[section]?.includes(name) ?? false)
        const after = importLiteLlm(config)
        // Guardrails close whichever fields they have.
        const path = isGuardrail ? 'guardrails' : place === '' ? name : `${place}.${name}`
        problems.push(...problemsOf(before, after, path, value, isOff || harmless.some((pattern) => isNamed(pattern, name))))
      }
    expect(problems).toEqual([])
  })

  test('the tables name fields that LiteLLM has', () => {
    const unknown = [...Object.entries(harmlessSettings), ...Object.entries(switches), ['general_settings', keyStores] as const].flatMap(([section, names]) =>
      names.filter((pattern) => sections[section]?.some((name) => isNamed(pattern, name)) !== true).map((name) => `${section}.${name}`),
    )
    expect(unknown).toEqual([])
  })
})

describe('each field of agentgateway is carried over, listed as lost, or closes what it protected', () => {
  const places = readFields('agentgateway-fields.json')
  /** An object of each place. Lists have more than one item, so that something is left if one is not carried over. */
  const route = (policies: object, backends: object[] = [{ host: 'a:1' }]): object => ({
    name: 'r',
    matches: [{ path: { pathPrefix: '/' }, headers: [{ name: 'h', value: { exact: 'v' } }], query: [{ name: 'q', value: { exact: 'v' } }] }],
    policies,
    backends: [...backends, { host: 'b:1' }],
  })
  const own = (): object => ({ backendAuth: { key: 'k' } })
  const policies = {
    ai: { routes: { '/v1': 'completions' } },
    authorization: { rules: ['request.path == "/"'] },
    backendAuth: { passthrough: {} },
    backendTLS: {},
    cors: { allowOrigins: ['*'] },
    csrf: {},
    directResponse: { status: 200 },
    jwtAuth: { providers: [{ issuer: 'i', jwks: { file: 'f' } }] },
    localRateLimit: [{ tokensPerFill: 1, fillInterval: '1s' }],
    mcpAuthorization: { rules: ['mcp.tool.name == "a"'] },
    requestHeaderModifier: { set: { a: 'b' } },
    requestRedirect: { authority: { host: 'c' }, path: { full: '/' } },
    responseHeaderModifier: { set: { a: 'b' } },
    retry: { attempts: 1 },
    timeout: { requestTimeout: '1s' },
    urlRewrite: { authority: { host: 'c' }, path: { full: '/' } },
  }
  const target = (kind: object): object => ({ name: 't', policies: own(), ...kind })
  const more = { name: 'u', mcp: { host: 'http://b.example' } }
  const kinds: readonly object[] = [
    { host: 'c:1', policies: own() },
    { dynamic: {} },
    { ai: { provider: { openAI: { model: 'm' } } } },
    { ai: { provider: { bedrock: { model: 'm' } } } },
    { ai: { provider: { vertex: { model: 'm' } } } },
    { ai: { provider: { azure: { model: 'm' } } } },
    {
      ai: {
        groups: [
          {
            providers: [
              { name: 'p', provider: { openAI: {} } },
              { name: 'o', provider: { openAI: {} } },
            ],
          },
        ],
      },
    },
    { mcp: { targets: [target({ mcp: { host: 'http://c.example' } }), more] } },
    { mcp: { targets: [target({ sse: { host: 'http://c.example' } }), more] } },
    { mcp: { targets: [target({ stdio: { cmd: 'c' } }), more] } },
  ]
  const model = { name: 'm', provider: 'openAI', params: { apiKey: 'k' } }
  const bases: readonly object[] = [
    {
      config: { logging: { fields: {} }, metrics: {}, tracing: { fields: {} } },
      frontendPolicies: { accessLog: {}, tracing: {}, http: {} },
      binds: [
        {
          port: 3000,
          listeners: [
            {
              protocol: 'HTTPS',
              tls: { cert: 'c', key: 'k' },
              policies: { authorization: policies.authorization },
              routes: [route({ timeout: policies.timeout })],
            },
            { protocol: 'TCP', tcpRoutes: [{ backends: [{ host: 'a:1' }, { host: 'b:1' }] }] },
          ],
        },
      ],
    },
    ...Object.entries(policies).map(([name, policy]) => ({ binds: [{ port: 3000, listeners: [{ routes: [route({ [name]: policy })] }] }] })),
    ...kinds.map((backend) => ({ binds: [{ port: 3000, listeners: [{ routes: [route({}, [backend])] }] }] })),
    {
      gateways: { default: { listeners: [{}] } },
      llm: {
        providers: [
          { name: 'p', provider: 'openAI', params: {} },
          { name: 'q', provider: 'openAI' },
        ],
        models: [
          { ...model, health: { eviction: {} } },
          { ...model, name: 'n' },
          { name: 'o', provider: { reference: 'p' } },
          { name: 'r', provider: { reference: 'q' } },
        ],
        virtualModels: [
          { name: 'w', routing: { weighted: { targets: [{ model: 'm' }] } } },
          { name: 'f', routing: { failover: { targets: [{ model: 'm', priority: 0 }] } } },
          { name: 'c', routing: { conditional: { targets: [{ model: 'm' }] } } },
          { name: 'v', routing: { weighted: { targets: [{ model: 'n' }] } } },
        ],
        policies: { authorization: policies.authorization },
      },
      mcp: {
        targets: [target({ mcp: { host: 'http://c.example' } }), target({ stdio: { cmd: 'c' }, name: 's' }), more],
        policies: { authorization: policies.authorization },
      },
    },
  ]
  /** The row of the table for a place. */
  const tables: readonly (readonly [RegExp, readonly string[]])[] = [
    // A section without a model or server opens no port.
    [/^$/, [...harmlessFields.file, 'llm', 'mcp']],
    [/^config$/, harmlessFields.config],
    [/^config\.logging$/, harmlessFields.logging],
    [/^config\.metrics$/, harmlessFields.metrics],
    [/^config\.tracing$/, harmlessFields.tracing],
    [/^config\.\w+\.fields$/, ['add']],
    [/^frontendPolicies$/, harmlessFields.frontend],
    [/^frontendPolicies\.http$/, harmlessFields.frontendHttp],
    [/^frontendPolicies\.accessLog$/, harmlessFields.accessLog],
    [/^frontendPolicies\.tracing$/, harmlessFields.tracing],
    [/^binds\[\]\.listeners\[\]$/, harmlessFields.listener],
    [/listeners\[\]\.tls$/, harmlessFields.tls],
    [/outes\[\]$/, harmlessFields.route],
    [/policies$/, harmlessFields.policies],
    [/policies\.ai$/, harmlessFields.ai],
    [/backendAuth$/, harmlessFields.backendAuth],
    [/backendTLS$/, harmlessFields.backendTls],
    [/retry$/, harmlessFields.retry],
    [/\.ai$|providers\[\]$/, harmlessFields.provider],
    [/urlRewrite\.authority$/, ['port']],
    [/^gateways\.default$/, harmlessFields.gateway],
    [/^gateways\.default\.listeners\[\]$/, harmlessFields.gatewayListener],
    // Without the check of origins, the one of an MCP backend applies.
    [/(?:^|\.)mcp$/, [...harmlessFields.mcp, 'dnsRebindingProtection']],
    [/^llm$/, harmlessFields.llm],
    [/health$/, ['unhealthyExpression', 'eviction']],
    [/eviction$/, ['consecutiveFailures', 'duration', 'healthThreshold', 'restoreHealth']],
    [/models\[\]$/, harmlessFields.model],
    [/params$/, harmlessFields.params],
  ]

  /** Values that are the behavior without the field. */
  const defaults: Readonly<Record<string, unknown[]>> = {
    insecure: [false],
    insecureHost: [false],
    clear_env: [false],
    statefulMode: ['stateful'],
    dnsRebindingProtection: [true],
  }
  const inner = (place: string, name: string): string => (place === '' ? name : `${place}.${name}`)

  test.each(Object.entries(places))('at %j', (place, names) => {
    const harmless = tables.filter(([pattern]) => pattern.test(place)).flatMap(([, fields]) => fields)
    const found = bases.flatMap((base) => objectsAt(base, partsOf(place.replaceAll('[]', '.*'))).map((path) => ({ base, path })))
    expect(found.length).toBeGreaterThan(0)
    const problems: string[] = []
    for (const { base, path } of found) {
      const before = importAgentgateway(base)
      for (const name of [...names, 'aFieldOfALaterVersion'])
        for (const value of values) {
          // The fields of an inner object are those of another place.
          const isInner = typeof value === 'object' && Object.keys(places).some((other) => [inner(place, name), `${inner(place, name)}[]`].includes(other))
          if (isInner || (defaults[name] ?? []).includes(value)) continue
          const config = structuredClone(base)
          const fields = (path === '' ? config : valueAt(config, path)) as Record<string, unknown>
          if (Object.hasOwn(fields, name)) continue
          fields[name] = value
          problems.push(...problemsOf(before, importAgentgateway(config), path === '' ? name : `${path}.${name}`, value, harmless.includes(name)))
        }
    }
    expect(problems).toEqual([])
  })

  test('the table names fields that agentgateway has', () => {
    const known = new Set(Object.values(places).flat())
    expect(
      Object.values(harmlessFields)
        .flat()
        .filter((name) => !known.has(name)),
    ).toEqual([])
  })
})

/** Paths of the objects of a config at a place; `*` is each item of a list. */
function objectsAt(value: unknown, [first, ...rest]: readonly string[], path = ''): string[] {
  if (first === undefined) return typeof value === 'object' && value !== null && !Array.isArray(value) ? [path] : []
  if (first === '*') return Array.isArray(value) ? value.flatMap((item: unknown, index) => objectsAt(item, rest, `${path}[${index}]`)) : []
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, first)) return []
  return objectsAt((value as Record<string, unknown>)[first], rest, path === '' ? first : `${path}.${first}`)
}
