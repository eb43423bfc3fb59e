import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import {
  ElicitRequestSchema,
  ListRootsRequestSchema,
  McpError,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { staticTarget } from './testing/gateway.ts'
import { MODERN } from './testing/modern.ts'
import { holdingServers, holdingTargets, notify, type ModernServerOptions } from './testing/modern-server.ts'
import { begin, call, initialize, MCP_HEADERS, send, sendAndLeave, TestBed, until, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const PREFIX = 'io.modelcontextprotocol/'
const gist = ({ status, json, text }: RawAnswer): unknown[] => [status, json.error?.code ?? text]
const text = (value: string) => [{ type: 'text', text: value }]

async function withNew(options: ModernServerOptions = {}, more: object = {}) {
  const server = await bed.modern('new', options)
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)], ...more } })
  return { server, gateway, url: gateway.url }
}

async function withBoth(more: object = {}) {
  const [server, old] = [await bed.modern('new'), await bed.upstream('old')]
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', old.port)], ...more } })
  return { server, old, gateway, url: gateway.url }
}

describe('a client with a session and a server without (mcp.md §13.4)', () => {
  test('initialize is answered from server/discover', async () => {
    const { url, server } = await withNew()
    const { status, json, headers } = await send(url, 'POST', MCP_HEADERS, initialize('2025-06-18', { sampling: {}, experimental: { x: {} } }))
    expect([status, json]).toEqual([
      200,
      {
        jsonrpc: '2.0',
        id: 'init',
        result: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, completions: {} },
          serverInfo: { name: 'new', version: '2' },
          instructions: 'Use new.',
        },
      },
    ])
    expect(headers['mcp-session-id']).toEqual(expect.any(String))
    const discover = server.received.at(-1)
    expect([server.log(), discover?.body?.params, discover?.headers['mcp-protocol-version']]).toEqual([
      ['initialize', 'server/discover'],
      {
        _meta: {
          [`${PREFIX}protocolVersion`]: MODERN,
          [`${PREFIX}clientCapabilities`]: { sampling: {}, experimental: { x: {} } },
          [`${PREFIX}clientInfo`]: { name: 'raw', version: '1' },
        },
      },
      MODERN,
    ])
  })

  test('later sessions start with server/discover', async () => {
    const { url, server } = await withNew()
    await begin(url)
    await begin(url)
    expect(server.log()).toEqual(['initialize', 'server/discover', 'server/discover'])
  })

  test('calls have the members of the newer revision, and results do not', async () => {
    const { url, server } = await withNew({ ttlMs: 5000, cacheScope: 'public' })
    const { post } = await begin(url)
    const called = await post(call('tools/call', { name: 'echo', arguments: { text: 'x' } }, 7), { 'mcp-protocol-version': '2025-06-18' })
    expect(called.json).toEqual({ jsonrpc: '2.0', id: 7, result: { content: text('new: x') } })
    const { headers, body } = server.received.at(-1) ?? {}
    expect([headers?.['mcp-protocol-version'], headers?.['mcp-name'], headers?.['mcp-session-id']]).toEqual([MODERN, 'echo', undefined])
    expect(body?.params?.['_meta']).toMatchObject({ [`${PREFIX}protocolVersion`]: MODERN, [`${PREFIX}clientInfo`]: { name: 'raw', version: '1' } })
    expect((await post(call('tools/list'))).json.result).toEqual({ tools: ['echo', 'ask'].map((name) => ({ name, inputSchema: { type: 'object' } })) })
  })

  test('ping, the log level and notifications are handled by the gateway', async () => {
    const { url, server } = await withNew()
    const { post } = await begin(url)
    const before = server.log()
    expect((await post(call('ping'))).json.result).toEqual({})
    expect((await post(call('logging/setLevel', { level: 'warning' }))).json.result).toEqual({})
    expect((await post({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' })).status).toBe(202)
    expect(server.log()).toEqual(before)
    await post(call('tools/list'))
    expect(server.received.at(-1)?.body?.params?.['_meta']).toMatchObject({ [`${PREFIX}logLevel`]: 'warning' })
  })

  test('what a session keeps is bounded', async () => {
    const { url, server } = await withNew()
    const big = { protocolVersion: '2025-06-18', capabilities: { experimental: { x: 'x'.repeat(5000) } }, clientInfo: { name: 'raw', version: '1' } }
    const { headers } = await send(url, 'POST', MCP_HEADERS, call('initialize', big))
    const session = { ...MCP_HEADERS, 'mcp-session-id': String(headers['mcp-session-id']) }
    for (const request of [call('logging/setLevel', { level: 'x'.repeat(5000) }), call('resources/subscribe', { uri: `memo:${'x'.repeat(5000)}` })])
      expect(gist(await send(url, 'POST', session, request))).toEqual([200, -32602])
    await send(url, 'POST', session, call('tools/list'))
    const meta = server.received.at(-1)?.body?.params?.['_meta'] as Record<string, unknown>
    expect(meta).toEqual({ [`${PREFIX}protocolVersion`]: MODERN, [`${PREFIX}clientCapabilities`]: {} })
  })

  test('a call whose arguments name a member of _meta is converted too', async () => {
    const { url } = await withNew()
    const { post } = await begin(url)
    const { json } = await post(call('tools/call', { name: 'echo', arguments: { text: `${PREFIX}protocolVersion` } }))
    expect(json.result?.['content']).toEqual(text(`new: ${PREFIX}protocolVersion`))
  })

  test('progress has the token of the client', async () => {
    const { url } = await withNew()
    const { post } = await begin(url)
    const { text: stream } = await post(call('tools/call', { name: 'echo', _meta: { progressToken: 'p' } }))
    expect(stream).toContain('"progressToken":"p","progress":1')
  })

  test('another replica serves the session with what the client said', async () => {
    const { url, server } = await withNew()
    const { id } = await begin(url)
    const other = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    const { json } = await send(other.url, 'POST', { ...MCP_HEADERS, 'mcp-session-id': id }, call('tools/call', { name: 'echo' }))
    expect(json.result?.['content']).toEqual(text('new: '))
    expect(server.received.at(-1)?.body?.params?.['_meta']).toMatchObject({ [`${PREFIX}clientInfo`]: { name: 'raw', version: '1' } })
  })

  test.each(holdingTargets)('a call%s that the client cancels ends without a response', async (_, others, options) => {
    const { server, url, tool } = await bed.federation(options, others)
    const { post } = await begin(url)
    const called = post(call('tools/call', { name: tool }, 5))
    await until('the call', () => server.open.length === 1)
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    expect((await called).text).toBe('')
    await until('the end of the call', () => server.open.length === 0)
  })

  test.each(holdingServers)('a call%s ends at the server when the client disconnects', async (_, options) => {
    const { url, server, gateway } = await withNew(options)
    const { id } = await begin(url)
    const leave = sendAndLeave(url, { ...MCP_HEADERS, 'mcp-session-id': id }, call('tools/call', { name: 'echo' }))
    await until('the call', () => server.open.length === 1)
    leave()
    await until('the end of the call', () => server.open.length === 0)
    await until('the end of the request', () => gateway.server.finished.some(({ cutBy }) => cutBy === 'client'))
    expect(server.log().filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test('a call is cancelled after an earlier one with its id has ended', async () => {
    const { url, server } = await withNew(holdingServers[0]?.[1])
    const { id, post } = await begin(url)
    const leave = sendAndLeave(url, { ...MCP_HEADERS, 'mcp-session-id': id }, call('tools/call', { name: 'echo' }, 5))
    await until('the first call', () => server.open.length === 1)
    const called = post(call('tools/call', { name: 'echo' }, 5))
    await until('the second call', () => server.open.length === 2)
    leave()
    await until('the end of the first call', () => server.open.length === 1)
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    expect((await called).text).toBe('')
    await until('the end of the second call', () => server.open.length === 0)
  })

  test.each<[string, object]>([
    ['structured content that is no object', { content: [] }],
    ['tools whose output is no object', { tools: [{ name: 'x', inputSchema: {} }] }],
  ])('%s is left out, because older clients reject it', async (_, expected) => {
    const isList = 'tools' in expected
    const result = isList ? { tools: [{ name: 'x', inputSchema: {}, outputSchema: { type: 'array' } }] } : { content: [], structuredContent: [1] }
    const { url } = await withNew({ handle: ({ method }) => (method === (isList ? 'tools/list' : 'tools/call') ? result : undefined) })
    const { post } = await begin(url)
    expect((await post(isList ? call('tools/list') : call('tools/call', { name: 'x' }))).json.result).toEqual(expected)
  })

  test('errors have codes that older clients know, with status 200', async () => {
    const { url } = await withNew({ handle: ({ method }) => (method === 'tools/call' ? { code: -32021 } : undefined) })
    const { post } = await begin(url)
    expect(gist(await post(call('tools/call', { name: 'x' })))).toEqual([200, -32603])
    expect(gist(await post(call('own/method')))).toEqual([200, -32601])
    expect(gist(await post(call('tasks/get', { taskId: '1' })))).toEqual([200, -32601])
  })

  test('with Stateless, each message is converted', async () => {
    const { url, server } = await withNew({}, { sessionRouting: 'Stateless' })
    const { json } = await send(url, 'POST', MCP_HEADERS, call('tools/call', { name: 'echo', arguments: { text: 'y' } }))
    expect(json.result).toEqual({ content: text('new: y') })
    expect(server.log()).toEqual(['initialize', 'server/discover', 'tools/call'])
  })

  test('a server that was replaced by an older one ends the session, and the next one is with that server', async () => {
    const [server, old] = [await bed.modern('new'), await bed.upstream('old')]
    let port = server.port
    const relay = await bed.relay(() => port)
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', relay.port)] } })
    const { post } = await begin(url)
    port = old.port
    expect(gist(await post(call('tools/list')))).toEqual([404, 'session not found'])
    const { post: again } = await begin(url)
    expect((await again(call('tools/call', { name: 'echo' }))).json.result?.['content']).toEqual(text('old: '))
  })

  test('a rejection of initialize by an older server reaches the client', async () => {
    const { port } = await bed.scripted((_, response) => void response.writeHead(400).end('no such page'))
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
    expect(gist(await send(url, 'POST', MCP_HEADERS, initialize()))).toEqual([400, 'no such page'])
  })
})

describe('input of a client with a session (mcp.md §13.4)', () => {
  const requestedSchema = { type: 'object', properties: { who: { type: 'string' } } }
  const elicitation = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema } }
  const roots = { method: 'roots/list', params: {} }
  /** A handler whose tool requires these inputs, one round after the other, and returns what it received in the last. */
  const asking = (...rounds: Record<string, object>[]): NonNullable<ModernServerOptions['handle']> => {
    return ({ method, params }) => {
      if (method !== 'tools/call') return undefined
      const round = Number(params?.['requestState'] ?? 0)
      const inputRequests = rounds[round]
      if (inputRequests === undefined) return { content: text(JSON.stringify(params?.['inputResponses'])) }
      return { resultType: 'input_required', requestState: String(round + 1), inputRequests }
    }
  }

  async function withClient(options: ModernServerOptions, isFederated: boolean) {
    const server = await bed.modern('new', options)
    const others = isFederated ? [staticTarget('b', (await bed.upstream('old')).port)] : []
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), ...others] } })
    const answers: unknown[] = []
    const client = await bed.client(gateway, {
      capabilities: { elicitation: {}, roots: {} },
      prepare(it) {
        it.setRequestHandler(ElicitRequestSchema, ({ params }) => {
          answers.push(params.message)
          return params.message === 'No?' ? { action: 'decline' as const } : { action: 'accept' as const, content: { who: `me ${answers.length}` } }
        })
        it.setRequestHandler(ListRootsRequestSchema, () => {
          throw new McpError(-32000, 'no roots')
        })
      },
    })
    return { client, server, call: (name = isFederated ? 'a_ask' : 'ask') => client.callTool({ name }) }
  }

  test.each<[string, boolean, boolean]>([
    ['one server with event streams', false, false],
    ['one server with JSON', true, false],
    ['a federation', false, true],
    ['a federation with JSON', true, true],
  ])('what %s requires is requested on the stream of the call, and sent with a retry', async (_, isJson, isFederated) => {
    const { call: ask, server } = await withClient({ isJson, handle: asking({ who: elicitation }, { again: elicitation }) }, isFederated)
    expect((await ask()).content).toEqual(text('{"again":{"action":"accept","content":{"who":"me 2"}}}'))
    const calls = server.received.filter(({ body }) => body?.method === 'tools/call').map(({ body }) => body)
    expect(calls.map((body) => [body?.params?.['name'], body?.params?.['requestState'], body?.params?.['inputResponses']])).toEqual([
      ['ask', undefined, undefined],
      ['ask', '1', { who: { action: 'accept', content: { who: 'me 1' } } }],
      ['ask', '2', { again: { action: 'accept', content: { who: 'me 2' } } }],
    ])
    expect(new Set(calls.map((body) => body?.id)).size).toBe(3)
    expect(calls[0]?.params?.['_meta']).toMatchObject({ [`${PREFIX}clientCapabilities`]: { elicitation: {}, roots: {} } })
  })

  test('several inputs of one round are requested together, and a declined one is sent too', async () => {
    const declined = { method: 'elicitation/create', params: { message: 'No?', requestedSchema } }
    const { call: ask } = await withClient({ handle: asking({ no: declined, yes: elicitation }) }, false)
    expect((await ask()).content).toEqual(text('{"no":{"action":"decline"},"yes":{"action":"accept","content":{"who":"me 2"}}}'))
  })

  test('a result that requires no input is retried at once', async () => {
    const { call: ask } = await withClient({ handle: asking({}) }, false)
    expect((await ask()).content).toEqual(text('{}'))
  })

  test('an error of the client is the error of the call', async () => {
    const { call: ask } = await withClient({ handle: asking({ roots }) }, false)
    await expect(ask()).rejects.toMatchObject({ code: -32000 })
  })

  test('the number of rounds is limited', async () => {
    const { call: ask, server } = await withClient({ handle: asking(...Array.from({ length: 100 }, () => ({}))) }, false)
    await expect(ask()).rejects.toMatchObject({ code: -32603 })
    expect(server.received.filter(({ body }) => body?.method === 'tools/call')).toHaveLength(17)
  })

  test('a server without sessions learns with Stateless that its client has no input', async () => {
    const { url, server } = await withNew({}, { sessionRouting: 'Stateless' })
    await send(url, 'POST', MCP_HEADERS, initialize('2025-06-18', { elicitation: {}, roots: {}, sampling: {} }))
    const meta = server.received.at(-1)?.body?.params?.['_meta'] as Record<string, unknown>
    expect(meta[`${PREFIX}clientCapabilities`]).toEqual({})
  })
})

