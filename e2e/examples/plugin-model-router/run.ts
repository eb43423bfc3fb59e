import type { Example } from '../../harness/example/example.ts'

const curl = (model: string, content: string): string =>
  `curl -s http://localhost:8080/v1/chat/completions -H 'content-type: application/json' -d '${JSON.stringify({ model, messages: [{ role: 'user', content }] })}'`

export default {
  upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }],
  commands: [
    { title: 'a short prompt: the small model', command: curl('auto', 'hello'), prints: /"model":"gpt-4o-mini"/ },
    { title: 'a longer one: the next model', command: curl('auto', 'hello '.repeat(40).trim()), prints: /"model":"gpt-4o"/ },
    { title: 'a model that the client names', command: curl('o3', 'hello'), prints: /"model":"o3"/ },
  ],
} satisfies Example
