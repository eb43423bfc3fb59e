import type { Example } from '../../harness/example/example.ts'

/** A call of a tool. */
const use = (name: string, args: object) => post({ method: 'tools/call', params: { name, arguments: args } })

/** One message to the gateway. */
const post = (message: object) =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

export default {
  upstreams: [
    { name: 'documents', port: 9001, kind: 'mcp' },
    { name: 'tickets', port: 9002, kind: 'mcp' },
  ],
  commands: [
    { title: 'clients see three tools', command: post({ method: 'tools/list' }), prints: /"search_tools"[^]*"describe_tool"[^]*"call_tool"/ },
    {
      title: 'the best match is first',
      command: use('search_tools', { query: 'delete a ticket', limit: 1 }),
      prints: /\{\\"name\\":\\"tickets_delete\\",\\"description\\":\\"Deletes from the tickets.\\"\}/,
    },
    { title: 'its arguments', command: use('describe_tool', { name: 'tickets_delete' }), prints: /inputSchema/ },
    {
      title: 'a call of it',
      command: use('call_tool', { name: 'tickets_delete', arguments: { text: 'printer' } }),
      prints: /delete in tickets: \\"printer\\"/,
    },
  ],
} satisfies Example
