import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'resources are hidden because rules allow tools only': async (run) => {
    const client = new Client({ name: 'example', version: '1' })
    const requestInit = { headers: { 'x-team': 'support' } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`), { requestInit }))
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['documents_search', 'tickets_search', 'tickets_delete'])
    expect((await client.listResources()).resources).toEqual([])
    await expect(client.readResource({ uri: 'tickets+tickets://readme' })).rejects.toMatchObject({ code: -32602 })
    await client.close()
  },
})
