import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a client receives the instructions of both servers': async (run) => {
    const client = new Client({ name: 'example', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`)))
    expect(client.getServerVersion()?.name).toBe('proxy')
    expect(client.getInstructions()).toMatch(/\[documents\]\nHolds the documents\.\n\n\[tickets\]\nHolds the tickets\.$/)
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['documents+documents://readme', 'tickets+tickets://readme'])
    await expect(client.callTool({ name: 'search' })).rejects.toThrow('Unknown tool: search')
    await client.close()
  },
})
