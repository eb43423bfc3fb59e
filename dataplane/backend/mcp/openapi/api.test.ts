import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { BackendFull, MCPBackend, OpenApiTool, ResolvedMcpOpenApi } from '#gen/config/types.ts'
import { staticTarget, type GatewayConfig, type McpGateway } from '../testing/gateway.ts'
import { modernCall, modernHeaders } from '../testing/modern.ts'
import { begin, call, initialize, MCP_HEADERS, send, sendModern, TestBed, until } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const id = { argument: 'id', name: 'id', in: 'path', style: 'simple', explode: false } as const
const inputSchema = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'], additionalProperties: false }
const outputSchema = { type: 'object', properties: { name: { type: ['string', 'null'] } } }

function tool(name: string, { more = {}, schema = {} }: { more?: Partial<OpenApiTool>; schema?: object } = {}): OpenApiTool {
  return { name, definition: JSON.stringify({ name, inputSchema, ...schema }), method: 'GET', path: '/pets/{id}', parameters: [id], ...more }
}

const create = tool('create', {
  more: { method: 'POST', path: '/pets', parameters: [], body: { argument: 'body', mediaType: 'application/json', kind: 'json' } },
  schema: { inputSchema: { type: 'object', properties: { body: { type: 'object' } } } },
})

const api = (tools: OpenApiTool[], more: Partial<ResolvedMcpOpenApi> = {}): ResolvedMcpOpenApi => ({
  title: 'Pets',
  version: '2.1',
  path: '/v1',
  tools,
  ...more,
})

type Target = MCPBackend['targets'][number]
const target = (port: number, openapi: ResolvedMcpOpenApi, policies?: NonNullable<Target['static']>['policies']): Target => ({
  ...staticTarget('pets', port, policies && { policies }),
  openapi,
})

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

/** An HTTP API. Returns what it received. */
async function startApi(
  answer: (request: IncomingMessage, response: ServerResponse, count: number) => void,
): Promise<{ port: number; seen: Seen[]; address: Awaited<ReturnType<TestBed['scripted']>> }> {
  const seen: Seen[] = []
  const address = await bed.scripted((request, response, body) => {
    seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body })
    answer(request, response, seen.length)
  })
  return { port: address.port, seen, address }
}

const json = (response: ServerResponse, value: unknown, status = 200) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
const petApi = () => startApi((_, response) => json(response, { name: 'Rex' }))

async function gatewayFor(targets: Target[], more: GatewayConfig & { readonly backend?: Partial<MCPBackend> } = {}): Promise<McpGateway> {
  const { backend, ...config } = more
  return bed.gateway({ mcp: { targets, ...backend }, ...config })
}

async function callTool(gateway: McpGateway, name: string, args?: object) {
  const { post } = await begin(gateway.url)
  return (await post(call('tools/call', { name, ...(args && { arguments: args }) }))).json
}

const textIn = (result: unknown): string => (result as { content: { text: string }[] }).content.map(({ text }) => text).join('\n')

