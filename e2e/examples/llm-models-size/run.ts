import type { Example } from '../../harness/example/example.ts'

const chat = (body: string): string => `curl -s -o /dev/null -w '%header{x-proxy-model}' http://localhost:8080/v1/chat/completions -d ${body}`

export default {
  upstreams: [
    { name: 'gemini', port: 9001, kind: 'llm' },
    { name: 'openai', port: 9002, kind: 'llm' },
    { name: 'vllm', port: 9003, kind: 'llm' },
  ],
  commands: [
    {
      title: 'a short prompt goes to the Service',
      command: chat(`'{"model":"assistant","messages":[{"role":"user","content":"hello"}]}'`),
      prints: /^llama$/,
    },
    {
      title: 'a request with tools goes to the capable model',
      command: chat(`'{"model":"assistant","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f"}}]}'`),
      prints: /^gpt-5$/,
    },
    {
      title: 'a long prompt goes to the model with the large context window',
      command: chat(`"{\\"model\\":\\"assistant\\",\\"messages\\":[{\\"role\\":\\"user\\",\\"content\\":\\"$(head -c 20000 /dev/zero | tr '\\0' x)\\"}]}"`),
      prints: /^gemini-3-pro$/,
    },
  ],
} satisfies Example
