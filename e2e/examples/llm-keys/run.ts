import type { Example } from '../../harness/example/example.ts'

const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }] })

export default {
  upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }],
  commands: [
    {
      title: 'the cost of a response',
      command: `curl -s -i http://localhost:8080/v1/chat/completions -H 'authorization: Bearer demo-key-bob' -d '${body}'`,
      prints: /x-cost: 0\.0000225/i,
    },
  ],
} satisfies Example
