import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function search(run: ExampleRun, text: string): Promise<unknown> {
  const client = new Client({ name: 'example', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`)))
  try {
    return (await client.callTool({ name: 'search', arguments: { text } })).content
  } finally {
    await client.close()
  }
}

export default expectations({
  'keys and card numbers in results of tools do not reach the client, and other results stay': async (run) => {
    const key = `sk-${'a1'.repeat(12)}`
    expect(await search(run, `key ${key}, card 4111-1111-1111-1111`)).toEqual([
      { type: 'text', text: 'search in documents: "key [redacted], card [redacted]"' },
    ])
    expect(await search(run, 'sk-short, 4111')).toEqual([{ type: 'text', text: 'search in documents: "sk-short, 4111"' }])
  },
  'redactions are counted by tool': async (run) => {
    await search(run, '4111111111111111')
    expect(await run.dataplane.metrics()).toMatch(/proxy_plugin_events_total\{plugin="[^"]*redact",event="redacted",detail="search"\} [1-9]/)
  },
})
