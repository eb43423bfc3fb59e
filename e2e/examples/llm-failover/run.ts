import type { Example } from '../../harness/example/example.ts'

const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }] })

export default {
  upstreams: [
    { name: 'openai', port: 9001, kind: 'llm' },
    { name: 'anthropic', port: 9002, kind: 'llm' },
  ],
  commands: [
    { title: 'the first group responds', command: `curl -s http://localhost:8080/v1/chat/completions -d '${body}'`, prints: /"model":"gpt-4o".*echo: hello/ },
    {
      title: 'the second group responds if the first fails',
      command: `curl -s http://localhost:8080/v1/chat/completions -H 'x-mock-openai: status=429' -d '${body}'`,
      prints: /"model":"claude-sonnet-4-5".*echo: hello/,
    },
  ],
} satisfies Example
