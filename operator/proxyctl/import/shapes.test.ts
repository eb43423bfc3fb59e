import { describe, expect, test } from '@jest/globals'
import { run, runImport } from './testing.ts'

interface Shape {
  readonly config: string
  /** Sections of the result that reject all requests; `binds` if a listener or route of them does. */
  readonly closed?: readonly string[]
  readonly lost?: readonly string[]
}

const closedSections = (config: unknown): string[] =>
  Object.entries(config as object).flatMap(([name, section]) => (JSON.stringify(section).includes('"matchExpressions":["true"]') ? [name] : []))

async function expectShape({ config, closed = [], lost = [] }: Shape): Promise<void> {
  const imported = await runImport(config)
  expect({ closed: closedSections(imported.config), lost: imported.lost }).toEqual({ closed, lost })
}

const gpt = (more = ''): string => `{ model_name: a, litellm_params: { model: gpt-4o${more} } }`

describe('shapes of the configs that LiteLLM publishes', () => {
  const shapes: Readonly<Record<string, Shape>> = {
    'models alone': { config: `model_list: [${gpt()}]` },
    'numbers with underscores': { config: `model_list: [${gpt(', tpm: 20_000')}]` },
    'settings that are off': { config: `model_list: [${gpt()}]\ngeneral_settings: { enforce_user_param: off }`, lost: ['general_settings.enforce_user_param'] },
    'health checks': {
      config: `model_list: [${gpt()}]\ngeneral_settings: { background_health_checks: true, health_check_interval: 300 }`,
      lost: ['general_settings.background_health_checks', 'general_settings.health_check_interval'],
    },
    'several deployments, limits beside their parameters': {
      config: `model_list: [{ model_name: a, litellm_params: { model: gpt-4o }, rpm: 5 }, ${gpt(', timeout: 5')}]`,
      closed: ['llm'],
      lost: ['model_list[0].rpm'],
    },
    'an interception of searches': {
      config: `model_list: [${gpt()}]\nsearch_tools: [{}]\nlitellm_settings: { callbacks: [websearch_interception], websearch_interception_params: {} }`,
      closed: ['llm'],
      lost: ['litellm_settings.callbacks', 'litellm_settings.websearch_interception_params', 'search_tools'],
    },
    'tags of deployments': {
      config: `model_list: [${gpt(', tags: [free]')}]\nrouter_settings: { enable_tag_filtering: true }`,
      closed: ['llm'],
      lost: ['model_list[0].litellm_params.tags', 'router_settings.enable_tag_filtering'],
    },
    'a model that the server sets': {
      config: `model_list: [${gpt()}]\ngeneral_settings: { completion_model: a }`,
      closed: ['llm'],
      lost: ['general_settings.completion_model'],
    },
    'own authentication': {
      config: `model_list: [${gpt()}]\ngeneral_settings: { custom_auth: auth.check, pass_through_endpoints: [{}] }`,
      closed: ['llm'],
      lost: ['general_settings.custom_auth', 'general_settings.pass_through_endpoints'],
    },
    'policies and their guardrails': {
      config: `model_list: [${gpt()}]\nguardrails: [{ guardrail_name: g }]\npolicies: {}\npolicy_attachments: [{}]`,
      closed: ['llm'],
      lost: ['guardrails', 'policies', 'policy_attachments'],
    },
    'keys in a database': {
      config: `model_list: [${gpt()}]\ngeneral_settings: { store_model_in_db: true }`,
      closed: ['llm'],
      lost: ['general_settings.store_model_in_db'],
    },
    'an MCP server with a description': {
      config: 'mcp_servers: { wiki: { url: "https://a.example/mcp", description: d } }',
      lost: ['mcp_servers.wiki.description'],
    },
  }
  test.each(Object.entries(shapes))('%s', async (_, shape) => expectShape(shape))

  test('patterns of models alone cannot be imported', async () => {
    const config = 'model_list: [{ model_name: "*", litellm_params: { model: "*" } }]\ngeneral_settings: { master_key: os.environ/KEY }'
    expect(await run(['import', '-'], config)).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining('model_list[0] is a pattern') })
  })
})

