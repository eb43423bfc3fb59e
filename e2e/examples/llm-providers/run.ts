import type { Example } from '../../harness/example/example.ts'

const curl = (path: string, body: object): string => `curl -s http://localhost:8080${path} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'good morning' }] }

export default {
  upstreams: [{ name: 'llm', port: 9001, kind: 'llm' }],
  commands: [
    { title: 'an OpenAI client calls OpenAI', command: curl('/openai/v1/chat/completions', chat), prints: /"content":"echo: good morning"/ },
    {
      title: 'the same client calls Anthropic',
      command: curl('/anthropic/v1/chat/completions', chat),
      prints: /"object":"chat.completion".*echo: good morning/,
    },
    {
      title: 'an Anthropic client calls Bedrock and reads a stream',
      command: curl('/bedrock/v1/messages', { model: 'any', max_tokens: 100, stream: true, messages: chat.messages }),
      prints: /event: message_start[^]*"text":"good "[^]*event: message_stop/,
    },
  ],
} satisfies Example
