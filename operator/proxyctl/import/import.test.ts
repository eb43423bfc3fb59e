import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { litellm, rejectsAll, run, runImport } from './testing.ts'

const agentgateway = `
# yaml-language-server: $schema=https://agentgateway.dev/schema/config
config:
  adminAddr: 127.0.0.1:15000
  logging: { level: info, format: json }
  tracing: { otlpEndpoint: "http://localhost:4317" }
binds:
- port: 3000
  listeners:
  - name: default
    protocol: HTTP
    routes:
    - name: mcp
      matches:
      - path: { pathPrefix: /mcp }
        headers: [{ name: x-version, value: { regex: "v[12]" } }]
        method: POST
      policies:
        cors: { allowOrigins: ["*"], allowHeaders: [mcp-protocol-version], maxAge: 100s }
        mcpAuthorization: { rules: ['mcp.tool.name == "echo"'] }
        jwtAuth: { issuer: agentgateway.dev, audiences: [test], jwks: { file: ./keys.json } }
      backends:
      - mcp:
          targets:
          - name: everything
            stdio: { cmd: npx, args: ["@modelcontextprotocol/server-everything"] }
          - name: Deep_Wiki
            mcp: { host: https://mcp.deepwiki.com/mcp }
          - name: old
            sse: { host: localhost, port: 9001, path: /sse }
    - name: llm
      matches: [{ path: { pathPrefix: /v1 } }]
      policies:
        localRateLimit: [{ maxTokens: 12, tokensPerFill: 10, fillInterval: 60s, type: tokens }, { maxTokens: 5, tokensPerFill: 5, fillInterval: 7s }]
        backendAuth: { key: "$OPENAI_API_KEY" }
        timeout: { requestTimeout: 30s }
        retry: { attempts: 3, backoff: 500ms, codes: [429, 503] }
      backends:
      - ai: { name: openai, provider: { openAI: { model: gpt-4o-mini } } }
        weight: 9
      - ai: { name: local, hostOverride: localhost:8000, provider: { openAI: {} }, policies: { backendTLS: { insecure: true } } }
        weight: 1
    - name: web
      hostnames: [shop.example]
      matches: [{ path: { exact: /a } }, { path: { regex: ["/b/.*", 5] }, query: [{ name: q, value: { exact: x } }] }]
      policies:
        urlRewrite: { authority: { full: internal.example }, path: { prefix: /c } }
        requestHeaderModifier: { add: { x-a: "1" }, remove: [x-b] }
      backends: [{ host: "localhost:8080" }, { service: { name: { namespace: default, hostname: web }, port: 80 } }]
    - name: old
      matches: [{ path: { pathPrefix: /old } }]
      policies: { requestRedirect: { scheme: https, authority: { host: new.example }, path: { full: /new }, status: 301 } }
    - name: private
      matches: [{ path: { pathPrefix: /private } }]
      policies: { extAuthz: { host: "localhost:9000" } }
      backends: [{ host: "localhost:8080" }]
- port: 5432
  listeners: [{ name: db, protocol: TCP, tcpRoutes: [{ backends: [{ host: "10.0.0.7:5432" }] }] }]
`