describe('notifications for a client with a session (mcp.md §13.4)', () => {
  test('changes of lists and subscribed resources arrive on the stream of the client', async () => {
    const { server, gateway } = await withBoth()
    const seen: unknown[] = []
    const client = await bed.client(gateway, {
      prepare(it) {
        it.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void seen.push(method))
        it.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void seen.push(params))
      },
    })
    await until('the stream', () => server.streams.size === 1)
    notify(server, 'notifications/tools/list_changed')
    await until('the change', () => seen.length === 1)
    await client.subscribeResource({ uri: 'a+memo:x' })
    await until(
      'the subscription',
      () =>
        server.received.at(-1)?.body?.method === 'subscriptions/listen' &&
        server.received.filter(({ body }) => body?.method === 'subscriptions/listen').length === 2,
    )
    expect(server.received.at(-1)?.body?.params?.['notifications']).toMatchObject({ toolsListChanged: true, resourceSubscriptions: ['memo:x'] })
    await until('one stream', () => server.streams.size === 1 && server.ended === 1)
    notify(server, 'notifications/resources/updated', { uri: 'memo:x' })
    await until('the update', () => seen.length === 2)
    expect(seen).toEqual(['notifications/tools/list_changed', { uri: 'a+memo:x' }])
    await client.unsubscribeResource({ uri: 'a+memo:x' })
    await until(
      'the end of the subscription',
      () => server.received.at(-1)?.body?.params?.['notifications'] !== undefined && !JSON.stringify(server.received.at(-1)?.body).includes('memo:x'),
    )
  })

  test('a server without notifications has no stream', async () => {
    const { url } = await withNew({ listens: false })
    const { id } = await begin(url)
    const { status } = await send(url, 'GET', { accept: 'text/event-stream', 'mcp-session-id': id })
    expect(status).toBe(405)
  })
})

