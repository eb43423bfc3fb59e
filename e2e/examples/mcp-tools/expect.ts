import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a value that the client sends for a fixed argument is replaced': async (run) => {
    const client = new Client({ name: 'example', version: '1' })
    const requestInit = { headers: { 'x-team': 'blue' } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`), { requestInit }))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['find_tickets'])
    const { content } = await client.callTool({ name: 'find_tickets', arguments: { text: 'team:red' } })
    expect(content).toEqual([{ type: 'text', text: 'search in tickets: "team:blue"' }])
    await expect(client.callTool({ name: 'search' })).rejects.toThrow('Unknown tool: search')
    await client.close()
  },
})
