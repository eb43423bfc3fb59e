import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object, headers = '') =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'${headers} -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

export default {
  upstreams: [
    { name: 'documents', port: 9001, kind: 'mcp' },
    { name: 'tickets', port: 9002, kind: 'mcp' },
  ],
  commands: [
    {
      title: 'the tools of both servers',
      command: post({ method: 'tools/list' }),
      prints: /"documents_search"[^]*"documents_delete"[^]*"tickets_search"[^]*"tickets_delete"/,
    },
    {
      title: 'a tool of the second server',
      command: post({ method: 'tools/call', params: { name: 'tickets_search', arguments: { text: 'printer' } } }),
      prints: /search in tickets: \\"printer\\"/,
    },
    {
      title: 'a resource of the first server',
      command: post({ method: 'resources/read', params: { uri: 'documents+documents://readme' } }),
      prints: /"uri":"documents\+documents:\/\/readme"[^]*About documents/,
    },
  ],
} satisfies Example
