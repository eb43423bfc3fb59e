import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object) =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`
const call = (name: string, args: object) => post({ method: 'tools/call', params: { name, arguments: args } })

export default {
  upstreams: [{ name: 'pets', port: 9001 }],
  commands: [
    {
      title: 'the selected operations are tools',
      command: post({ method: 'tools/list' }),
      prints: /"name":"listPets".*"name":"add_pet".*"name":"getPet"(?!.*deletePet)/,
    },
    {
      title: 'a call is a request to the API',
      command: call('listPets', { tags: ['dog', 'small & loud'], limit: 2 }),
      prints: /\/v1\/pets\?tags=dog,small%20%26%20loud&limit=2/,
    },
    {
      title: 'arguments are checked',
      command: call('listPets', { limit: 1000 }),
      prints: /Invalid arguments: arguments.limit must be at most 100.*"isError":true/,
    },
    { title: 'arguments stay in their place', command: call('getPet', { id: '../admin' }), prints: /"isError":true/ },
  ],
} satisfies Example