describe('an HTTP API as an MCP server (mcp.md §2.1)', () => {
  test('is a server whose name is that of the target, with tools only', async () => {
    const { url } = await gatewayFor([target(1, api([], { instructions: 'Pets of all kinds.' }))])
    expect((await send(url, 'POST', MCP_HEADERS, initialize('2025-03-26'))).json.result).toEqual({
      protocolVersion: '2025-03-26',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'pets', version: '2.1', title: 'Pets' },
      instructions: 'Pets of all kinds.',
    })
    expect((await send(url, 'POST', MCP_HEADERS, initialize('2020-01-01'))).json.result?.['protocolVersion']).toBe('2025-11-25')
    const { post } = await begin(url)
    expect((await post(call('ping'))).json.result).toEqual({})
    expect((await post(call('tools/list'))).json.result).toEqual({ tools: [] })
    expect((await post(call('prompts/list'))).json.error?.code).toBe(-32601)
  })

  test('clients of the SDK list its tools and call them', async () => {
    const { port, seen } = await petApi()
    const gateway = await gatewayFor([target(port, api([tool('get', { schema: { outputSchema, title: 'Pet' } }), create]))])
    const client = await bed.client(gateway)
    expect((await client.listTools()).tools).toMatchObject([{ name: 'get', title: 'Pet', inputSchema, outputSchema }, { name: 'create' }])
    expect(await client.callTool({ name: 'get', arguments: { id: 'a/b' } })).toEqual({
      content: [{ type: 'text', text: '{"name":"Rex"}' }],
      structuredContent: { name: 'Rex' },
    })
    await client.callTool({ name: 'create', arguments: { body: { name: 'Tom' } } })
    expect(seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['GET', '/v1/pets/a%2Fb', undefined],
      ['POST', '/v1/pets', { name: 'Tom' }],
    ])
    expect(Object.keys(seen[0]?.headers ?? {}).filter((header) => header.startsWith('mcp-'))).toEqual([])
  })

  test.each([
    ['without the required one', {}, 'Invalid arguments: arguments.id is required'],
    ['of the wrong type', { id: 1 }, 'Invalid arguments: arguments.id must be a string, and is a number'],
    ['that are unknown', { id: 'x', y: 1 }, 'Invalid arguments: arguments.y is unknown: the members are id'],
    ['that leave their place in the path', { id: '..' }, 'Invalid arguments: the arguments make a path with a segment . or .., which is not allowed'],
  ])('arguments %s are an error of the tool, and nothing is sent', async (_, args, message) => {
    const { port, seen } = await petApi()
    const { result } = await callTool(await gatewayFor([target(port, api([tool('get')]))]), 'get', args)
    expect(result).toEqual({ content: [{ type: 'text', text: message }], isError: true })
    expect(seen).toEqual([])
  })

  test('an unknown tool is an error of the request', async () => {
    const gateway = await gatewayFor([target(1, api([tool('get')]))])
    expect((await callTool(gateway, 'other')).error).toEqual({ code: -32602, message: 'Unknown tool: other' })
    expect((await callTool(gateway, 'constructor')).error?.code).toBe(-32602)
  })

  test('is no MCP server at well-known paths', async () => {
    const { port, seen } = await petApi()
    const { url } = await gatewayFor([target(port, api([]))])
    expect((await send(url, 'GET', {}, undefined, '/.well-known/oauth-protected-resource')).status).toBe(406)
    expect(seen).toEqual([])
  })

  test('a broken document has no tools, and other targets go on', async () => {
    const one = await bed.upstream('one')
    const gateway = await gatewayFor([target(1, api([], { invalid: 'it is not an object' })), staticTarget('b', one.port)])
    const { post } = await begin(gateway.url)
    const { tools } = (await post(call('tools/list'))).json.result as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(['b_echo', 'b_with_under_score', 'b_link'])
  })
})

