import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'a client can connect and list tools after its limit is exhausted': async (run) => {
    const requestInit = { headers: { 'x-user': 'carl' } }
    for (const [attempt, isAdmitted] of [true, false].entries()) {
      const client = new Client({ name: 'example', version: String(attempt) })
      await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`), { requestInit }))
      expect((await client.listTools()).tools).toHaveLength(2)
      const called = client.callTool({ name: 'search' })
      if (isAdmitted) await called
      else await expect(called).rejects.toMatchObject({ code: 429, message: expect.stringContaining('rate limit exceeded') })
      await client.close()
    }
  },
})
