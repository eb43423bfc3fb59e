import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object, headers = '') =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream'${headers} -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

export default {
  upstreams: [{ name: 'tickets', port: 9001, kind: 'mcp' }],
  commands: [
    {
      title: 'one tool, without its argument',
      command: post({ method: 'tools/list' }),
      prints: /"tools":\[\{"name":"find_tickets","description":"Finds the tickets of your team.","inputSchema":\{"type":"object","properties":\{\}\}\}\]/,
    },
    {
      title: 'the gateway sets the argument',
      command: post({ method: 'tools/call', params: { name: 'find_tickets' } }, ` -H 'X-Team: red'`),
      prints: /search in tickets: \\"team:red\\"/,
    },
    {
      title: 'an excluded tool is unknown',
      command: post({ method: 'tools/call', params: { name: 'delete' } }),
      prints: /Unknown tool: delete/,
    },
  ],
} satisfies Example