describe('responses of an HTTP API', () => {
  const resultOf = async (answer: (response: ServerResponse) => void, schema = {}) => {
    const { port } = await startApi((_, response) => answer(response))
    return (await callTool(await gatewayFor([target(port, api([tool('get', { schema })]))]), 'get', { id: '1' })).result
  }

  test('that are objects have structured content, with their numbers', async () => {
    const text = '{\n "id": 12345678901234567890,\r\n "x": 1.0 }'
    const result = await resultOf((response) => void response.writeHead(200, { 'content-type': 'application/problem+json' }).end(text))
    expect(result).toMatchObject({ content: [{ type: 'text', text }], structuredContent: { x: 1 } })
  })

  test.each([
    ['an array', 'application/json', '[1]'],
    ['text', 'text/plain; charset=utf-8', 'hello'],
    ['YAML', 'application/yaml', 'a: 1'],
    ['YAML of the older type', 'application/x-yaml', 'a: 1'],
    ['broken JSON', 'application/json', '{"a":'],
    ['nothing', 'application/json', ''],
  ])('that are %s are text', async (_, type, text) => {
    expect(await resultOf((response) => void response.writeHead(200, { 'content-type': type }).end(text))).toEqual({ content: [{ type: 'text', text }] })
  })

  test.each([200, 404])('with status %d lose a byte order mark', async (status) => {
    const text = '{"name":"Rex"}'
    const result = await resultOf((response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(`\ufeff${text}`), { outputSchema })
    expect(result).toEqual(
      status === 200
        ? { content: [{ type: 'text', text }], structuredContent: { name: 'Rex' } }
        : { content: [{ type: 'text', text: `HTTP 404\n${text}` }], isError: true },
    )
  })

  test('have the charset of their content type', async () => {
    const text = Buffer.from('caf\u00e9', 'latin1')
    const result = await resultOf((response) => void response.writeHead(200, { 'content-type': 'text/plain; charset=ISO-8859-1' }).end(text))
    expect(textIn(result)).toBe('caf\u00e9')
  })

  test('with a next page name its arguments', async () => {
    const { port } = await startApi((_, response) => {
      response.setHeader('link', '<http://internal/pets?page=2>; rel="next"')
      json(response, [])
    })
    const page = { argument: 'page', name: 'page', in: 'query', style: 'form', explode: true } as const
    const list = tool('list', {
      more: { path: '/pets', parameters: [page] },
      schema: { inputSchema: { type: 'object', properties: { page: { type: 'integer' } } } },
    })
    const { result } = await callTool(await gatewayFor([target(port, api([list]))]), 'list', {})
    expect(result).toEqual({
      content: [
        { type: 'text', text: '[]' },
        { type: 'text', text: 'There are more results: call again with the arguments {"page":2}' },
      ],
    })
  })

  test('that are images are images', async () => {
    const result = await resultOf((response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([1, 2])))
    expect(result).toEqual({ content: [{ type: 'image', data: 'AQI=', mimeType: 'image/png' }] })
  })

  test('that are neither text nor media are an error of the tool', async () => {
    const result = await resultOf((response) => void response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF'))
    expect(result).toMatchObject({ isError: true, content: [{ text: 'The response has the content type application/pdf, which is no text, image or audio' }] })
  })

  test.each([
    [404, '{"message":"no such pet"}', 'HTTP 404\n{"message":"no such pet"}'],
    [500, '', 'HTTP 500'],
    [302, '{"to":"elsewhere"}', 'HTTP 302: a redirect, which is not followed'],
    [304, '', 'HTTP 304: not modified. The resource meets the condition of the request, such as If-None-Match, and the response has no content'],
  ])('with status %d are an error of the tool', async (status, body, text) => {
    const result = await resultOf((response) => void response.writeHead(status, { 'content-type': 'application/json', location: 'http://internal/' }).end(body))
    expect(result).toEqual({ content: [{ type: 'text', text }], isError: true })
  })

  test('that are larger than the limit are an error of the tool', async () => {
    const result = await resultOf((response) => json(response, { a: 'x'.repeat(1024 * 1024) }))
    expect(result).toMatchObject({ isError: true, content: [{ text: 'The response is larger than 1048576 bytes' }] })
  })

  test('texts of errors are cut', async () => {
    const result = await resultOf((response) => void response.writeHead(400, { 'content-type': 'text/plain' }).end('x'.repeat(100_000)))
    expect(textIn(result)).toMatch(/^HTTP 400\nx{16384}\.\.\. \(100000 characters\)$/)
  })

  test('texts of errors are not cut within a character', async () => {
    const result = await resultOf((response) => void response.writeHead(400, { 'content-type': 'text/plain' }).end(`${'x'.repeat(16_383)}\u{1f600}`))
    expect(textIn(result)).toMatch(/^HTTP 400\nx{16383}\ufffd\.\.\. \(16385 characters\)$/)
  })

  test.each(['gzip', 'br', 'compress'])('that do not match their content-encoding %s are an error of the tool', async (coding) => {
    const result = await resultOf((response) => void response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding }).end('{}'))
    expect(result).toEqual({ content: [{ type: 'text', text: 'The API could not be called: protocol error' }], isError: true })
  })

  test('that are empty have an empty object for a tool with an output schema', async () => {
    expect(await resultOf((response) => void response.writeHead(204).end(), { outputSchema })).toEqual({
      content: [{ type: 'text', text: '' }],
      structuredContent: {},
    })
  })

  test('that do not match the output schema are an error of the tool that says so', async () => {
    const result = await resultOf((response) => json(response, { name: 1 }), { outputSchema })
    expect(result).toMatchObject({ isError: true })
    expect(textIn(result)).toBe(
      'The API succeeded, and its response does not match its description: result.name must be a string or null, and is a number\n{"name":1}',
    )
  })
})