describe('a federation for a client with a session', () => {
  test('lists are the union, and calls reach both servers', async () => {
    const { gateway, server } = await withBoth()
    const client = await bed.client(gateway)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['a_echo', 'a_ask', 'b_echo', 'b_with_under_score', 'b_link'])
    expect((await client.callTool({ name: 'a_echo', arguments: { text: 'x' } })).content).toEqual(text('new: x'))
    expect((await client.callTool({ name: 'b_echo', arguments: { text: 'x' } })).content).toEqual(text('old: x'))
    expect((await client.getPrompt({ name: 'a_greet' })).messages).toHaveLength(1)
    expect((await client.readResource({ uri: 'a+memo:x' })).contents).toEqual([{ uri: 'a+memo:x', text: 'new memo:x' }])
    expect((await client.complete({ ref: { type: 'ref/prompt', name: 'a_greet' }, argument: { name: 'who', value: '' } })).completion.values).toEqual(['new'])
    await client.ping()
    expect(server.log()).not.toContain('ping')
    expect(client.getInstructions()).toContain('[a]\nUse new.')
  })

  test('the official servers of the revision are used by the official client of older ones', async () => {
    const [strict, old] = [await bed.sdk('sdk'), await bed.upstream('old')]
    for (const targets of [[staticTarget('a', strict.port)], [staticTarget('a', strict.port), staticTarget('b', old.port)]]) {
      const client = await bed.client(await bed.gateway({ mcp: { targets } }))
      const name = targets.length === 1 ? 'hello' : 'a_hello'
      expect((await client.listTools()).tools[0]?.name).toBe(name)
      expect((await client.callTool({ name })).content).toEqual(text('sdk says hello'))
    }
  })
})
