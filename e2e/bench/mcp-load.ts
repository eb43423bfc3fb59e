import { createServer } from 'node:http'

// Minimal MCP servers with constant responses: node mcp-load.ts TOOLS PORT...; prints `ready`.

const [count, ...ports] = process.argv.slice(2).map(Number)
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
const texts = new Map(Object.entries(results).map(([method, result]) => [method, JSON.stringify(result)]))

for (const port of ports) {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      const { id, method = '' } = JSON.parse(body || '{}') as { id?: number; method?: string }
      if (id === undefined) return void response.writeHead(202).end()
      const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${texts.get(method) ?? '{}'}}`
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...(method === 'initialize' ? { 'mcp-session-id': 'bench-session' } : {}),
      })
      response.end(text)
    })
  })
  server.listen(port, '127.0.0.1')
}
console.log('ready')
