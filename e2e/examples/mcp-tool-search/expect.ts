import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a client finds, describes and calls a tool': async (run) => {
    const client = new Client({ name: 'example', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`)))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['search_tools', 'describe_tool', 'call_tool'])
    const use = async (name: string, args: Record<string, unknown>) => JSON.stringify((await client.callTool({ name, arguments: args })).content)
    expect(await use('search_tools', { query: 'search documents' })).toContain('documents_search')
    expect(await use('describe_tool', { name: 'documents_search' })).toContain('inputSchema')
    expect(await use('call_tool', { name: 'documents_search', arguments: { text: 'x' } })).toContain('search in documents')
    await client.close()
  },
})
