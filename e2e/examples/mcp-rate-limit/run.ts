import type { Example } from '../../harness/example/example.ts'

/** The status of one message to the gateway. */
const post = (user: string, message: object) =>
  `curl -s -o /dev/null -w '%{http_code}' http://localhost:8080/mcp -H 'X-User: ${user}' -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`

const use = (user: string, name: string) => post(user, { method: 'tools/call', params: { name } })

export default {
  upstreams: [{ name: 'tickets', port: 9001, kind: 'mcp' }],
  commands: [
    { title: 'a list does not count', command: post('ann', { method: 'tools/list' }), prints: /^200$/ },
    { title: 'the first call of a tool', command: use('ann', 'search'), prints: /^200$/ },
    { title: 'the second call is over the limit', command: use('ann', 'search'), prints: /^429$/ },
    { title: 'each tool has a limit of its own', command: use('ann', 'delete'), prints: /^200$/ },
    { title: 'and each user', command: use('bob', 'search'), prints: /^200$/ },
  ],
} satisfies Example
