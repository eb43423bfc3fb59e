import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly name?: string; readonly arguments?: unknown }
}

/** An MCP server without sessions whose names, descriptions, schemas, results and errors contain `hostile`. The tool with that name fails. */
export async function startHostileMcp(hostile: string): Promise<{ readonly port: number; close(): Promise<void> }> {
  const inputSchema = {
    type: 'object',
    properties: { text: { type: 'string', title: hostile, description: hostile }, [hostile]: { type: 'string', enum: [hostile] } },
    required: ['text'],
  }
  const resultOf = ({ method, params }: Message): object => {
    if (method === 'initialize')
      return { protocolVersion: '2025-06-18', capabilities: { tools: {}, prompts: {}, resources: {} }, serverInfo: { name: hostile, version: hostile } }
    if (method === 'tools/list')
      return {
        tools: [
          { name: 'echo', description: hostile, inputSchema },
          { name: hostile, inputSchema: { type: 'object' } },
        ],
      }
    if (method === 'prompts/list') return { prompts: [{ name: hostile, description: hostile, arguments: [{ name: hostile, description: hostile }] }] }
    if (method === 'resources/list') return { resources: [{ uri: `memo:${hostile}`, name: hostile, description: hostile }] }
    if (method === 'prompts/get') return { description: hostile, messages: [{ role: 'user', content: { type: 'text', text: `prompt ${hostile}` } }] }
    if (method === 'resources/read') return { contents: [{ uri: `memo:${hostile}`, mimeType: 'text/html', text: `resource ${hostile}` }] }
    return {
      content: [
        { type: 'text', text: `${hostile} ${JSON.stringify(params?.arguments)}` },
        { type: 'resource_link', uri: 'javascript:globalThis.hacked=1', name: hostile },
      ],
      structuredContent: { [hostile]: hostile },
    }
  }
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.method !== 'POST') return response.writeHead(405).end()
      const message = JSON.parse(body) as Message
      if (message.id === undefined) return response.writeHead(202).end()
      const isFailure = message.method === 'tools/call' && message.params?.name === hostile
      const outcome = isFailure ? { error: { code: -32_000, message: `failure ${hostile}`, data: { [hostile]: hostile } } } : { result: resultOf(message) }
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...outcome }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
