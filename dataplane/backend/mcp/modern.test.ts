import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, EmptyResultSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { staticTarget, type GatewayConfig, type McpGateway } from './testing/gateway.ts'
import { MODERN, modernCall, modernHeaders } from './testing/modern.ts'
import { send, sendModern, TestBed, until, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const VERSIONS = [MODERN, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const SERVER = 'io.modelcontextprotocol/serverInfo'
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
const gist = ({ status, json, text }: RawAnswer): unknown[] => [status, json.error?.code ?? text]
const text = (value: string) => [{ type: 'text', text: value }]

async function withOne(more: GatewayConfig = {}) {
  const one = await bed.upstream('one')
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, ...more })
  return { one, gateway, url: gateway.url }
}

async function withTwo(more: object = {}) {
  const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)], ...more } })
  return { one, two, gateway, url: gateway.url }
}

/** A gateway in front of a server with one tool, which the test implements. */
async function withTool(call: Parameters<typeof bed.upstream>[0]) {
  const one = await bed.upstream((server: Server) => {
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'own', inputSchema: { type: 'object' as const } }] }))
    ;(call as (server: Server) => void)(server)
  })
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
  return { one, url: gateway.url }
}

describe('checks of requests without session (mcp.md §13.1)', () => {
  let gateway: McpGateway
  beforeEach(async () => void (gateway = (await withOne()).gateway))

  const echo = modernCall('tools/call', { name: 'echo' })
  const headers = modernHeaders('tools/call', { name: 'echo' })
  const without = (name: string) => Object.fromEntries(Object.entries(headers).filter(([field]) => field !== name))

  test.each<[string, Record<string, string>, object, unknown[]]>([
    ['without MCP-Protocol-Version', without('mcp-protocol-version'), echo, [400, -32020]],
    ['without Mcp-Method', without('mcp-method'), echo, [400, -32020]],
    ['with another Mcp-Method', { ...headers, 'mcp-method': 'tools/list' }, echo, [400, -32020]],
    ['with Mcp-Method in another case', { ...headers, 'mcp-method': 'Tools/Call' }, echo, [400, -32020]],
    ['without Mcp-Name', without('mcp-name'), echo, [400, -32020]],
    ['with another Mcp-Name', { ...headers, 'mcp-name': 'link' }, echo, [400, -32020]],
    ['with an Mcp-Name that is not valid Base64', { ...headers, 'mcp-name': '=?base64?@@?=' }, echo, [400, -32020]],
    [
      'with another revision in _meta',
      headers,
      modernCall('tools/call', { name: 'echo' }, { meta: { 'io.modelcontextprotocol/protocolVersion': '2025-11-25' } }),
      [400, -32020],
    ],
    ['of a revision that does not exist', { ...headers, 'mcp-protocol-version': '2030-01-01' }, echo, [400, -32022]],
    ['without _meta', headers, { ...echo, params: { name: 'echo' } }, [400, -32602]],
    [
      'without capabilities',
      headers,
      modernCall('tools/call', { name: 'echo' }, { meta: { 'io.modelcontextprotocol/clientCapabilities': undefined } }),
      [400, -32602],
    ],
    ['with a log level that does not exist', headers, modernCall('tools/call', { name: 'echo' }, { meta: { [LOG_LEVEL]: 'loud' } }), [400, -32602]],
    ['that is a response', headers, { jsonrpc: '2.0', id: 1, result: {} }, [400, -32600]],
    ['that is a batch', headers, [echo], [400, 'JSON-RPC batches are not supported: send each message in a request of its own']],
  ])('a message %s is rejected', async (_, sent, body, expected) => {
    expect(gist(await send(gateway.url, 'POST', sent, body))).toEqual(expected)
  })

  test('an error for an unknown revision lists the supported ones', async () => {
    const { json } = await send(gateway.url, 'POST', { ...headers, 'mcp-protocol-version': '2030-01-01' }, echo)
    expect([json.id, json.error?.data]).toEqual([1, { supported: VERSIONS, requested: '2030-01-01' }])
  })

  test('an encoded Mcp-Name is decoded before it is compared', async () => {
    const name = `=?base64?${Buffer.from('echo').toString('base64')}?=`
    const { json } = await send(gateway.url, 'POST', { ...headers, 'mcp-name': name }, echo)
    expect(json.result?.['content']).toEqual(text('one: '))
  })

  test.each(['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'tasks/get'])(
    '%s is an unknown method',
    async (method) => {
      expect(gist(await sendModern(gateway.url, method))).toEqual([404, -32601])
    },
  )

  test('a method that the server rejects as unknown in an event stream is 404', async () => {
    expect(gist(await sendModern(gateway.url, 'unknown/method'))).toEqual([404, -32601])
  })

  test.each(['GET', 'DELETE'])('%s is not allowed', async (method) => {
    const { status, headers: answered } = await send(gateway.url, method, {
      accept: 'text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-session-id': 'x',
    })
    expect([status, answered.allow]).toEqual([405, 'POST'])
  })

  test('a session id is ignored and none is returned', async () => {
    const answer = await sendModern(gateway.url, 'tools/list', {}, { headers: { 'mcp-session-id': 'x' } })
    expect([answer.status, answer.headers['mcp-session-id']]).toEqual([200, undefined])
  })

  test('a notification is accepted without effect', async () => {
    const { status } = await send(gateway.url, 'POST', headers, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    expect(status).toBe(202)
  })
})

describe('a client without sessions and servers with sessions (mcp.md §13.2)', () => {
  test('a server that is to have sessions only is not asked for another revision', async () => {
    const server = await bed.upstream('one')
    const found = [{ name: 'svc', service: 'ns/svc', port: 80, protocol: 'StreamableHTTP' as const, sessionsOnly: true }]
    const { url } = await bed.gateway({ mcp: { targets: [{ name: 'found', selector: { targets: found } }] }, services: { 'ns/svc': [server.address] } })
    expect((await sendModern(url, 'tools/list')).status).toBe(200)
    expect(server.log()).toEqual(['initialize', 'notifications/initialized', 'tools/list'])
  })

  test('server/discover describes a single server by its initialize result', async () => {
    const { url, one } = await withOne()
    const { json } = await sendModern(url, 'server/discover', {}, { id: 'd' })
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: 'd',
      result: {
        resultType: 'complete',
        supportedVersions: VERSIONS,
        capabilities: { logging: {}, tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
        ttlMs: 0,
        cacheScope: 'private',
        _meta: { [SERVER]: { name: 'test', version: '1' } },
      },
    })
    expect(one.log()).toEqual(['server/discover', 'initialize', 'notifications/initialized'])
    expect(one.received[1]?.body?.params).toEqual({ protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } })
  })

  test('server/discover describes several servers as one', async () => {
    const { url } = await withTwo()
    const { result } = (await sendModern(url, 'server/discover')).json
    expect(result).toMatchObject({
      capabilities: { tools: {}, prompts: {}, resources: {}, logging: {}, completions: {} },
      _meta: { [SERVER]: { name: 'proxy', version: '1.2.3' } },
    })
    expect(result?.['instructions']).toContain('(a, b)')
  })

  test('requests share one session with the server, in its revision and without the members of the newer one', async () => {
    const { url, one } = await withOne()
    const meta = { progressToken: 7, own: 'kept' }
    const called = await sendModern(url, 'tools/call', { name: 'echo', arguments: { text: 'x' } }, { id: 'mine', meta })
    expect(called.json).toEqual({
      jsonrpc: '2.0',
      id: 'mine',
      result: { content: text('one: x'), resultType: 'complete', _meta: { [SERVER]: { name: 'test', version: '1' } } },
    })
    await sendModern(url, 'tools/list', {}, { headers: { 'mcp-session-id': 'foreign' } })
    expect(one.log()).toEqual(['server/discover', 'initialize', 'notifications/initialized', 'tools/call', 'tools/list'])
    const [, , , call, list] = one.received
    expect([call?.headers['mcp-protocol-version'], call?.headers['mcp-name'], call?.body?.params]).toEqual([
      '2025-11-25',
      'echo',
      { name: 'echo', arguments: { text: 'x' }, _meta: { progressToken: expect.stringMatching(/^proxy_/), own: 'kept' } },
    ])
    expect(call?.headers['mcp-session-id']).toBe(list?.headers['mcp-session-id'])
    expect(call?.body?.id).not.toBe(list?.body?.id)
    expect(one.servers.size).toBe(1)
  })

  test.each<[string, object, object]>([
    ['tools/list', {}, { tools: expect.any(Array), ttlMs: 0, cacheScope: 'private' }],
    ['prompts/list', {}, { prompts: expect.any(Array), ttlMs: 0, cacheScope: 'private' }],
    ['prompts/get', { name: 'a_greet', arguments: { who: 'x' } }, { messages: [{ role: 'user', content: { type: 'text', text: 'one greets x' } }] }],
    ['resources/list', {}, { resources: expect.any(Array), ttlMs: 0, cacheScope: 'private' }],
    ['resources/templates/list', {}, { resourceTemplates: expect.any(Array), ttlMs: 0, cacheScope: 'private' }],
    ['resources/read', { uri: 'b+memo:x' }, { contents: [{ uri: 'b+memo:x', text: 'two memo:x' }], ttlMs: 0, cacheScope: 'private' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'b_greet' }, argument: { name: 'who', value: '' } }, { completion: { values: ['two greet'] } }],
  ])('%s is served by a federation', async (method, params, expected) => {
    const { url } = await withTwo()
    const { json } = await sendModern(url, method, params as Record<string, unknown>)
    expect(json.result).toEqual({ ...expected, resultType: 'complete', _meta: { [SERVER]: { name: 'proxy', version: '1.2.3' } } })
  })

  test('lists are the union of all targets, and calls reach one of them', async () => {
    const { url, one, two } = await withTwo()
    const { json } = await sendModern(url, 'tools/list')
    const names = ['a_echo', 'a_with_under_score', 'a_link', 'b_echo', 'b_with_under_score', 'b_link']
    expect(json.result?.['tools']).toEqual(names.map((name) => ({ name, inputSchema: { type: 'object' } })))
    expect((await sendModern(url, 'tools/call', { name: 'b_echo', arguments: { text: 'y' } })).json.result?.['content']).toEqual(text('two: y'))
    expect([one.log().includes('tools/call'), two.received.at(-1)?.headers['mcp-name']]).toEqual([false, 'echo'])
  })

  test.each(['sse', 'sessionless'] as const)('a server of transport %s is served', async (transport) => {
    const one = await bed.upstream('one', { transport })
    const protocol = transport === 'sse' ? 'SSE' : 'StreamableHTTP'
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port, { protocol, path: transport === 'sse' ? '/sse' : '/mcp' })] } })
    const calls = [1, 2, 3].map((n) => sendModern(url, 'tools/call', { name: 'echo', arguments: { text: String(n) } }, { meta: { progressToken: 1 } }))
    expect((await Promise.all(calls)).map(({ json }) => json.result?.['content'])).toEqual([text('one: 1'), text('one: 2'), text('one: 3')])
  })

  test('with Stateless, each request has a session of its own, which ends with it', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    expect((await sendModern(url, 'tools/call', { name: 'echo' })).json.result?.['content']).toEqual(text('one: '))
    await until('the end of the session', () => one.log().at(-1) === 'DELETE')
    expect(one.log()).toEqual(['server/discover', 'initialize', 'notifications/initialized', 'tools/call', 'DELETE'])
  })

  test.each<[string, Record<string, string>, Record<string, unknown>, number]>([
    ['the same client', { 'x-request-id': '2', traceparent: '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01' }, {}, 1],
    ['another credential', { authorization: 'Bearer two' }, {}, 2],
    ['another header that may be a credential', { 'x-token': '2' }, {}, 2],
    ['other capabilities', {}, { 'io.modelcontextprotocol/clientCapabilities': { experimental: { x: {} } } }, 2],
  ])('a request of %s uses the right session', async (_, headers, meta, sessions) => {
    const { url, one } = await withOne()
    await sendModern(url, 'tools/list', {}, { headers: { 'x-request-id': '1', authorization: 'Bearer one' } })
    await sendModern(url, 'tools/list', {}, { headers: { authorization: 'Bearer one', ...headers }, meta })
    expect(one.servers.size).toBe(sessions)
  })

  test.each([404, 400])('a session that the server forgot with status %i is started again', async (status) => {
    let session = 0
    let isForgotten = false
    const log: string[] = []
    const server = await bed.scripted((request, response, body) => {
      log.push(body?.method ?? '')
      if (isForgotten && request.headers['mcp-session-id'] === 's1') return void response.writeHead(status).end('Bad Request: No valid session ID provided')
      if (body?.id === undefined) return void response.writeHead(202).end()
      const isInitialize = body.method === 'initialize'
      const result = isInitialize ? { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } } : { content: [] }
      response.writeHead(200, { 'content-type': 'application/json', ...(isInitialize && { 'mcp-session-id': `s${++session}` }) })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    await sendModern(url, 'tools/call', { name: 'x' })
    isForgotten = true
    expect((await sendModern(url, 'tools/call', { name: 'x' })).json.result?.['content']).toEqual([])
    expect(log.slice(4)).toEqual(['tools/call', 'server/discover', 'initialize', 'notifications/initialized', 'tools/call'])
  })

  test('a server of the older transport that closed its stream is connected to again', async () => {
    const one = await bed.upstream('one', { transport: 'sse' })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port, { protocol: 'SSE' })] } })
    await sendModern(url, 'tools/call', { name: 'echo' })
    for (const server of one.servers.values()) await server.close()
    await until('the end of the stream', () => one.servers.size === 0)
    expect((await sendModern(url, 'tools/call', { name: 'echo' })).json.result?.['content']).toEqual(text('one: '))
  })

  test('a start that fails is tried again by the next request', async () => {
    let isDown = true
    const answer = await bed.answering(() => undefined)
    const server = await bed.scripted((request, response, body) => {
      if (isDown) return void response.writeHead(503, { 'retry-after': '3' }).end('later')
      const target = new URL(`http://127.0.0.1:${answer.port}`)
      void send(target, 'POST', { 'content-type': 'application/json' }, body).then(({ status, headers, text: content }) =>
        response.writeHead(status, { 'content-type': headers['content-type'] ?? 'text/plain' }).end(content),
      )
    })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    const failed = await Promise.all([1, 2, 3].map(() => sendModern(url, 'server/discover')))
    expect(failed.map(gist)).toEqual([1, 2, 3].map(() => [502, -32603]))
    isDown = false
    expect((await sendModern(url, 'server/discover')).status).toBe(200)
  })

  test.each([401, 403, 429])('status %i of a server reaches the client', async (status) => {
    const server = await bed.scripted((_, response) => void response.writeHead(status, { 'www-authenticate': 'Bearer x' }).end('own text'))
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    const answers = await Promise.all([1, 2].map(() => sendModern(url, 'tools/list')))
    expect(answers.map(({ status: got, headers, text: body }) => [got, headers['www-authenticate'], body])).toEqual(
      [1, 2].map(() => [status, 'Bearer x', 'own text']),
    )
  })

  test('a target that rejects each new session with 404 is 502', async () => {
    const server = await bed.scripted((_, response, body) => {
      if (body?.method !== 'initialize') return void response.writeHead(404).end()
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' }).end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    expect(gist(await sendModern(url, 'tools/list'))).toEqual([502, -32603])
  })

  test('a target that cannot be reached is 503', async () => {
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', 1, { host: '127.77.2.6' })] } })
    const { status, json } = await sendModern(url, 'tools/list')
    expect([status, json.error]).toEqual([503, { code: -32603, message: 'failed to send message: connection refused' }])
  })

  test('an unavailable target is left out with FailOpen', async () => {
    const one = await bed.upstream('one')
    const dead = staticTarget('b', 1, { host: '127.77.2.6' })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), dead], failureMode: 'FailOpen' } })
    expect((await sendModern(url, 'server/discover')).json.result?.['instructions']).toContain('(a, b)')
    expect((await sendModern(url, 'tools/list')).json.result?.['tools']).toHaveLength(3)
    expect(gist(await sendModern(url, 'tools/call', { name: 'b_echo' }))).toEqual([503, -32603])
  })

  test('without prefixes, a name is looked up', async () => {
    const { url } = await withTwo({ prefixMode: 'Never' })
    const [one, two] = [await sendModern(url, 'tools/list'), await sendModern(url, 'tools/call', { name: 'echo' })]
    expect([one.json.result?.['tools'], two.json.error?.message]).toEqual([[], 'tool echo is served by multiple targets'])
  })

  test.each<[string, Record<string, unknown>, number]>([
    ['tools/call', { name: 'z_echo' }, 200],
    ['resources/read', { uri: 'z+memo:x' }, 200],
    ['own/method', {}, 404],
  ])('%s of something that does not exist is an error', async (method, params, status) => {
    const { url } = await withTwo()
    const answer = await sendModern(url, method, params)
    expect(gist(answer)).toEqual([status, status === 404 ? -32601 : -32602])
  })

  test('the old code for a missing resource becomes that of the revision', async () => {
    const server = await bed.answering(({ method, id }) =>
      method === 'resources/read' ? { jsonrpc: '2.0', id, error: { code: -32002, message: 'gone' } } : undefined,
    )
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    expect((await sendModern(url, 'resources/read', { uri: 'memo:x' })).json.error).toEqual({ code: -32602, message: 'gone' })
  })
})

