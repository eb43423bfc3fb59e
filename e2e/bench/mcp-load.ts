import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

// Minimal MCP servers with constant responses: node mcp-load.ts TOOLS MODERN_PORT PORT...; prints `ready`. The server at MODERN_PORT speaks revision 2026-07-28
// only, the others earlier ones only.

const MODERN = '2026-07-28'
const [count, modernPort, ...ports] = process.argv.slice(2).map(Number)
const tools = Array.from({ length: count ?? 0 }, (_, index) => ({
  name: `tool_${index}`,
  description: 'A tool that does something, described in a sentence or two as real ones are.',
  inputSchema: { type: 'object', properties: { text: { type: 'string', description: 'What to do it with.' } }, required: ['text'] },
}))
const results: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'bench', version: '1' } },
  'tools/list': { tools },
  'tools/call': { content: [{ type: 'text', text: 'Forty characters of text, as tools return.' }] },
}
const discovered = { supportedVersions: [MODERN], capabilities: { tools: { listChanged: true } } }
const texts = new Map(Object.entries(results).map(([method, result]) => [method, JSON.stringify(result)]))

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: { readonly notifications?: object }
}

const modernTexts = new Map(
  Object.entries({ 'server/discover': discovered, 'tools/list': { tools, ttlMs: 0, cacheScope: 'private' }, 'tools/call': results['tools/call'] }).map(
    ([method, result]) => [method, JSON.stringify({ resultType: 'complete', ...result })],
  ),
)

/** Reads the message of a request. */
function serve(port: number, answer: (request: IncomingMessage, response: ServerResponse, message: Message) => void): void {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => answer(request, response, JSON.parse(body || '{}') as Message))
  })
  server.listen(port, '127.0.0.1')
}

function send(response: ServerResponse, status: number, text: string, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }).end(text)
}

const errorText = (id: unknown, code: number, data?: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id: id ?? null, error: { code, message: 'rejected', data } })

for (const port of ports)
  serve(port, (request, response, { id, method = '' }) => {
    if (request.method === 'GET') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    if (request.headers['mcp-protocol-version'] === MODERN) return send(response, 400, errorText(id, -32000))
    if (id === undefined) return void response.writeHead(202).end()
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${texts.get(method) ?? '{}'}}`
    send(response, 200, text, method === 'initialize' ? { 'mcp-session-id': 'bench-session' } : {})
  })

serve(modernPort ?? 0, (request, response, { id, method = '', params }) => {
  if (request.headers['mcp-protocol-version'] !== MODERN) return send(response, 400, errorText(id, -32022, { supported: [MODERN] }))
  if (method === 'subscriptions/listen') {
    const acknowledged = { notifications: params?.notifications ?? {}, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    return void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: acknowledged })}\n\n`)
  }
  const result = modernTexts.get(method)
  if (result === undefined) return send(response, 404, errorText(id, -32601))
  send(response, 200, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
})
console.log('ready')
