import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { waitUntil } from '../../harness/wait.ts'
import { expectations } from '../../harness/example/expectations.ts'

/** Pins that approve no tool. */
const pins = `
---
apiVersion: v1
kind: ConfigMap
metadata: { name: pins }
data: { pins.json: '{}' }
`

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
  'tools that wait for approval are in the status of the backend': async (run) => {
    const file = join(run.directory, 'manifests.yaml')
    const text = await readFile(file, 'utf8')
    const approved = () => run.conditions().filter(({ kind, type }) => kind === 'ProxyBackend' && type === 'ToolsApproved')
    const client = new Client({ name: 'example', version: '1' })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`), { requestInit: { headers: { 'x-team': 'blue' } } }),
    )
    const count = async () => (await client.listTools()).tools.length
    await writeFile(file, text.replace('  mcp:\n', '  mcp:\n    toolPins: { action: Hold, configMapRef: { name: pins, key: pins.json } }\n') + pins)
    await waitUntil('tools are held', async () => (await count()) === 0)
    await waitUntil('the condition', () => approved().length > 0)
    expect(approved()[0]).toMatchObject({
      name: 'mcp-tools',
      status: 'False',
      reason: 'ToolsHeld',
      message: 'mcp.toolPins: targets tickets have tools that clients do not see until they are approved; proxyctl mcp diff shows them [PX1357]',
    })
    await writeFile(file, text)
    await waitUntil('tools are offered', async () => (await count()) === 1)
    await client.close()
  },
})
