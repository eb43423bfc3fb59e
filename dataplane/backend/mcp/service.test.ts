import { afterEach, describe, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startGateway, staticTarget, type GatewayOptions, type McpGateway } from './testing/gateway.ts'
import { startUpstream, type TestUpstream, type UpstreamOptions } from './testing/server.ts'
import { defineBasics } from './testing/tools.ts'

const opened: { close(): Promise<void> }[] = []
const keep = <T extends { close(): Promise<void> }>(one: T): T => (opened.push(one), one)
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

const upstream = async (name: string, options?: UpstreamOptions): Promise<TestUpstream> => keep(await startUpstream(defineBasics(name), options))
const gatewayFor = async (options: GatewayOptions): Promise<McpGateway> => keep(await startGateway(options))

async function connect(gateway: McpGateway): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = keep(new Client({ name: 'test', version: '1' }))
  const transport = new StreamableHTTPClientTransport(gateway.url)
  await client.connect(transport)
  return { client, transport }
}

describe('one target', () => {
  test.each<[string, UpstreamOptions]>([
    ['that streams', {}],
    ['that responds with JSON', { isJson: true }],
    ['without sessions', { transport: 'sessionless' }],
    ['that speaks SSE', { transport: 'sse' }],
  ])('%s keeps its names and receives calls', async (_, options) => {
    const one = await upstream('one', options)
    const gateway = await gatewayFor({ mcp: { targets: [staticTarget('a', one.port, options.transport === 'sse' ? { protocol: 'SSE' } : {})] } })
    const { client, transport } = await connect(gateway)
    expect(client.getServerVersion()).toEqual({ name: 'test', version: '1' })
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'with_under_score', 'link'])
    expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toEqual({ content: [{ type: 'text', text: 'one: hi' }] })
    expect(transport.sessionId).toMatch(/^[\w+/=]+$/)
    await transport.terminateSession()
    await expect(client.listTools()).rejects.toThrow()
  })
})

describe('two targets', () => {
  test.each([['streamable'], ['sse']] as const)('over %s have prefixed names and receive their calls', async (transport) => {
    const [one, two] = [await upstream('one'), await upstream('two', { transport })]
    const gateway = await gatewayFor({
      mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port, transport === 'sse' ? { protocol: 'SSE' } : {})] },
    })
    const { client } = await connect(gateway)
    expect(client.getServerVersion()).toEqual({ name: 'proxy', version: '1.2.3' })
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(['a_echo', 'a_with_under_score', 'a_link', 'b_echo', 'b_with_under_score', 'b_link'])
    expect(await client.callTool({ name: 'b_echo', arguments: { text: 'hi' } })).toEqual({ content: [{ type: 'text', text: 'two: hi' }] })
    expect(one.log().includes('tools/call')).toBe(false)
  })
})