describe('calls of an HTTP API', () => {
  test('that fail are an error of the tool without an address', async () => {
    const { result } = await callTool(await gatewayFor([target(1, api([tool('get')]))]), 'get', { id: '1' })
    expect(result).toEqual({ content: [{ type: 'text', text: 'The API could not be called: connection refused' }], isError: true })
  })

  test('that take too long are an error of the tool', async () => {
    const { port } = await startApi(() => undefined)
    const policies: BackendFull = { http: { requestTimeout: '1s' } }
    expect((await callTool(await gatewayFor([target(port, api([tool('get')]))], { policies }), 'get', { id: '1' })).result).toMatchObject({
      isError: true,
      content: [{ text: 'The API could not be called: timeout' }],
    })
  })

  test.each<[at: string, others: number, answer: (response: ServerResponse) => void]>([
    ['before the response', 0, () => undefined],
    ['within the response', 0, (response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{')],
    ['with several targets', 1, () => undefined],
  ])('end without a response when the client cancels them %s', async (_, others, answer) => {
    let open = 0
    const { port } = await startApi((_request, response) => {
      open++
      response.on('close', () => open--)
      answer(response)
    })
    const more = await Promise.all(Array.from({ length: others }, async () => staticTarget('b', (await bed.upstream('b')).port)))
    const gateway = await gatewayFor([target(port, api([tool('get')])), ...more], {
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { retry: { codes: [503], attempts: 3, backoff: '1ms' } } }],
    })
    const { post } = await begin(gateway.url)
    const called = post(call('tools/call', { name: others === 0 ? 'get' : 'pets_get', arguments: { id: '1' } }, 5))
    await until('the call', () => open === 1)
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: '5' } })
    expect(open).toBe(1)
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    expect(await called).toMatchObject({ status: 200, text: '' })
    await until('the end of the call', () => open === 0)
  })

  test('have the credentials of the target', async () => {
    const { port, seen } = await petApi()
    await callTool(await gatewayFor([target(port, api([tool('get')]), { auth: { key: 'secret' } })]), 'get', { id: '1' })
    expect(seen[0]?.headers['authorization']).toBe('Bearer secret')
  })

  test.each([
    ['GET', 2],
    ['POST', 1],
  ] as const)('are retried by the policy of the route if they are %s', async (method, count) => {
    const { port, seen } = await startApi((_, response, number) => (number === 1 ? json(response, {}, 503) : json(response, {})))
    const gateway = await gatewayFor([target(port, api([tool('get', { more: { method } })]))], {
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { retry: { codes: [503], attempts: 1, backoff: '1ms' } } }],
    })
    await callTool(gateway, 'get', { id: '1' })
    expect(seen).toHaveLength(count)
  })

  test('go to the Service of the reference', async () => {
    const { seen, address } = await petApi()
    const openapi = api([tool('get')], { backend: { service: 'ns/pets', port: 80 } })
    const gateway = await gatewayFor([{ name: 'pets', openapi }], { services: { 'ns/pets': [address] } })
    expect((await callTool(gateway, 'get', { id: '1' })).result).toMatchObject({ structuredContent: { name: 'Rex' } })
    expect(seen.map(({ url }) => url)).toEqual(['/v1/pets/1'])
  })

  test('to a Service that does not resolve are an error of the tool', async () => {
    const gateway = await gatewayFor([{ name: 'pets', openapi: api([tool('get')], { backend: { invalid: 'BACKEND_NOT_FOUND' } }) }])
    expect((await callTool(gateway, 'get', { id: '1' })).result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^The API could not be called: [a-z ]+$/) }],
    })
  })

  test('need no session in mode Stateless', async () => {
    const { port } = await petApi()
    const { url } = await gatewayFor([target(port, api([tool('get')]))], { backend: { sessionRouting: 'Stateless' } })
    const { json: message } = await send(url, 'POST', MCP_HEADERS, call('tools/call', { name: 'get', arguments: { id: '1' } }))
    expect(message.result).toMatchObject({ structuredContent: { name: 'Rex' } })
  })

  test('are counted and logged like those of an MCP server', async () => {
    const { port } = await petApi()
    const gateway = await gatewayFor([target(port, api([tool('get')]))])
    await callTool(gateway, 'get', { id: '1' })
    const count = () =>
      [...gateway.registry.expose('text')].join('').includes('mcp_requests_total{method="tools/call",resource_type="tool",server="pets",resource="get"')
    await until('the count', count)
    expect(count()).toBe(true)
  })
})

