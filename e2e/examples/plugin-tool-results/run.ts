import type { Example } from '../../harness/example/example.ts'

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', arguments: { text: 'pay with 4111 1111 1111 1111' } } }
const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'curl', version: '1' } },
}
const headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'"

export default {
  upstreams: [{ name: 'documents', port: 9001, kind: 'mcp' }],
  commands: [
    {
      title: 'the result of a tool without the card number',
      command: `session=$(curl -si http://localhost:8080/mcp ${headers} -d '${JSON.stringify(initialize)}' | sed -n 's/^mcp-session-id: //Ip' | tr -d '\\r'); curl -s http://localhost:8080/mcp ${headers} -H "mcp-session-id: $session" -d '${JSON.stringify(call)}'`,
      prints: /search in documents: .*pay with \[redacted\]/,
    },
  ],
} satisfies Example
