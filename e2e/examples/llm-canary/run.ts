import type { Example } from '../../harness/example/example.ts'

const body = JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'hello' }] })

export default {
  upstreams: [
    { name: 'stable', port: 9001, kind: 'llm' },
    { name: 'next', port: 9002, kind: 'llm' },
  ],
  commands: [
    {
      title: 'a share of the requests goes to the new model',
      command: `curl -s -o /dev/null -w '%header{x-proxy-model}' http://localhost:8080/v1/chat/completions -d '${body}'`,
      prints: /^gpt-5(?:\.5)?$/,
    },
  ],
} satisfies Example
