import type { Example } from '../../harness/example/example.ts'

const CARD = 'curl -s http://localhost:8080/agents/echo/.well-known/agent-card.json'
const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
const rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })

export default {
  upstreams: [{ name: 'echo', port: 9001, kind: 'agent' }],
  commands: [
    { title: 'the card names the gateway', command: CARD, prints: /"url":"http:\/\/localhost:8080\/agents\/echo\/rpc"/ },
    {
      title: 'the agent responds through the gateway',
      command: `curl -s http://localhost:8080/agents/echo/rpc -H 'content-type: application/json' -H 'A2A-Version: 1.0' -d '${rpc}'`,
      prints: /"text":"echo: hello"/,
    },
  ],
} satisfies Example
