import { expect } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'an SDK client adds an item and gets the cart': async (run) => {
    const client = new Client({ name: 'example', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://localhost:${run.port(8080)}/mcp`)))
    const { tools } = await client.listTools()
    await client.callTool({ name: 'Carts_AddItem', arguments: { id: '1', item: { name: 'coffee', cents: '380', size: 'SMALL' } } })
    const { structuredContent, isError } = await client.callTool({ name: 'Carts_GetCart', arguments: { id: '1' } })
    await client.close()
    expect(tools.map(({ name }) => name)).toContain('Carts_GetCart')
    expect(isError).not.toBe(true)
    expect(structuredContent).toMatchObject({
      id: '1',
      items: expect.arrayContaining([expect.objectContaining({ name: 'coffee', cents: '380', size: 'SMALL' })]),
    })
  },
})