describe('an HTTP API beside MCP servers', () => {
  test('its tools have the prefix of the target, and rules apply', async () => {
    const { port, seen } = await petApi()
    const one = await bed.upstream('one')
    const policies: BackendFull = {
      mcp: { authorization: { action: 'Deny', policy: { matchExpressions: ['mcp.tool.name == "create"', 'mcp.tool.arguments.id == "secret"'] } } },
    }
    const gateway = await gatewayFor([target(port, api([tool('get'), create])), staticTarget('b', one.port)], { policies })
    const { post } = await begin(gateway.url)
    const { tools } = (await post(call('tools/list'))).json.result as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(['pets_get', 'b_echo', 'b_with_under_score', 'b_link'])
    expect((await post(call('tools/call', { name: 'pets_get', arguments: { id: '7' } }))).json.result).toMatchObject({ structuredContent: { name: 'Rex' } })
    expect((await post(call('tools/call', { name: 'pets_create', arguments: {} }))).json.error?.message).toBe('Unknown tool: pets_create')
    expect((await post(call('tools/call', { name: 'pets_get', arguments: { id: 'secret' } }))).json.error?.message).toBe('Unknown tool: pets_get')
    // As for a tool that rules deny.
    expect((await post(call('tools/call', { name: 'pets_other', arguments: {} }))).json.error?.message).toBe('Unknown tool: pets_other')
    expect((await post(call('prompts/list'))).json.result?.['prompts']).toEqual([expect.objectContaining({ name: 'b_greet' })])
    expect((await post(call('ping'))).json.result).toEqual({})
    expect(seen.map(({ url }) => url)).toEqual(['/v1/pets/7'])
  })

  test('names without prefix find their target', async () => {
    const { port } = await petApi()
    const one = await bed.upstream('one')
    const gateway = await gatewayFor([target(port, api([tool('get')])), staticTarget('b', one.port)], { backend: { prefixMode: 'Never' } })
    expect((await callTool(gateway, 'get', { id: '1' })).result).toMatchObject({ structuredContent: { name: 'Rex' } })
    expect(textIn((await callTool(gateway, 'echo', { text: 'x' })).result)).toBe('one: x')
  })
})

