import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { staticTarget } from '../testing/gateway.ts'
import { call, initialize, MCP_HEADERS, send, until, TestBed } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const echo = (name: string) => call('tools/call', { name, arguments: { text: 'x' } })

describe('Stateless', () => {
  test('starts a session with the target for each message and none with the client (row 28)', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    const init = await send(url, 'POST', MCP_HEADERS, initialize())
    expect([init.status, init.headers['mcp-session-id'], init.json.result?.['serverInfo']]).toEqual([200, undefined, { name: 'test', version: '1' }])
    await until('the end of that session', () => one.servers.size === 0)
    one.received.length = 0
    const called = await send(url, 'POST', { ...MCP_HEADERS, 'mcp-session-id': 'ignored', 'mcp-protocol-version': '2025-03-26' }, echo('echo'))
    expect([called.headers['mcp-session-id'], called.json.result?.['content']]).toEqual([undefined, [{ type: 'text', text: 'one: x' }]])
    await until('the end of that session', () => one.servers.size === 0)
    expect(one.log()).toEqual(['initialize', 'notifications/initialized', 'tools/call', 'DELETE'])
    expect(one.received[0]?.body).toMatchObject({
      id: 0,
      params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'proxy', version: '1.2.3' } },
    })
  })

  test.each(['GET', 'DELETE'])('rejects %s with 405', async (method) => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    expect((await send(url, method, { accept: 'text/event-stream', 'mcp-session-id': 'x' })).status).toBe(405)
  })

  test.each([['streamable'], ['sse'], ['sessionless']] as const)('calls only the addressed one of two targets: %s', async (transport) => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two', { transport })]
    const protocol = transport === 'sse' ? 'SSE' : 'StreamableHTTP'
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port, { protocol })], sessionRouting: 'Stateless' },
    })
    const { json } = await send(gateway.url, 'POST', MCP_HEADERS, echo('b_echo'))
    expect([json.result?.['content'], one.log()]).toEqual([[{ type: 'text', text: 'two: x' }], []])
    if (transport !== 'sessionless') await until('the end of that session', () => two.servers.size === 0)
    const init = await send(gateway.url, 'POST', MCP_HEADERS, initialize('2025-06-18', { sampling: {}, roots: {}, elicitation: {}, experimental: { x: {} } }))
    expect(init.json.result?.['capabilities']).toMatchObject({ resources: { listChanged: true } })
    expect(JSON.stringify(init.json.result?.['capabilities'])).not.toContain('subscribe')
    // Requests of the server could not be answered (D4).
    expect(one.received.find(({ body }) => body?.method === 'initialize')?.body?.params?.['capabilities']).toEqual({ experimental: { x: {} } })
  })

  test('announces no client capabilities that need requests of the server (D4)', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    await send(url, 'POST', MCP_HEADERS, initialize('2025-06-18', { sampling: {}, roots: {}, elicitation: {}, experimental: { x: {} } }))
    expect(one.received[0]?.body?.params).toEqual({ ...initialize().params, capabilities: { experimental: { x: {} } } })
  })

  test('serves an SDK client with two targets and names without prefix', async () => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)], sessionRouting: 'Stateless' } })
    const client = new Client({ name: 'c', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(gateway.url))
    expect((await client.listTools()).tools).toHaveLength(6)
    expect((await client.callTool({ name: 'a_echo', arguments: { text: 'y' } })).content).toEqual([{ type: 'text', text: 'one: y' }])
    await client.ping()
    await client.close()
    await until('the end of all sessions', () => one.servers.size + two.servers.size === 0)
  })

  test('drops notifications about sessions', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    for (const message of [{ method: 'notifications/initialized' }, { method: 'notifications/cancelled', params: { requestId: 1 } }, { id: 3, result: {} }])
      expect((await send(url, 'POST', MCP_HEADERS, { jsonrpc: '2.0', ...message })).status).toBe(202)
    expect(one.log()).toEqual([])
  })

  test('rejects requests of servers to the client immediately', async () => {
    const asking = (server: Server): void => {
      server.setRequestHandler(CallToolRequestSchema, async (_, { requestId }) => {
        const failed = await server.listRoots(undefined, { relatedRequestId: requestId }).then(
          () => 'answered',
          (error: Error) => error.message,
        )
        return { content: [{ type: 'text', text: failed }] }
      })
    }
    for (const count of [1, 2]) {
      const one = await bed.upstream(asking)
      const targets = ['a', 'b'].slice(0, count).map((name) => staticTarget(name, one.port))
      const { url } = await bed.gateway({ mcp: { targets, sessionRouting: 'Stateless' } })
      const { json, text } = await send(url, 'POST', MCP_HEADERS, echo(count === 1 ? 'x' : 'a_x'))
      expect([json.result?.['content'], text.includes('"method":"roots/list"')]).toEqual([
        [{ type: 'text', text: expect.stringContaining('the client has no session') }],
        false,
      ])
    }
  })

  test('a handshake that fails is the answer', async () => {
    const { port } = await bed.scripted((_, response) => void response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('no'))
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port)], sessionRouting: 'Stateless' } })
    const { status, headers, text } = await send(url, 'POST', MCP_HEADERS, echo('echo'))
    expect([status, headers['www-authenticate'], text]).toEqual([401, 'Bearer', 'no'])
  })
})
