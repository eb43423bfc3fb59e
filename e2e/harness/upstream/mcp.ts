import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  ElicitResultSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { KEEP_ALIVE_TIMEOUT_MS } from './keep-alive.ts'

interface McpUpstreamOptions {
  readonly name: string
  readonly port: number
  /** Default: loopback. */
  readonly host?: string
  /** Called for each session over Streamable HTTP. */
  readonly onSession?: (server: Server) => void
}

/** An MCP server on the official SDK with the tools `search` and `delete` and one resource. Streamable HTTP is at `/mcp`, the older SSE transport at `/sse`. */
export async function startMcpUpstream({ name, port, host = '127.0.0.1', onSession }: McpUpstreamOptions) {
  const streamable = new Map<string, StreamableHTTPServerTransport>()
  const sse = new Map<string, SSEServerTransport>()
  const received: { readonly line: string; readonly headers: IncomingHttpHeaders }[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    if (received.length > 100) received.shift()
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/sse') return openSse(name, sse, response)
    if (pathname === '/messages') return sse.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response)
    const id = String(request.headers['mcp-session-id'] ?? '')
    const transport = id === '' ? await newTransport(name, streamable, onSession) : streamable.get(id)
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  }
  const server = createServer((request, response) => void handle(request, response))
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return {
    name,
    port: (server.address() as AddressInfo).port,
    /** The last hundred requests. */
    received,
    async close() {
      // Ends requests that wait for a response of the client.
      for (const transport of streamable.values()) await transport.close()
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** Makes the tools of a session ask the user for `id`, and return the response. */
export const askUser = (server: Server): void =>
  server.setRequestHandler(CallToolRequestSchema, async (_, { sendRequest }) => {
    const requestedSchema = { type: 'object' as const, properties: { id: { type: 'string' as const } } }
    const { content } = await sendRequest({ method: 'elicitation/create', params: { message: 'Which?', requestedSchema } }, ElicitResultSchema)
    return { content: [{ type: 'text', text: JSON.stringify(content) }] }
  })

async function newTransport(
  name: string,
  known: Map<string, StreamableHTTPServerTransport>,
  onSession: McpUpstreamOptions['onSession'],
): Promise<StreamableHTTPServerTransport> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id: string) => void known.set(id, transport),
    onsessionclosed: (id: string) => void known.delete(id),
  })
  const server = serverOf(name)
  await server.connect(transport)
  onSession?.(server)
  return transport
}

async function openSse(name: string, known: Map<string, SSEServerTransport>, response: ServerResponse): Promise<void> {
  const transport = new SSEServerTransport('/messages', response)
  known.set(transport.sessionId, transport)
  response.on('close', () => known.delete(transport.sessionId))
  await serverOf(name).connect(transport)
}

function serverOf(name: string): Server {
  const server = new Server({ name, version: '1.0.0' }, { capabilities: { tools: {}, resources: {} }, instructions: `Holds the ${name}.` })
  const inputSchema = { type: 'object' as const, properties: { text: { type: 'string' } } }
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [
      { name: 'search', description: `Searches the ${name}.`, inputSchema },
      { name: 'delete', description: `Deletes from the ${name}.`, inputSchema },
    ],
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: 'text', text: `${params.name} in ${name}: ${JSON.stringify(params.arguments?.['text'] ?? '')}` }],
  }))
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: `${name}://readme`, name: 'readme' }] }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => ({ contents: [{ uri, mimeType: 'text/plain', text: `About ${name}.` }] }))
  return server
}
