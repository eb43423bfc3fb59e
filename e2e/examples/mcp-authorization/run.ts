import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object, headers = '') =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'${headers} -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

const support = ` -H 'X-Team: support'`

export default {
  upstreams: [
    { name: 'documents', port: 9001, kind: 'mcp' },
    { name: 'tickets', port: 9002, kind: 'mcp' },
  ],
  commands: [
    {
      title: 'all users see the tools that all may use',
      command: post({ method: 'tools/list' }),
      prints: /"documents_search"(?![^]*delete)[^]*"tickets_search"/,
    },
    { title: 'the group support sees one more tool', command: post({ method: 'tools/list' }, support), prints: /"tickets_delete"/ },
    {
      title: 'a denied tool is reported as unknown',
      command: post({ method: 'tools/call', params: { name: 'tickets_delete' } }),
      prints: /"code":-32602,"message":"Unknown tool: tickets_delete"/,
    },
    {
      title: 'the group support may call it',
      command: post({ method: 'tools/call', params: { name: 'tickets_delete' } }, support),
      prints: /delete in tickets/,
    },
  ],
} satisfies Example
