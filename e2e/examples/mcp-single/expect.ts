import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function use(transport: StreamableHTTPClientTransport | SSEClientTransport): Promise<unknown[]> {
  const client = new Client({ name: 'example', version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools()
  const { content } = await client.callTool({ name: 'search', arguments: { text: 'x' } })
  await client.close()
  return [tools.map(({ name }) => name), content]
}
const at = (run: ExampleRun, path: string): URL => new URL(`http://localhost:${run.port(8080)}${path}`)
const expected = [['search', 'delete'], [{ type: 'text', text: 'search in documents: "x"' }]]

export default expectations({
  'an SDK client can use the server through the gateway': async (run) => {
    expect(await use(new StreamableHTTPClientTransport(at(run, '/mcp')))).toEqual(expected)
  },
  'clients of the older SSE transport connect to /sse': async (run) => {
    expect(await use(new SSEClientTransport(at(run, '/sse')))).toEqual(expected)
  },
  'the log contains the tool and the target of a call': async (run) => {
    await use(new StreamableHTTPClientTransport(at(run, '/mcp')))
    await run.dataplane.program.waitForLine(
      /mcp\.method\.name=tools\/call mcp\.target=documents mcp\.resource\.type=tool gen_ai\.tool\.name=search mcp\.session\.id=/,
    )
  },
})