describe('the stream of a request without session (mcp.md §13.2)', () => {
  const reports = (server: Server): void =>
    server.setRequestHandler(CallToolRequestSchema, async (_, { sendNotification, _meta: meta }) => {
      const progressToken = meta?.progressToken
      if (progressToken !== undefined) await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
      for (const level of ['debug', 'warning'] as const) await sendNotification({ method: 'notifications/message', params: { level, data: level } })
      await sendNotification({ method: 'notifications/tools/list_changed' })
      return { content: [] }
    })
  const messagesOf = ({ text: stream }: RawAnswer): { method?: string; params?: Record<string, unknown> }[] =>
    [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as object)

  test('has progress with the token of the client, and neither log messages nor changes that it did not request', async () => {
    const { url } = await withTool(reports)
    const answer = await sendModern(url, 'tools/call', { name: 'own' }, { meta: { progressToken: 'mine' } })
    expect(messagesOf(answer).map(({ method, params }) => [method, params])).toEqual([
      ['notifications/progress', { progressToken: 'mine', progress: 1 }],
      [undefined, undefined],
    ])
    expect([answer.headers['content-type'], answer.headers['x-accel-buffering']]).toEqual(['text/event-stream', 'no'])
  })

  test('has the log messages of the level that the request names', async () => {
    const { url, one } = await withTool(reports)
    const levels = async (level: string) =>
      messagesOf(await sendModern(url, 'tools/call', { name: 'own' }, { meta: { [LOG_LEVEL]: level } })).flatMap(({ params }) => params?.['level'] ?? [])
    expect([await levels('warning'), await levels('debug'), await levels('error')]).toEqual([['warning'], ['debug', 'warning'], []])
    expect(one.log().filter((method) => method === 'logging/setLevel')).toHaveLength(2)
  })

  test('is cancelled at the server when the client disconnects', async () => {
    const { url, one } = await withTool((server: Server) =>
      server.setRequestHandler(CallToolRequestSchema, async (_, { signal, sendNotification }) => {
        await sendNotification({ method: 'notifications/own' })
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return { content: [] }
      }),
    )
    const controller = new AbortController()
    const params = { name: 'own' }
    const init = {
      method: 'POST',
      headers: modernHeaders('tools/call', params),
      body: JSON.stringify(modernCall('tools/call', params)),
      signal: controller.signal,
    }
    const { body } = await fetch(url, init)
    await body?.getReader().read()
    controller.abort()
    await until('the cancellation', () => one.log().includes('notifications/cancelled'))
    const [call, cancelled] = ['tools/call', 'notifications/cancelled'].map((method) => one.received.find((received) => received.body?.method === method)?.body)
    expect(cancelled?.params?.['requestId']).toBe(call?.id)
  })

  test('requests of the server are rejected, and its pings answered', async () => {
    const answers: unknown[] = []
    const { url } = await withTool((server: Server) =>
      server.setRequestHandler(CallToolRequestSchema, async (_, { sendRequest }) => {
        answers.push(await sendRequest({ method: 'ping' }, EmptyResultSchema))
        answers.push(await sendRequest({ method: 'roots/list' }, EmptyResultSchema).catch((error: { code: number }) => error.code))
        return { content: [] }
      }),
    )
    expect((await sendModern(url, 'tools/call', { name: 'own' })).json.result?.['content']).toEqual([])
    expect(answers).toEqual([{}, -32601])
  })
})