describe('import of agentgateway', () => {
  test('carries routes, policies and backends over, and lists the rest', async () => {
    const { config, lost } = await runImport(agentgateway)
    const [bind, tcp] = (config as { binds: { listeners: { routes: unknown[] }[] }[] }).binds
    const [mcp, llm, web, old, closed] = bind?.listeners[0]?.routes ?? []
    expect(config).toMatchObject({ config: { adminAddr: '127.0.0.1:15000', logging: { level: 'info', format: 'json' } } })
    expect(tcp).toEqual({ port: 5432, listeners: [{ name: 'db', protocol: 'TCP', tcpRoutes: [{ backends: [{ host: '10.0.0.7:5432' }] }] }] })
    expect(mcp).toEqual({
      name: 'mcp',
      matches: [{ path: { type: 'PathPrefix', value: '/mcp' }, headers: [{ name: 'x-version', type: 'RegularExpression', value: 'v[12]' }], method: 'POST' }],
      filters: { cors: { allowOrigins: ['*'], allowHeaders: ['mcp-protocol-version'], maxAge: 100 } },
      policies: {
        jwtAuthentication: { mode: 'Strict', providers: [{ issuer: 'agentgateway.dev', audiences: ['test'], jwks: { inline: '${file:./keys.json}' } }] },
      },
      backends: [
        {
          mcp: {
            targets: [
              { name: 'everything', command: ['npx', '@modelcontextprotocol/server-everything'], inheritEnv: true },
              { name: 'deep-wiki', static: { host: 'mcp.deepwiki.com', port: 443, path: '/mcp', policies: { tls: {} } } },
              { name: 'old', static: { host: 'localhost', port: 9001, path: '/sse', protocol: 'SSE' } },
            ],
          },
          policies: { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "echo"'] } } } },
        },
      ],
    })
    expect(llm).toEqual({
      name: 'llm',
      matches: [{ path: { type: 'PathPrefix', value: '/v1' } }],
      timeouts: { request: '30s' },
      retry: { attempts: 3, backoff: '500ms', codes: [429, 503] },
      policies: {
        rateLimit: {
          local: [
            { tokens: 10, unit: 'Minutes', burst: 2 },
            { requests: 42, unit: 'Minutes' },
          ],
        },
      },
      backends: [
        { ai: { provider: { openai: { model: 'gpt-4o-mini' } } }, weight: 9, policies: { auth: { key: '${OPENAI_API_KEY}' } } },
        {
          ai: { provider: { openai: {}, host: 'localhost', port: 8000 } },
          weight: 1,
          policies: { auth: { key: '${OPENAI_API_KEY}' }, tls: { insecureSkipVerify: 'All' } },
        },
      ],
    })
    expect(web).toMatchObject({
      hostnames: ['shop.example'],
      matches: [
        { path: { type: 'Exact', value: '/a' } },
        { path: { type: 'RegularExpression', value: '/b/.*' }, queryParams: [{ name: 'q', type: 'Exact', value: 'x' }] },
      ],
      filters: {
        urlRewrite: { hostname: 'internal.example', path: { type: 'ReplacePrefixMatch', value: '/c' } },
        requestHeaders: [{ add: [{ name: 'x-a', value: '1' }], remove: ['x-b'] }],
      },
      backends: [{ host: 'localhost:8080' }],
    })
    expect(old).toMatchObject({
      filters: { redirect: { scheme: 'https', hostname: 'new.example', path: { type: 'ReplaceFullPath', value: '/new' }, statusCode: 301 } },
    })
    expect(closed).toMatchObject({ policies: { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } } })
    const routes = 'binds[0].listeners[0].routes'
    expect(lost).toEqual([
      `${routes}[1].backends[0].ai.name`,
      `${routes}[1].backends[1].ai.name`,
      `${routes}[1].policies.localRateLimit[1].fillInterval`,
      `${routes}[2].backends[1]`,
      `${routes}[4].policies.extAuthz`,
      'config.tracing.otlpEndpoint',
    ])
  })

  test('carries the sections llm and mcp over as short forms', async () => {
    const { config, lost } = await runImport(
      'llm:\n  port: 4100\n  models:\n  - { name: gpt, provider: openAI, params: { model: gpt-4o, apiKey: "$OPENAI_API_KEY" } }\n  - { name: "*", provider: openAI }\nmcp:\n  port: 3100\n  targets: [{ name: wiki, mcp: { host: "https://mcp.deepwiki.com/mcp" } }]\n',
    )
    expect(config).toEqual({
      llm: { port: 4100, models: { gpt: { openai: { model: 'gpt-4o', apiKey: '${OPENAI_API_KEY}' } } } },
      mcp: { port: 3100, wiki: { url: 'https://mcp.deepwiki.com:443/mcp' } },
    })
    expect(lost).toEqual(['llm.models[1].name'])
  })

  test('rejects all requests if policies beside the binds protect routes', async () => {
    const { config } = await runImport(
      'policies: [{ name: a, target: { route: b }, policy: { jwtAuth: { issuer: a } } }]\nbinds: [{ port: 3000, listeners: [{ routes: [{ backends: [{ host: "a:1" }] }] }] }]\n',
    )
    expect(config).toMatchObject({ binds: [{ listeners: [{ policies: { authorization: { action: 'Deny' } } }] }] })
  })
})

test('import of agentgateway never opens a route, also for policies that it does not know', async () => {
  const { config, lost } = await runImport(
    'binds: [{ port: 3000, listeners: [{ routes: [{ policies: { oidc: { issuer: a } }, backends: [{ host: "a:1" }] }, { policies: { a2a: {} }, backends: [{ host: "a:1" }] }, { backends: [{ host: "a:1", policies: { guard: {} } }] }] }, { name: mesh, protocol: HTTPS }] }]\n',
  )
  expect(config).toEqual({
    binds: [
      {
        port: 3000,
        listeners: [
          {
            routes: [
              { policies: { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } }, backends: [{ host: 'a:1' }] },
              { backends: [{ host: 'a:1' }] },
              {},
            ],
          },
        ],
      },
    ],
  })
  const routes = 'binds[0].listeners[0].routes'
  expect(lost).toEqual([`${routes}[0].policies.oidc`, `${routes}[1].policies.a2a`, `${routes}[2].backends[0].policies.guard`, 'binds[0].listeners[1]'])
})

