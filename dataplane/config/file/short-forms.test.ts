import { withoutCodes } from '#api/messages/code.ts'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Backend, Route } from '#gen/config/types.ts'
import { loadConfigFile } from './file.ts'
import { ConfigFileError } from './problem.ts'
import type { ConfigMessage } from '../store.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'short-forms-'))
})
afterAll(() => rm(directory, { recursive: true }))

const env = { OPENAI_API_KEY: 'openai-key', ANTHROPIC_API_KEY: 'anthropic-key' }

async function load(text: string, options: Parameters<typeof loadConfigFile>[1] = {}): Promise<readonly ConfigMessage[]> {
  const path = join(directory, 'gateway.yaml')
  await writeFile(path, text)
  return (await loadConfigFile(path, { env, ...options })).messages
}

async function problemsOf(text: string): Promise<string[]> {
  try {
    await load(text)
    return []
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    return error.problems.map((problem) => {
      expect(problem).toMatch(/ \[PX30\d\d\]$/)
      return withoutCodes(problem.replace(`${directory}/`, ''))
    })
  }
}

/** The example of the README. */
const TEN_LINES = `# gateway.yaml
llm:
  models:
    gpt-4o: { openai: { apiKey: \${OPENAI_API_KEY} } }
    claude: { anthropic: { apiKey: \${ANTHROPIC_API_KEY}, model: claude-sonnet-4-5 } }
mcp:
  everything: { url: https://mcp.example.com/mcp }
`

const keysOf = (messages: readonly ConfigMessage[], kind: ConfigMessage['kind']): string[] =>
  messages.flatMap((one) => (one.kind === kind ? one.message.key : []))
const backendOf = (messages: readonly ConfigMessage[], key: string): Backend | undefined =>
  messages.flatMap((one) => (one.kind === 'backend' && one.message.key === key ? one.message : []))[0]
const routeOf = (messages: readonly ConfigMessage[], key: string): Route | undefined =>
  messages.flatMap((one) => (one.kind === 'route' && one.message.key === key ? one.message : []))[0]
const model = (provider: string): string => `llm: { models: { m: ${provider} } }`

test.each(['README.md', 'docs/guide/config-file.md'])('the example of %s is the one that is tested', (page) => {
  expect(readFileSync(page, 'utf8')).toContain(`\`\`\`yaml\n${TEN_LINES}\`\`\``)
})

test('rules of a short form name the field that they are made from, and other rules do not', async () => {
  const messages = await load(`${TEN_LINES}binds: [{ port: 8080, listeners: [{ routes: [{ name: llm.own, backends: [{ host: "127.0.0.1:1" }] }] }] }]`)
  const origins = messages.flatMap((one) => (one.kind === 'route' ? [[one.message.route.name, one.message.origin] as const] : []))
  expect(origins.filter(([name]) => !name.startsWith('llm-'))).toEqual([
    ['llm.own', undefined],
    ['llm.gpt-4o', 'llm.models.gpt-4o'],
    ['llm.claude', 'llm.models.claude'],
    ['llm', 'llm'],
    ['mcp', 'mcp'],
  ])
  expect(new Set(origins.filter(([name]) => name.startsWith('llm-')).map(([, origin]) => origin))).toEqual(new Set(['llm']))
})

