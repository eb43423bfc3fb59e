import type { Example } from '../../harness/example/example.ts'

const body = JSON.stringify({ model: 'gpt-4o', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] })

export default {
  upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }],
  commands: [
    {
      title: 'what is left of the budget of a team',
      command: `curl -s -i http://localhost:8080/v1/chat/completions -H 'authorization: Bearer demo-key-bob' -d '${body}'`,
      prints: /x-budget-remaining-usd: 499\.99/i,
    },
  ],
} satisfies Example