describe('clients of revision 2026-07-28', () => {
  test.each([
    ['alone', false],
    ['beside an MCP server', true],
  ])('use an HTTP API %s', async (_, isFederated) => {
    const { port } = await petApi()
    const others = isFederated ? [staticTarget('b', (await bed.upstream('one')).port)] : []
    const { url } = await gatewayFor([target(port, api([tool('get', { schema: { outputSchema } })])), ...others])
    const client = new ModernClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new StreamableHTTPClientTransport(url))
    bed.onClose(() => client.close())
    const name = isFederated ? 'pets_get' : 'get'
    expect((await client.listTools()).tools[0]?.name).toBe(name)
    expect(await client.callTool({ name, arguments: { id: '1' } })).toMatchObject({ structuredContent: { name: 'Rex' } })
    expect(await client.callTool({ name, arguments: {} })).toMatchObject({ isError: true })
  })

  test('receive changes of tools on their subscription', async () => {
    const { port } = await petApi()
    const gateway = await gatewayFor([target(port, api([tool('get')]))])
    const controller = new AbortController()
    const body = JSON.stringify(modernCall('subscriptions/listen', { notifications: { toolsListChanged: true } }))
    const response = await fetch(gateway.url, { method: 'POST', headers: modernHeaders('subscriptions/listen'), body, signal: controller.signal })
    let received = ''
    const reading = (async () => {
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) received += Buffer.from(chunk).toString()
    })().catch(() => undefined)
    await until('the acknowledgement', () => received.includes('notifications/subscriptions/acknowledged'))
    gateway.configure({ mcp: { targets: [target(port, api([tool('find')]))] } })
    await until('the change', () => received.includes('notifications/tools/list_changed'))
    controller.abort()
    await reading
    expect(received).toContain('notifications/tools/list_changed')
  })
})

describe('a new version of the document', () => {
  test.each([
    ['alone', false],
    ['beside an MCP server', true],
  ])('notifies open sessions of a target %s, and its tools apply to them', async (_, isFederated) => {
    const { port } = await petApi()
    const others = isFederated ? [staticTarget('b', (await bed.upstream('one')).port)] : []
    const targetsOf = (openapi: ResolvedMcpOpenApi) => ({ mcp: { targets: [target(port, openapi), ...others] } })
    const gateway = await gatewayFor(targetsOf(api([tool('get')])).mcp.targets)
    let notified = 0
    const client = await bed.client(gateway, { prepare: (one) => one.setNotificationHandler(ToolListChangedNotificationSchema, () => void notified++) })
    const prefix = isFederated ? 'pets_' : ''
    const own = async () => (await client.listTools()).tools.map(({ name }) => name).filter((name) => !name.startsWith('b_'))
    expect(await own()).toEqual([`${prefix}get`])
    // The stream of notifications opens after `connect`: repeat the change until a session receives it.
    for (let version = 0; notified === 0; version++) {
      gateway.configure(targetsOf(api([tool('find', { schema: { title: String(version) } })])))
      await client.ping()
    }
    expect(await own()).toEqual([`${prefix}find`])
    expect(await client.callTool({ name: `${prefix}find`, arguments: { id: '1' } })).toMatchObject({ structuredContent: { name: 'Rex' } })
  })
})

test('a client of revision 2026-07-28 uses the tools, and the API gets no requests of the protocol', async () => {
  const { port, seen } = await petApi()
  const { url } = await bed.gateway({ mcp: { targets: [target(port, api([tool('show')]))] } })
  expect((await sendModern(url, 'server/discover')).json.result).toMatchObject({ resultType: 'complete', capabilities: { tools: {} } })
  expect((await sendModern(url, 'tools/list')).json.result).toMatchObject({
    resultType: 'complete',
    tools: [{ name: 'show' }],
    ttlMs: 0,
    cacheScope: 'private',
  })
  const called = await sendModern(url, 'tools/call', { name: 'show', arguments: { id: '7' } })
  expect(called.json.result).toMatchObject({ resultType: 'complete', content: [{ type: 'text' }] })
  expect(seen.map(({ method, url: path }) => [method, path])).toEqual([['GET', '/v1/pets/7']])
})
