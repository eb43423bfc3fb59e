import type { Example } from '../../harness/example/example.ts'

const body = JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'hello' }] })
const chat = (key: string): string =>
  `curl -s -o /dev/null -w '%{http_code} %header{x-proxy-model}' http://localhost:8080/v1/chat/completions -H 'authorization: Bearer ${key}' -d '${body}'`

export default {
  upstreams: [
    { name: 'openai', port: 9001, kind: 'llm' },
    { name: 'anthropic', port: 9002, kind: 'llm' },
  ],
  commands: [
    { title: 'team blue uses its model', command: chat('demo-key-blue'), prints: /^200 gpt-5$/ },
    { title: 'team green uses another one by the same name', command: chat('demo-key-green'), prints: /^200 claude-sonnet-4-5$/ },
    { title: 'for others, the model does not exist', command: chat('demo-key-guest'), prints: /^404 $/ },
    {
      title: 'the list shows what the caller may use',
      command: "curl -s http://localhost:8080/v1/models -H 'authorization: Bearer demo-key-guest'",
      prints: /"data":\[\]/,
    },
  ],
} satisfies Example