test('import of agentgateway passes TLS through where a listener has no certificate', async () => {
  const { config, lost } = await runImport(
    'binds: [{ port: 443, listeners: [{ protocol: TLS, tcpRoutes: [{ hostnames: [a.example], backends: [{ host: "a:443" }] }] }] }]\n',
  )
  const tcpRoutes = [{ hostnames: ['a.example'], backends: [{ host: 'a:443' }] }]
  expect(config).toEqual({ binds: [{ port: 443, listeners: [{ protocol: 'TLS', tls: { mode: 'Passthrough' }, tcpRoutes }] }] })
  expect(lost).toEqual([])
})

describe('import of another file', () => {
  test.each([
    ['is not YAML', 'a: [1', 'stdin'],
    ['is a list', '- 1', 'is not a config file'],
    ['has no known field', 'a: 1', 'neither the config of LiteLLM nor that of agentgateway'],
  ])('that %s fails with a reason', async (_, input, message) => {
    const { code, stderr } = await run(['import', '-'], input)
    expect(code).toBe(1)
    expect(stderr).toContain(message === 'stdin' ? 'PX6009' : message)
  })

  test('with an unknown --from is wrong usage', async () => {
    expect(await run(['import', '-', '--from', 'nginx'], 'a: 1')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"nginx" is not one of litellm, agentgateway'),
    })
  })
})

test.each([
  [
    'LiteLLM with models that no provider has',
    'model_list: [{ model_name: a, litellm_params: { model: elevenlabs/x } }]',
    /nothing can be carried over: model_list\[0\] has model elevenlabs\/x/,
  ],
  ['agentgateway without a section that is imported', 'services: []', /nothing can be carried over: /],
])('import of %s fails with the reason', async (_, input, message) => {
  const { code, stdout, stderr } = await run(['import', '-'], input)
  expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
})

/** Paths of all fields of a value, each with the value. */
function fieldsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => fieldsOf(item, `${path}[${index}]`))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const own = path === '' ? name : `${path}.${name}`
    return [own, ...fieldsOf(inner, own)]
  })
}