describe('shapes of the configs that agentgateway publishes', () => {
  const route = (policies: string, backend = 'host: "a:1"'): string =>
    `binds: [{ port: 3000, listeners: [{ routes: [{ policies: ${policies}, backends: [{ ${backend} }] }] }] }]`
  const at = 'binds[0].listeners[0].routes[0]'
  const server = 'mcp: { targets: [{ name: a, stdio: { cmd: a } }] }'
  const model = (more = ''): string => `{ name: a, provider: openAI, params: { apiKey: k${more} } }`
  const shapes: Readonly<Record<string, Shape>> = {
    'a server and its rules': { config: route('{ mcpAuthorization: { rules: [\'mcp.tool.name == "echo"\'] } }', server) },
    'a server behind TLS': { config: route('{}', 'mcp: { targets: [{ name: a, mcp: { host: "https://a.example/mcp" } }] }') },
    'a tunnel in front': {
      config: 'binds: [{ port: 3000, tunnelProtocol: connect, listeners: [{ routes: [{ backends: [{ dynamic: {} }] }] }] }]',
      closed: ['binds'],
      lost: ['binds[0].tunnelProtocol'],
    },
    'a port without a socket': {
      config: 'binds: [{ port: 3000, mode: internal, listeners: [{ routes: [{ backends: [{ host: "a:1" }] }] }] }]',
      closed: ['binds'],
      lost: ['binds[0].mode'],
    },
    'a destination that the config selects': {
      config: route('{}', 'dynamic: { target: "request.headers.host" }'),
      closed: ['binds'],
      lost: [`${at}.backends[0].dynamic.target`],
    },
    'a token that the gateway signs': { config: route('{ backendAuth: { jwtSign: {} } }'), closed: ['binds'], lost: [`${at}.policies.backendAuth.jwtSign`] },
    'keys of a URL': {
      config: route('{ jwtAuth: { issuer: i, jwks: { url: "https://a.example" } } }'),
      closed: ['binds'],
      lost: [`${at}.policies.jwtAuth`, `${at}.policies.jwtAuth.jwks.url`],
    },
    'guards of prompts': { config: route('{ ai: { promptGuard: {} } }'), closed: ['binds'], lost: [`${at}.policies.ai.promptGuard`] },
    'responses with conditions, and delays': {
      config: route('{ directResponse: { conditional: [{}] }, delay: { duration: 1s } }'),
      closed: ['binds'],
      lost: [`${at}.policies.delay`, `${at}.policies.directResponse.conditional`],
    },
    'traces of each request': {
      config: `config: { tracing: { otlpEndpoint: "http://a:4317", fields: { add: { a: b } } } }\nfrontendPolicies: { tracing: { host: "a:4317" }, http: { maxBufferSize: 20971520 } }\n${route('{}')}`,
      lost: ['config.tracing.fields.add', 'config.tracing.otlpEndpoint', 'frontendPolicies.http.maxBufferSize', 'frontendPolicies.tracing.host'],
    },
    'records without some fields': {
      config: `frontendPolicies: { accessLog: { remove: [request.path] } }\n${route('{}')}`,
      closed: ['binds'],
      lost: ['frontendPolicies.accessLog.remove'],
    },
    'sections on a gateway': { config: `gateways: { default: { port: 3000 } }\nllm: { models: [${model()}] }\nui: {}`, lost: ['gateways.default.port', 'ui'] },
    'sections on a gateway with authentication': {
      config: `gateways: { default: { port: 3000, apiKey: { keys: [{ key: k }] } } }\nllm: { models: [${model()}] }\n${server.replaceAll(/(?<=mcp: )/g, '')}`,
      closed: ['llm', 'mcp'],
      lost: ['gateways.default.apiKey', 'gateways.default.port'],
    },
    'models behind virtual ones': {
      config: `llm: { models: [${model()}, { name: b, provider: openAI, visibility: internal }], virtualModels: [{}] }`,
      lost: ['llm.models[1]', 'llm.virtualModels[0]'],
    },
    'a model on another host': {
      config: `llm: { models: [${model()}, { name: b, provider: openAI, params: { apiKey: k, hostOverride: "a.internal:443" } }] }`,
      lost: ['llm.models[1]'],
    },
    'models of clouds': {
      config:
        'llm: { models: [{ name: a, provider: bedrock, params: { awsRegion: us-east-1 } }, { name: b, provider: vertex, params: { vertexProject: p, vertexRegion: r } }] }',
    },
    'keys of models in files': { config: 'llm: { models: [{ name: a, provider: anthropic, params: { apiKey: { file: ./key } } }] }' },
  }
  test.each(Object.entries(shapes))('%s', async (_, shape) => expectShape(shape))

  test('a program gets the environment of the gateway unless it is cleared', async () => {
    const { config } = await runImport('mcp: { targets: [{ name: a, stdio: { cmd: a } }, { name: b, stdio: { cmd: b, clear_env: true, env: { A: b } } }] }')
    expect(config).toEqual({ mcp: { a: { command: ['a'], inheritEnv: true }, b: { command: ['b'], env: { A: 'b' } } } })
  })
})
