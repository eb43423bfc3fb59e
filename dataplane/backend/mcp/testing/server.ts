import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

/** A request that a server received. */
interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: { readonly id?: unknown; readonly method?: string; readonly params?: Record<string, unknown>; readonly result?: unknown } | undefined
}

/** An MCP server of the official SDK, for tests. */
export interface TestUpstream {
  readonly port: number
  readonly address: AddressInfo
  readonly received: Received[]
  /** Methods of the messages that were posted, and `GET` and `DELETE`, in order. */
  readonly log: () => string[]
  /** Servers of the open sessions. */
  readonly servers: Map<string, McpServer>
  close(): Promise<void>
}

export interface UpstreamOptions {
  /** Default: Streamable HTTP with sessions. */
  readonly transport?: 'streamable' | 'sessionless' | 'sse'
  /** Responds with JSON instead of an event stream. */
  readonly isJson?: boolean
  /** Address to listen on; default 127.0.0.1. */
  readonly host?: string
}

/** Starts a server. `define` registers tools, prompts and resources with the server of each session. */
export async function startUpstream(define: (server: McpServer) => void, options: UpstreamOptions = {}): Promise<TestUpstream> {
  const received: Received[] = []
  const servers = new Map<string, McpServer>()
  const serve = options.transport === 'sse' ? serveSse(define, servers) : serveStreamable(define, servers, options)
  const server = createServer((request, response) => {
    void readJson(request).then((body) => {
      received.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body: body as Received['body'] })
      return serve(request, response, body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, options.host ?? '127.0.0.1', resolve))
  const address = server.address() as AddressInfo
  return {
    port: address.port,
    address,
    received,
    log: () => received.map(({ method, body }) => (method === 'POST' ? (body?.method ?? 'response') : method)),
    servers,
    async close() {
      // Requests to clients have timers.
      for (const open of servers.values()) await open.close()
      await closeServer(server)
    },
  }
}

const newServer = (): McpServer =>
  new McpServer({ name: 'test', version: '1' }, { capabilities: { logging: {}, tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} } })

type Serve = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>

function serveStreamable(define: (server: McpServer) => void, servers: Map<string, McpServer>, { transport: kind, isJson = false }: UpstreamOptions): Serve {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  return async (request, response, body) => {
    const id = String(request.headers['mcp-session-id'] ?? '')
    let transport = transports.get(id)
    const isInitialize = (body as { method?: string } | undefined)?.method === 'initialize'
    if (transport === undefined && id !== '' && kind !== 'sessionless') {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}')
      return
    }
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        ...(kind === 'sessionless' ? {} : { sessionIdGenerator: () => randomUUID() }),
        enableJsonResponse: isJson,
        onsessioninitialized: (sessionId: string) => {
          if (transport !== undefined) transports.set(sessionId, transport)
          servers.set(sessionId, server)
        },
        onsessionclosed: (sessionId: string) => {
          transports.delete(sessionId)
          servers.delete(sessionId)
        },
      })
      const server = newServer()
      define(server)
      await server.connect(transport)
    } else if (isInitialize) transports.delete('')
    await transport.handleRequest(request, response, body)
  }
}

function serveSse(define: (server: McpServer) => void, servers: Map<string, McpServer>): Serve {
  const transports = new Map<string, SSEServerTransport>()
  return async (request, response, body) => {
    if (request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response)
      transports.set(transport.sessionId, transport)
      const server = newServer()
      servers.set(transport.sessionId, server)
      response.on('close', () => {
        transports.delete(transport.sessionId)
        servers.delete(transport.sessionId)
      })
      define(server)
      await server.connect(transport)
      return
    }
    const id = new URL(request.url ?? '/', 'http://a').searchParams.get('sessionId') ?? ''
    const transport = transports.get(id)
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handlePostMessage(request, response, body)
  }
}

export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  return text === '' ? undefined : (JSON.parse(text) as unknown)
}

export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
