import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object, headers = '') =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'${headers} -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'curl', version: '1' } }

export default {
  upstreams: [{ name: 'documents', port: 9001, kind: 'mcp' }],
  commands: [
    {
      title: 'the server returns its name and a session',
      command: `${post({ method: 'initialize', params })} -i`,
      prints: /mcp-session-id: [\w+/=]+[^]*"serverInfo":\{"name":"documents"/i,
    },
    { title: 'without a session: 400', command: post({ method: 'tools/list' }), prints: /^session header is required/ },
  ],
} satisfies Example