describe('policies for requests without session', () => {
  test('rules hide tools, and denied calls do not reach the server', async () => {
    const { url, one } = await withOne({ policies: { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "echo"'] } } } } })
    expect((await sendModern(url, 'tools/list')).json.result?.['tools']).toHaveLength(1)
    const denied = await sendModern(url, 'tools/call', { name: 'link' })
    expect([denied.status, denied.json.error]).toEqual([200, { code: -32602, message: 'Unknown tool: link' }])
    expect(one.log()).not.toContain('tools/call')
  })

  test('log and metrics have method and tool, and no session', async () => {
    const { gateway, url } = await withOne()
    await sendModern(url, 'tools/call', { name: 'echo' })
    await until('the end of the request', () => gateway.server.finished.length >= 1)
    const fields = logFieldsOf(gateway.server.finished.at(-1))
    expect(fields).toMatchObject({ 'mcp.method.name': 'tools/call', 'mcp.target': 'a', 'gen_ai.tool.name': 'echo' })
    expect(fields).not.toHaveProperty('mcp.session.id')
    const metrics = [...gateway.registry.expose('text')].join('')
    expect(metrics).toMatch(/proxy_mcp_requests_total\{method="tools\/call",resource_type="tool",server="a",resource="echo"[^}]*\} 1/)
  })
})

test('the official client of the revision calls tools of servers with sessions', async () => {
  const { url } = await withTwo()
  const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(url))
  bed.onClose(() => client.close())
  expect(client.getNegotiatedProtocolVersion()).toBe(MODERN)
  expect((await client.listTools()).tools).toHaveLength(6)
  expect((await client.callTool({ name: 'a_echo', arguments: { text: 'x' } })).content).toEqual(text('one: x'))
  expect((await client.getPrompt({ name: 'b_greet', arguments: { who: 'x' } })).messages).toHaveLength(1)
  expect((await client.readResource({ uri: 'a+file:///x' })).contents).toEqual([{ uri: 'a+file:///x', text: 'one file:///x' }])
  await expect(client.callTool({ name: 'z_echo' })).rejects.toMatchObject({ code: -32602 })
})