describe('a field that may protect something and is not carried over closes what it protected', () => {
  const route = { matches: [{ path: { pathPrefix: '/' } }], backends: [{ host: 'a:1' }] }
  const inRoute = (policies: object): object => ({ binds: [{ port: 3000, listeners: [{ routes: [{ ...route, policies }] }] }] })
  const jwt = { issuer: 'i', audiences: ['a'], jwks: { file: 'k.json' } }
  /** Policies of agentgateway, each alone: those that this version does not know, and known ones with a field that it does not know. */
  const policies: readonly (readonly [string, object])[] = [
    ['oidc', { issuer: 'i' }],
    ['basicAuth', { htpasswd: { file: 'f' } }],
    ['apiKey', { keys: [{ key: 'k' }] }],
    ['extAuthz', { host: 'a:1' }],
    ['extProc', { host: 'a:1' }],
    ['mcpAuthentication', { issuer: 'i' }],
    ['mcpGuardrails', { processors: [] }],
    ['remoteRateLimit', { domain: 'd', host: 'a:1' }],
    ['localRateLimit', { conditional: [{ condition: 'true', maxTokens: 1 }] }],
    ['authorization', { rules: [{ allow: 'true' }, { deny: 'false' }] }],
    ['authorization', { rules: [{ allow: 'true' }], mode: 'x' }],
    ['mcpAuthorization', { rules: ['true'], failure: 'x' }],
    ['jwtAuth', { ...jwt, jwks: { url: 'https://a' } }],
    ['jwtAuth', { ...jwt, jwtValidationOptions: { requiredClaims: ['exp'] } }],
    ['jwtAuth', { providers: [{ ...jwt, authorizationLocation: { cookie: 'c' } }] }],
    ['csrf', { additionalOrigins: ['https://a.example'], shadow: true }],
    ['ai', { promptGuard: { request: [{ regex: { rules: [] } }] } }],
    ['backendTLS', { subjectAltNames: ['a'] }],
    ['transformations', { request: { remove: ['x-user'] } }],
    ['directResponse', { conditional: [{ condition: 'request.path == "/admin"', status: 403 }] }],
    ['somethingNew', { a: 1 }],
  ]

  test.each(policies)('%s of a route of agentgateway: %j', async (name, policy) => {
    const { config, lost } = await runImport(JSON.stringify(inRoute({ [name]: policy })))
    const routes = (config as { binds: { listeners: { routes: { policies?: object; backends?: object[] }[] }[] }[] }).binds[0]?.listeners[0]?.routes
    expect(routes).toEqual([expect.objectContaining({ policies: expect.objectContaining(rejectsAll) })])
    expect(lost.some((path) => path.startsWith(`binds[0].listeners[0].routes[0].policies.${name}`))).toBe(true)
  })

  test.each(policies.filter(([name]) => name !== 'ai' && name !== 'backendTLS'))('%s of a listener of agentgateway: %j', async (name, policy) => {
    const { config } = await runImport(JSON.stringify({ binds: [{ port: 3000, listeners: [{ policies: { [name]: policy }, routes: [route] }] }] }))
    expect(config).toMatchObject({ binds: [{ listeners: [{ policies: rejectsAll, routes: [{ policies: rejectsAll }] }] }] })
  })

  test.each(policies)('%s of the section mcp of agentgateway: %j', async (name, policy) => {
    const { config } = await runImport(JSON.stringify({ mcp: { targets: [{ name: 'a', mcp: { host: 'http://a.example' } }], policies: { [name]: policy } } }))
    const { mcp, binds } = config as { mcp?: object; binds?: { listeners: { routes: object[] }[] }[] }
    expect(mcp ?? binds?.[0]?.listeners[0]?.routes[0]).toMatchObject({ policies: rejectsAll })
  })

  test.each(policies)('%s of the section llm of agentgateway: %j', async (name, policy) => {
    const { config } = await runImport(
      JSON.stringify({ llm: { models: [{ name: 'a', provider: 'openAI', params: { apiKey: 'k' } }], policies: { [name]: policy } } }),
    )
    expect(config).toMatchObject({ llm: { policies: rejectsAll } })
  })

  test('a match of a route of agentgateway', async () => {
    const matches = [{ path: { pathPrefix: '/' }, source: 'internal' }]
    const { config } = await runImport(JSON.stringify({ binds: [{ port: 3000, listeners: [{ routes: [{ ...route, matches }] }] }] }))
    expect(config).toMatchObject({ binds: [{ listeners: [{ routes: [{ policies: rejectsAll }] }] }] })
  })

  test.each([
    ['visibility', 'internal'],
    ['overrides', { max_tokens: 100 }],
    ['transformation', { max_tokens: 'min(llmRequest.max_tokens, 100)' }],
  ])('%s of a model of agentgateway: the model is left out', async (name, value) => {
    const model = { provider: 'openAI', params: { apiKey: 'k' } }
    const models = [
      { ...model, name: 'a', [name]: value },
      { ...model, name: 'b', visibility: 'public' },
    ]
    const { config, lost } = await runImport(JSON.stringify({ llm: { models } }))
    expect(Object.keys((config as { llm: { models: object } }).llm.models)).toEqual(['b'])
    expect(lost).toContain('llm.models[0]')
  })

  test.each([
    ['policies', [{ name: 'a', target: { route: 'b' }, policy: { anything: {} } }]],
    ['frontendPolicies', { networkAuthorization: { rules: ['true'] } }],
    ['frontendPolicies', { tls: { minVersion: 'TLS_V1_3' } }],
  ])('%s beside the binds of agentgateway: %j', async (name, value) => {
    const tcp = { port: 5432, listeners: [{ protocol: 'TCP', tcpRoutes: [{ backends: [{ host: 'a:1' }] }] }] }
    const { config } = await runImport(JSON.stringify({ [name]: value, binds: [{ port: 3000, listeners: [{ routes: [route] }] }, tcp] }))
    expect(config).toMatchObject({
      binds: [{ listeners: [{ policies: rejectsAll, routes: [{ policies: rejectsAll }] }] }, { listeners: [{ tcpRoutes: [{}] }] }],
    })
    expect(JSON.stringify((config as { binds: unknown[] }).binds[1])).not.toContain('a:1')
  })
})

test.each([
  ['LiteLLM', litellm],
  ['agentgateway', agentgateway],
])('a field that %s does not have is listed at whichever place it is', async (_, text) => {
  const source = parse(text) as unknown
  const places = fieldsOf(source).filter((path) =>
    /^(?:model_list|litellm_settings|general_settings|router_settings|mcp_servers\.github|binds|config)/.test(path),
  )
  expect(places.length).toBeGreaterThan(30)
  const before = (await run(['import', '-', '-o', 'json'], text)).stdout
  for (const place of places) {
    const copy = structuredClone(source)
    const inner = place
      .split(/[.[\]]+/)
      .filter((part) => part !== '')
      .reduce<unknown>((value, part) => (value as Record<string, unknown>)[part], copy)
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) continue
    Object.assign(inner, { somethingNew: { a: 1 } })
    const after = (await run(['import', '-', '-o', 'json'], JSON.stringify(copy))).stdout
    // An object that is left out as a whole is listed already.
    const { notCarriedOver } = JSON.parse(before) as { notCarriedOver: { path: string }[] }
    const isListed = notCarriedOver.some(({ path }) => place.startsWith(path)) || after.includes(`${place}.somethingNew`) || after.includes(`${place}.`)
    expect({ place, isListed }).toEqual({ place, isListed: true })
  }
})