describe('the short forms of a config file', () => {
  test('become a listener each, with a route and a backend for each model', async () => {
    const messages = await load(TEN_LINES)
    expect(keysOf(messages, 'bind')).toEqual(['4000/default/config', '3000/default/config'])
    expect(keysOf(messages, 'listener')).toEqual(['default/config.llm', 'default/config.mcp'])
    expect(keysOf(messages, 'backend')).toEqual(['default/llm.gpt-4o', 'default/llm.claude', 'default/llm', 'default/mcp'])
    expect(backendOf(messages, 'default/llm.gpt-4o')).toMatchObject({ ai: { provider: { providerA: {} } }, policies: { auth: { key: 'openai-key' } } })
    expect(backendOf(messages, 'default/llm.claude')).toMatchObject({
      ai: { provider: { providerC: { model: 'claude-sonnet-4-5' } } },
      policies: { auth: { key: 'anthropic-key' } },
    })
    expect(backendOf(messages, 'default/mcp')?.mcp).toEqual({
      targets: [{ name: 'everything', static: { host: 'mcp.example.com', port: 443, path: '/mcp', protocol: 'StreamableHTTP', policies: { tls: {} } } }],
      sessionRouting: 'Stateful',
      failureMode: 'FailClosed',
      prefixMode: 'Conditional',
    })
  })

  test('stand beside the long form, whose names and order stay', async () => {
    const messages = await load(`binds: [{ port: 80, listeners: [{ routes: [{ backends: [{ host: 'a:1' }] }] }] }]\n${TEN_LINES}`)
    expect(keysOf(messages, 'bind')).toEqual(['80/default/config', '4000/default/config', '3000/default/config'])
    expect(keysOf(messages, 'listener')[0]).toBe('default/config.listener0')
    expect(keysOf(messages, 'route')[0]).toBe('default/route0.00')
  })

  test('use the ports, addresses, certificates and policies that they name', async () => {
    const text = `llm: { port: 4001, addresses: [127.0.0.1], models: { m: { openai: {} } }, policies: { timeouts: { request: 5s } } }
mcp: { port: 3001, prefixMode: Always, failureMode: FailOpen, sessionRouting: Stateless, a: { url: 'http://localhost:9000', protocol: SSE } }`
    const messages = await load(text)
    expect(messages).toEqual(
      expect.arrayContaining([
        { kind: 'bind', message: { key: '4001/default/config', port: 4001, addresses: ['127.0.0.1'] } },
        expect.objectContaining({ kind: 'policy', message: expect.objectContaining({ traffic: expect.objectContaining({ timeouts: { request: '5s' } }) }) }),
      ]),
    )
    expect(keysOf(messages, 'bind')).toContain('3001/default/config')
    expect(backendOf(messages, 'default/mcp')?.mcp).toEqual({
      targets: [{ name: 'a', static: { host: 'localhost', port: 9000, protocol: 'SSE' } }],
      sessionRouting: 'Stateless',
      failureMode: 'FailOpen',
      prefixMode: 'Always',
    })
  })

  test('accept models with targets, which are other models of the section; internal ones have no route', async () => {
    const messages = await load(`llm:
  models:
    gpt: { openai: {} }
    claude: { anthropic: { model: claude-sonnet-4-5 }, visibility: Internal }
    assistant:
      sticky: jwt.sub
      rules: [{ when: 'llm.promptTokens > 9', to: [{ model: claude }] }, { to: [{ model: gpt, weight: 3 }] }]
      fallback: [{ on: [RateLimit], to: [{ model: claude }] }]
    'gpt-*': { to: [{ model: assistant }] }
`)
    const claude = { backendRef: { backend: 'default/llm.claude' } }
    expect(backendOf(messages, 'default/llm.assistant')?.ai).toMatchObject({
      models: [
        {
          name: 'assistant',
          sticky: 'jwt.sub',
          rules: [{ when: 'llm.promptTokens > 9', to: [claude] }, { to: [{ backendRef: { backend: 'default/llm.gpt' }, model: 'gpt', weight: 3 }] }],
          fallback: [{ on: ['RateLimit'], to: [claude] }],
        },
      ],
    })
    expect(backendOf(messages, 'default/llm')?.ai?.models?.map(({ name }) => name)).toEqual(['gpt', 'assistant', 'gpt-*'])
    expect(keysOf(messages, 'route').slice(0, 3)).toEqual(['default/llm.gpt.00', 'default/llm.assistant.00', 'default/llm.gpt-*.00'])
    expect(routeOf(messages, 'default/llm.gpt-*.00')?.matches?.[0]?.headers).toEqual([
      { name: 'x-proxy-llm-model', type: 'RegularExpression', value: 'gpt-.*' },
    ])
  })

  test('accept a selection of tools and portable names', async () => {
    const messages = await load(`mcp: { toolNames: Portable, toolSearch: Enabled, a: { url: 'http://localhost:9000/mcp', tools: { include: [x] } } }`)
    expect(backendOf(messages, 'default/mcp')?.mcp).toMatchObject({
      toolNames: 'Portable',
      toolSearch: 'Enabled',
      targets: [{ name: 'a', tools: { include: ['x'] } }],
    })
  })

  test('accept programs with their environment, in files of the user of the process only', async () => {
    const command = 'command: [/bin/a, b]'
    const messages = await load(`mcp: { a: { ${command}, env: { TOKEN: '\${OPENAI_API_KEY}' }, tools: { include: [x] } } }`)
    expect(backendOf(messages, 'default/mcp')?.mcp?.targets).toEqual([
      { name: 'a', command: ['/bin/a', 'b'], env: { TOKEN: 'openai-key' }, tools: { include: ['x'] } },
    ])
    expect(JSON.stringify(await load(`mcp: { a: { ${command}, inheritEnv: true } }`))).toContain('"inheritEnv":true')
    await expect(load(`mcp: { a: { url: 'http://localhost', inheritEnv: true } }`)).rejects.toThrow('is the environment of command; remove it [PX3008]')
    await expect(load(`mcp: { a: { ${command}, url: 'http://localhost' } }`)).rejects.toThrow(
      'mcp.a.url: is not used with command; remove one of them [PX3008]',
    )
    await expect(load(`mcp: { a: { ${command}, apiKey: x } }`)).rejects.toThrow('is not used with command; remove it [PX3008]')
    await expect(load(`mcp: { a: { url: 'http://localhost', env: { A: b } } }`)).rejects.toThrow('is the environment of command; remove it [PX3008]')
    await expect(load(`mcp: { a: { ${command} } }`, { placeholders: 'literal' })).rejects.toThrow(
      'is not run from a file that is used together with XDS_ADDRESS [PX3015]',
    )
  })

  test('read pins of tools from a file, and reject a file that is none', async () => {
    const text = `mcp: { toolPins: { pins: '\${file:pins.json}', action: Hold }, a: { url: 'http://localhost:9000/mcp' } }`
    await writeFile(join(directory, 'pins.json'), '{"a":{}}')
    expect(backendOf(await load(text), 'default/mcp')?.mcp?.toolPins).toEqual({ pins: '{"a":{}}', action: 'Hold' })
    await writeFile(join(directory, 'pins.json'), '{"a":[]}')
    await expect(load(text)).rejects.toThrow(/has no object of tools at "a".*PX1333/)
  })

  test('reject two tools with one name for clients', async () => {
    const overrides = '[{ name: x, rename: z }, { name: y, rename: z }]'
    const reported = load(`mcp: { a: { url: 'http://localhost:9000/mcp', tools: { overrides: ${overrides} } } }`)
    await expect(reported).rejects.toThrow('tools x of target a and y of target a are both z for clients')
  })

  test('keep a limit of bodies that the file sets', async () => {
    const limit = (messages: readonly ConfigMessage[]): unknown[] =>
      messages.flatMap((one) => (one.kind === 'policy' ? (one.message.frontend?.http?.maxBufferSize ?? []) : []))
    expect(limit(await load(TEN_LINES))).toEqual([33_554_432])
    const own = `policies:
- { key: f, policy: { kind: ProxyPolicy, namespace: default, name: f }, target: { kind: Gateway, namespace: default, name: config }, frontend: { http: { maxBufferSize: 1000 } } }
`
    expect(limit(await load(TEN_LINES + own))).toEqual([1000])
  })

  test.each<[provider: string, neutral: string, more: string]>([
    ['openai', 'providerA', ''],
    ['azureOpenAI', 'providerB', 'endpoint: x.openai.azure.com'],
    ['anthropic', 'providerC', ''],
    ['gemini', 'providerD', ''],
    ['vertexAI', 'providerE', 'projectId: p, region: r'],
    ['bedrock', 'providerF', ''],
  ])('accept the provider %s under its real and its neutral name', async (name, neutral, more) => {
    const long = async (written: string): Promise<Backend | undefined> =>
      backendOf(await load(model(`{ ${written}: { apiKey: k, ${more} } }`)), 'default/llm.m')
    expect(Object.keys((await long(name))?.ai?.provider ?? {})).toEqual([neutral])
    expect(await long(neutral)).toEqual(await long(name))
    expect((await long(name))?.policies?.auth).toEqual({ key: 'k' })
  })

  test.each<[sentence: string, provider: string, auth: unknown]>([
    ['that of the client for OpenAI', '{ openai: {} }', undefined],
    ['the workload of Google Cloud for Vertex AI', '{ vertexAI: { projectId: p, region: r } }', { cloudC: { type: 'AccessToken' } }],
    ['the default chain of AWS for Bedrock', '{ bedrock: {} }', { cloudA: {} }],
    ['the access key of Bedrock', '{ bedrock: { accessKeyId: a, secretAccessKey: b } }', { cloudA: { secretRef: { secret: 'opaque/default/llm.m' } } }],
    ['that of the policies', '{ openai: {}, policies: { auth: { passthrough: {} } } }', { passthrough: {} }],
  ])('use as credential %s', async (_, provider, auth) => {
    expect(backendOf(await load(model(provider)), 'default/llm.m')?.policies?.auth).toEqual(auth)
  })

  test.each<[url: string, kind: string, host: string, port: number, isTls: boolean, path: string | undefined]>([
    ['https://api.groq.com/openai/v1', 'openai', 'api.groq.com', 443, true, '"/openai" + request.pathAndQuery'],
    ['https://llm.example.com/api', 'openai', 'llm.example.com', 443, true, '"/api" + request.pathAndQuery.stripPrefix("/v1")'],
    ['https://proxy.example.com/a/v1', 'anthropic', 'proxy.example.com', 443, true, '"/a" + request.pathAndQuery'],
    ['http://localhost:11434/v1/', 'openai', 'localhost', 11_434, false, undefined],
    ['http://[::1]:8000', 'openai', '::1', 8000, false, undefined],
    ['https://api.groq.com/openai/v1', 'preset', 'api.groq.com', 443, true, undefined],
    ['https://proxy.example.com/groq/openai/v1', 'preset', 'proxy.example.com', 443, true, '"/groq" + request.pathAndQuery'],
    ['http://proxy.example.com/api', 'preset', 'proxy.example.com', 80, false, '"/api" + request.pathAndQuery.stripPrefix("/openai/v1")'],
    ['https://proxy.example.com/anthropic', 'anthropic', 'proxy.example.com', 443, true, '"/anthropic" + request.pathAndQuery'],
  ])('send requests to %s of %s', async (url, kind, host, port, isTls, path) => {
    const backend = backendOf(await load(model(`{ ${kind}: { ${kind === 'preset' ? 'name: groq, ' : ''}url: '${url}' } }`)), 'default/llm.m')
    expect(backend?.ai?.provider).toMatchObject({ host, port })
    expect(backend?.policies?.tls).toEqual(isTls ? {} : undefined)
    expect(backend?.policies?.transformation?.request?.set).toEqual(path === undefined ? undefined : [{ name: ':path', value: path }])
  })

  test.each<[written: string, provider: object, policies: object]>([
    ['{ preset: { name: groq, model: x, apiKey: k } }', { preset: 'groq', model: 'x' }, { auth: { key: 'k' } }],
    ['{ preset: { name: ollama } }', { preset: 'ollama', host: 'localhost', port: 11_434 }, {}],
    ['{ preset: { name: databricks, url: "https://x.example.com" } }', { preset: 'databricks', host: 'x.example.com', port: 443 }, { tls: {} }],
    ['{ preset: { name: ollama, url: "http://gpu:1/v1" } }', { preset: 'ollama', host: 'gpu', port: 1 }, {}],
    [
      '{ custom: { baseUrl: "https://llm.example.com/v1", model: x, apiKey: k, formats: [Messages], rules: { drop: [seed] } } }',
      { custom: { baseUrl: 'https://llm.example.com/v1', model: 'x', formats: ['Messages'], rules: { drop: ['seed'] } } },
      { auth: { key: 'k' } },
    ],
  ])('expand %s', async (written, provider, policies) => {
    const messages = await load(model(written))
    expect(backendOf(messages, 'default/llm.m')?.ai?.provider).toEqual(provider)
    expect(backendOf(messages, 'default/llm.m')?.policies).toMatchObject(policies)
    expect(backendOf(messages, 'default/llm')?.ai?.groups).toHaveLength(1)
  })

  test.each<[written: string, problem: string]>([
    ['{ preset: { name: databricks } }', 'llm.models.m.preset.url: is needed: databricks is a server of your own'],
    ['{ custom: { baseUrl: "https://u:p@x" } }', 'llm.models.m.custom.baseUrl: '],
  ])('reject %s', async (written, problem) => {
    expect(await problemsOf(`llm:\n  models:\n    m: ${written}\n`)).toEqual([expect.stringContaining(problem)])
  })

  test('list as many names in the error of unknown models as a response can have', async () => {
    const names = Array.from({ length: 64 }, (_, index) => `model-${index}-${'x'.repeat(200)}`)
    const messages = await load(`llm:\n  models:\n${names.map((name) => `    ${name}: { openai: {} }\n`).join('')}`)
    const bodies = messages.flatMap((one) => (one.kind === 'policy' ? (one.message.traffic?.directResponse?.body ?? []) : []))
    expect(Math.max(...bodies.map((body) => body.length))).toBeLessThanOrEqual(4096)
    expect(bodies[0]).toContain('model-0-')
    expect(bodies[0]).toContain('...')
  })

  test('route requests by the header that the gateway sets, which is removed afterwards', async () => {
    const messages = await load(TEN_LINES)
    expect(routeOf(messages, 'default/llm.claude.00')?.filters).toEqual({ requestHeaders: [{ remove: ['x-proxy-llm-model'] }] })
    expect(messages).toContainEqual({
      kind: 'policy',
      message: expect.objectContaining({
        target: { kind: 'Gateway', namespace: 'default', name: 'config', section: 'llm' },
        traffic: expect.objectContaining({
          phase: 'PreRouting',
          transformation: { request: { set: [expect.objectContaining({ name: 'x-proxy-llm-model' })] } },
        }),
      }),
    })
  })
})

