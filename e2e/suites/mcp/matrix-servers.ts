import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, GetPromptRequestSchema, ListToolsRequestSchema, ReadResourceRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { acceptedContent, createMcpHandler, fromJsonSchema, inputRequired, McpServer } from '@modelcontextprotocol/server'

/** A server of the matrix. All have the tools `add`, `count` (progress) and `who` (elicitation), the prompt `ask` and the resource `note://x`. */
interface MatrixServer {
  readonly port: number
  close(): Promise<void>
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const objectOf = (type: string, ...names: string[]) => ({
  type: 'object' as const,
  properties: Object.fromEntries(names.map((name) => [name, { type }])),
  required: names,
})
const schemas = { add: objectOf('number', 'a', 'b'), count: objectOf('number', 'to'), who: objectOf('string') }
const elicitation = { message: 'Who?', requestedSchema: { type: 'object' as const, properties: { name: { type: 'string' as const } }, required: ['name'] } }
const question = (topic: string) => ({ messages: [{ role: 'user' as const, content: { type: 'text' as const, text: `What is ${topic}?` } }] })

/** A server of SDK 1: sessions, revisions up to 2025-11-25. */
export async function startServerV1(): Promise<MatrixServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>()
  return serve(async (request, response) => {
    const id = String(request.headers['mcp-session-id'] ?? '')
    const transport = transports.get(id) ?? (id === '' ? await newTransport(transports) : undefined)
    if (transport === undefined) return void response.writeHead(404).end()
    await transport.handleRequest(request, response)
  })
}

async function newTransport(known: Map<string, StreamableHTTPServerTransport>): Promise<StreamableHTTPServerTransport> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => void known.set(id, transport),
    onsessionclosed: (id) => void known.delete(id),
  })
  const server = new ServerV1({ name: 'ts1', version: '1' }, { capabilities: { tools: {}, prompts: {}, resources: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: Object.entries(schemas).map(([name, inputSchema]) => ({ name, inputSchema })) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { _meta: meta, sendNotification, requestId }) => {
    const { a = 0, b = 0, to = 0 } = (params.arguments ?? {}) as { a?: number; b?: number; to?: number }
    if (params.name === 'add') return text(String(a + b))
    if (params.name === 'who') return text(JSON.stringify((await server.elicitInput(elicitation, { relatedRequestId: requestId })).content))
    const { progressToken } = meta ?? {}
    for (let progress = 1; progress <= to && progressToken !== undefined; progress++)
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } })
    return text(`counted to ${to}`)
  })
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => question(params.arguments?.['topic'] ?? ''))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [{ uri: params.uri, text: 'note x' }] }))
  await server.connect(transport)
  return transport
}

/** A server of SDK 2 that speaks revision 2026-07-28 only. */
export async function startServerV2(): Promise<MatrixServer> {
  const define = (): McpServer => {
    const server = new McpServer({ name: 'ts2', version: '1' })
    server.registerTool('add', { inputSchema: fromJsonSchema<{ a: number; b: number }>(schemas.add) }, ({ a, b }) => text(String(a + b)))
    server.registerTool('count', { inputSchema: fromJsonSchema<{ to: number }>(schemas.count) }, async ({ to }, { mcpReq }) => {
      const { _meta: meta } = mcpReq
      const { progressToken } = meta ?? {}
      for (let progress = 1; progress <= to && progressToken !== undefined; progress++)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress } })
      return text(`counted to ${to}`)
    })
    server.registerTool('who', {}, ({ mcpReq }) => {
      const content = acceptedContent(mcpReq.inputResponses, 'who')
      if (content === undefined) return inputRequired({ inputRequests: { who: inputRequired.elicit(elicitation) } })
      return text(JSON.stringify(content))
    })
    server.registerPrompt('ask', { argsSchema: fromJsonSchema<{ topic: string }>(objectOf('string', 'topic')) }, ({ topic }) => question(topic))
    server.registerResource('note', 'note://x', {}, ({ href }) => ({ contents: [{ uri: href, text: 'note x' }] }))
    return server
  }
  const handler = createMcpHandler(define, { legacy: 'reject' })
  return serveFetch((request) => handler.fetch(request))
}

/** Serves a handler of Fetch API requests on a free port. */
export async function serveFetch(handle: (request: Request) => Response | Promise<Response>): Promise<MatrixServer> {
  return serve(async (request, response) => {
    const headers = Object.entries(request.headers).map(([field, value]): [string, string] => [field, String(value)])
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }
    const answer = await handle(new Request(`http://127.0.0.1${request.url ?? '/'}`, { method: request.method ?? 'GET', headers, ...body }))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body === null) response.end()
    else Readable.fromWeb(answer.body).pipe(response)
  })
}

async function serve(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<MatrixServer> {
  const server: HttpServer = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
