import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { request } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { ListRootsRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import type { OpenApiTool } from '#gen/config/types.ts'
import { staticTarget } from '../testing/gateway.ts'
import { call, initialize, MCP_HEADERS, send, until, TestBed } from '../testing/test-bed.ts'
import { letArrive } from '../../../testing/turns.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

async function connect(url: URL, prepare?: (client: Client) => void): Promise<Client> {
  const client = new Client({ name: 'old', version: '1' }, { capabilities: { roots: {} } })
  prepare?.(client)
  await client.connect(new SSEClientTransport(new URL('/sse', url)))
  bed.onClose(() => client.close())
  return client
}

describe('legacy SSE downstream (mcp.md §6)', () => {
  test.each([
    ['one target', 1, 'Stateful', 'streamable'],
    ['one target, Stateless', 1, 'Stateless', 'streamable'],
    ['one target that speaks SSE itself', 1, 'Stateful', 'sse'],
    ['two targets', 2, 'Stateful', 'streamable'],
    ['two targets that speak SSE', 2, 'Stateful', 'sse'],
  ] as const)('an SDK client can call tools of %s (rows 31, 32)', async (_, count, sessionRouting, transport) => {
    const servers = [await bed.upstream('one', { transport }), await bed.upstream('two', { transport })].slice(0, count)
    const protocol = transport === 'sse' ? 'SSE' : 'StreamableHTTP'
    const { url } = await bed.gateway({
      mcp: { targets: servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port, { protocol })), sessionRouting },
    })
    let changes = 0
    const client = await connect(url, (made) => {
      made.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++)
      made.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///r' }] }))
    })
    expect((await client.listTools()).tools).toHaveLength(3 * count)
    const name = count === 1 ? 'echo' : 'b_echo'
    expect((await client.callTool({ name, arguments: { text: 'hi' } })).content).toEqual([{ type: 'text', text: `${count === 1 ? 'one' : 'two'}: hi` }])
    await expect(client.getPrompt({ name: 'nothing' })).rejects.toThrow()
    if (transport === 'streamable') await until('the streams of the servers', () => servers.every(({ log }) => log().includes('GET')))
    await letArrive()
    const last = [...(servers.at(-1)?.servers.values() ?? [])][0]
    await last?.sendToolListChanged()
    await until('the notice', () => changes === 1)
    expect((await last?.listRoots())?.roots).toEqual([{ uri: 'file:///r' }])
    await client.close()
    await until('the end of the upstream sessions', () => servers.every((server) => server.servers.size === 0))
  })

  test('the endpoint event keeps the query of the client’s URL', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const first = (path: string) =>
      new Promise<string>((resolve) => {
        const sent = request({ host: url.hostname, port: url.port, path }, (response) =>
          response.once('data', (chunk: Buffer) => (resolve(chunk.toString()), sent.destroy())),
        )
        sent.end()
      })
    expect(await first('/sse')).toMatch(/^event: endpoint\ndata: \/sse\?sessionId=[0-9a-f-]{36}\n\n$/)
    expect(await first('/sse?key=1')).toMatch(/^event: endpoint\ndata: \/sse\?key=1&sessionId=[0-9a-f-]{36}\n\n$/)
  })

  test('a call of an API that the client cancels has no response on the stream', async () => {
    let open = 0
    const { port } = await bed.scripted((_, response) => {
      open++
      response.on('close', () => open--)
    })
    const definition = JSON.stringify({ name: 'get', inputSchema: { type: 'object' } })
    const tool: OpenApiTool = { name: 'get', definition, method: 'GET', path: '/', parameters: [] }
    const openapi = { title: '', version: '1', path: '', tools: [tool] }
    const { url } = await bed.gateway({ mcp: { targets: [{ ...staticTarget('a', port), openapi }] } })
    let stream = ''
    const sent = request({ host: url.hostname, port: url.port, path: '/sse' }, (response) =>
      response.setEncoding('utf8').on('data', (chunk: string) => (stream += chunk)),
    )
    sent.on('error', () => undefined).end()
    await until('the endpoint', () => stream.includes('\n\n'))
    const post = (body: unknown) => send(url, 'POST', MCP_HEADERS, body, /data: (.*)/.exec(stream)?.[1])
    await post(initialize())
    await post(call('tools/call', { name: 'get' }, 5))
    await until('the call', () => open === 1)
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
    await until('the end of the call', () => open === 0)
    await post(call('ping', {}, 6))
    await until('the response to ping', () => stream.includes('"id":6'))
    expect(stream).not.toContain('"id":5')
    sent.destroy()
  })

  test.each<[string, string, string, unknown, number]>([
    ['a POST without sessionId', 'POST', '/sse', {}, 422],
    ['a POST with an unknown sessionId', 'POST', '/sse?sessionId=x', {}, 404],
    ['another method', 'DELETE', '/sse?sessionId=x', undefined, 405],
  ])('%s is rejected with the right status', async (_, method, path, body, status) => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    expect((await send(url, method, {}, body, path)).status).toBe(status)
  })

  test('an unreachable target is reported as an error on the stream', async () => {
    // No server listens on port 1.
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', 1)] } })
    await expect(connect(url)).rejects.toThrow('failed to send message')
  })
})