describe('an invalid short form is an error with file, line, column and path', () => {
  test.each<[sentence: string, text: string, problems: string[]]>([
    ['no model', 'llm: { models: {} }', ['gateway.yaml:1:8: llm.models: must NOT have fewer than 1 properties, is an object']],
    ['no models', 'llm: {}', ['gateway.yaml:1:1: llm: models is missing']],
    [
      'no provider',
      model('{}'),
      [
        'gateway.yaml:1:18: llm.models.m: exactly one of the fields in [openai azureOpenAI anthropic gemini vertexAI bedrock preset custom providers to rules] must be set',
      ],
    ],
    [
      'a target that is no model of the section, and one that leads back',
      'llm: { models: { m: { to: [{ model: x }] }, a: { to: [{ model: b }] }, b: { to: [{ model: a }] } } }',
      [
        'gateway.yaml:1:30: llm.models.m.to[0].model: x is not the name of one of llm.models',
        'gateway.yaml:1:57: llm.models.a.to[0].model: b leads back to a; remove one of the targets in the circle',
        'gateway.yaml:1:84: llm.models.b.to[0].model: a leads back to b; remove one of the targets in the circle',
      ],
    ],
    ['a misspelt provider', model('{ opnai: {} }'), ['gateway.yaml:1:23: llm.models.m.opnai: unknown field; did you mean openai?']],
    ['a misspelt section', 'lllm: {}', ['gateway.yaml:1:1: lllm: unknown field; did you mean llm?']],
    ['a misspelt key', model('{ openai: { apikey: a } }'), ['gateway.yaml:1:33: llm.models.m.openai.apikey: unknown field; did you mean apiKey?']],
    ['a missing project', model('{ vertexAI: { region: r } }'), ['gateway.yaml:1:23: llm.models.m.vertexAI: projectId is missing']],
    [
      'a misspelt required field',
      model('{ vertexAI: { region: r, projectid: p } }'),
      ['gateway.yaml:1:46: llm.models.m.vertexAI.projectid: unknown field; did you mean projectId?'],
    ],
    [
      'two credentials',
      model('{ openai: { apiKey: a }, policies: { auth: { key: b } } }'),
      ['gateway.yaml:1:33: llm.models.m.openai.apiKey: is not used with policies.auth; remove one of them'],
    ],
    [
      'half a credential',
      model('{ bedrock: { accessKeyId: a } }'),
      ['gateway.yaml:1:23: llm.models.m.bedrock: needs both accessKeyId and secretAccessKey, or neither'],
    ],
    [
      'a URL of another scheme',
      model("{ openai: { url: 'ftp://a' } }"),
      ['gateway.yaml:1:33: llm.models.m.openai.url: must be a URL that starts with http:// or https://, is "ftp://a"'],
    ],
    ['a URL without a host', model("{ openai: { url: 'http://:1' } }"), ['gateway.yaml:1:33: llm.models.m.openai.url: is not a valid URL']],
    [
      'a URL with a password',
      model("{ openai: { url: 'http://a:secret@b' } }"),
      ['gateway.yaml:1:33: llm.models.m.openai.url: contains a user name or password; use apiKey, or policies.auth'],
    ],
    [
      'a URL with a query',
      model("{ openai: { url: 'http://a/v1?b' } }"),
      ['gateway.yaml:1:33: llm.models.m.openai.url: contains a query, which the paths of the API do not have; remove it'],
    ],
    ['no MCP server', 'mcp: { port: 80 }', ['gateway.yaml:1:1: mcp: has no server; add one: everything: { url: https://mcp.example.com/mcp }']],
    ['an MCP server without URL', 'mcp: { a: {} }', ['gateway.yaml:1:8: mcp.a: url is missing']],
    ['an MCP server as text', "mcp: { a: 'http://b' }", ['gateway.yaml:1:8: mcp.a: must be an object, is "http://b"']],
    [
      'an MCP server with a name that cannot be a prefix',
      "mcp: { A_b: { url: 'http://b' } }",
      ['gateway.yaml:1:8: mcp.A_b: is the name of a server, which consists of lower-case letters, digits and -; it becomes the prefix of its tools'],
    ],
    [
      'one port for both',
      "llm: { port: 3000, models: { m: { openai: {} } } }\nmcp: { a: { url: 'http://b' } }",
      ['gateway.yaml:2:1: mcp.port: 3000 is already bound by llm.port; put the listeners together'],
    ],
    [
      'a certificate that does not exist',
      "mcp: { tls: { cert: a.crt, key: a.key }, a: { url: 'http://b' } }",
      ['gateway.yaml:1:15: mcp.tls.cert: a.crt: no such file', 'gateway.yaml:1:28: mcp.tls.key: a.key: no such file'],
    ],
    [
      'a second transformation before routing',
      'llm: { models: { m: { openai: {} } }, policies: { phase: PreRouting, transformation: { request: { remove: [a] } } } }',
      ['gateway.yaml:1:70: llm.policies.transformation: is not available in phase PreRouting, where llm uses it to choose the model; use phase PostRouting'],
    ],
  ])('for %s', async (_, text, problems) => {
    expect(await problemsOf(text)).toEqual(problems)
  })
})

