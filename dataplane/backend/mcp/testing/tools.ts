import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

const inputSchema = { type: 'object' as const }
const textOf = (text: string) => ({ content: [{ type: 'text' as const, text }] })

/** Defines the items of a test server. The tool `echo` returns the server's name. Lists have pages of `pageSize` items. */
export function defineBasics(name: string, { tools = ['echo', 'with_under_score', 'link'], pageSize = 100 } = {}): (server: Server) => void {
  return (server) => {
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const start = Number(params?.cursor ?? 0)
      const page = tools.slice(start, start + pageSize).map((tool) => ({ name: tool, inputSchema }))
      return { tools: page, ...(start + pageSize < tools.length ? { nextCursor: String(start + pageSize) } : {}) }
    })
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => callTool(name, params.name, params.arguments ?? {}))
    server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }] }))
    server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
      if (params.name !== 'greet') throw new McpError(-32602, `no prompt ${params.name}`)
      return { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: `${name} greets ${params.arguments?.['who']}` } }] }
    })
    server.setRequestHandler(ListResourcesRequestSchema, () => ({
      resources: [
        { uri: 'file:///x', name: 'x' },
        { uri: 'memo:x', name: 'memo' },
        { uri: 'relative', name: 'no scheme' },
      ],
    }))
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [{ uriTemplate: 'num://{n}', name: 'numbered' }] }))
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [{ uri: params.uri, text: `${name} ${params.uri}` }] }))
    server.setRequestHandler(SubscribeRequestSchema, () => ({}))
    server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
    server.setRequestHandler(CompleteRequestSchema, ({ params }) => ({
      completion: { values: [`${name} ${params.ref.type === 'ref/prompt' ? params.ref.name : params.ref.uri}`] },
    }))
  }
}

function callTool(server: string, tool: string, { text = '' }: { text?: unknown }) {
  switch (tool) {
    case 'echo':
      return textOf(`${server}: ${String(text)}`)
    case 'link':
      return {
        content: [
          { type: 'resource_link' as const, uri: 'file:///x', name: 'x' },
          { type: 'resource' as const, resource: { uri: 'memo:x', text: 'embedded' } },
        ],
      }
    default:
      return textOf(`${server} ${tool}`)
  }
}
