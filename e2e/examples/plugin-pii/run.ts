import type { Example } from '../../harness/example/example.ts'

const curl = (content: string, more: object = {}): string =>
  `curl -s http://localhost:8080/v1/chat/completions -H 'content-type: application/json' -d '${JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }], ...more })}'`

export default {
  upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }],
  commands: [
    { title: 'the response has the address again', command: curl('write to ann@example.com'), prints: /"content":"echo: write to ann@example\.com"/ },
    {
      title: 'so does a stream, although the provider splits the token',
      command: curl('call 555-0100 or ann@example.com', { stream: true }),
      prints: /"content":"555-0100 "[^]*"content":"ann@example\.com"[^]*\[DONE\]/,
    },
  ],
} satisfies Example