describe('durations of a config file', () => {
  const route = (text: string): string => `binds: [{ port: 80, listeners: [{ routes: [{ name: r, ${text}, backends: [{ host: 'a:1' }] }] }] }]`

  test('are accepted beside milliseconds', async () => {
    const written = routeOf(await load(route('timeouts: { request: 10s, backendRequest: 1m30s }, retry: { attempts: 2, backoff: 100ms }')), 'default/r.00')
    expect([written?.timeouts, written?.retry]).toEqual([
      { requestMs: 10_000, backendRequestMs: 90_000 },
      { attempts: 2, backoffMs: 100 },
    ])
    expect(
      routeOf(await load(route('timeouts: { requestMs: 10000, backendRequestMs: 90000 }, retry: { attempts: 2, backoffMs: 100 }')), 'default/r.00'),
    ).toEqual(written)
  })

  test('are an error if they are invalid, or written in both forms', async () => {
    expect(await problemsOf(route('timeouts: { request: 10 seconds }'))).toEqual([
      'gateway.yaml:1:67: binds[0].listeners[0].routes[0].timeouts.request: must be a duration such as 500ms, 10s or 1m30s, is "10 seconds"',
    ])
    expect(await problemsOf(route('timeouts: { request: 10s, requestMs: 1 }'))).toEqual([
      'gateway.yaml:1:55: binds[0].listeners[0].routes[0].timeouts: at most one of the fields in [request requestMs] may be set',
    ])
  })
})

test('a transformation of a model is added to the path of its URL', async () => {
  const text = model(
    "{ openai: { url: 'http://a/b' }, policies: { transformation: { request: { set: [{ name: x-a, value: '1' }] }, response: { remove: [x-b] } } } }",
  )
  expect(backendOf(await load(text), 'default/llm.m')?.policies?.transformation).toEqual({
    request: { set: [expect.objectContaining({ name: ':path' }), { name: 'x-a', value: '1' }] },
    response: { remove: ['x-b'] },
  })
})
