import type { Example } from '../../harness/example/example.ts'

/** One message to the gateway. */
const post = (message: object) =>
  `curl -s http://localhost:8080/mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}'`
const call = (name: string, args: object) => post({ method: 'tools/call', params: { name, arguments: args } })

export default {
  upstreams: [{ name: 'shop', port: 9001, kind: 'grpc-shop' }],
  commands: [
    {
      title: 'unary methods are tools',
      command: post({ method: 'tools/list' }),
      prints: /"name":"Carts_AddItem".*"name":"Carts_GetCart"|"name":"Carts_GetCart".*"name":"Carts_AddItem"/,
    },
    {
      title: 'a call is a gRPC call',
      command: call('Carts_AddItem', { id: '1', item: { name: 'tea', cents: '450', size: 'SMALL' } }),
      prints: /"structuredContent":\{"id":"1","items":\[\{"name":"tea","cents":"450","size":"SMALL"/,
    },
    { title: 'errors of the server are results', command: call('Carts_GetCart', { id: '7' }), prints: /NOT_FOUND: no cart 7.*"isError":true/ },
    { title: 'arguments are checked', command: call('Carts_GetCart', { number: 1 }), prints: /Invalid arguments: .*number.*"isError":true/ },
  ],
} satisfies Example
