import type { Example } from '../../harness/example/example.ts'

const curl = (path: string, content: string, more: object = {}): string =>
  `curl -s http://localhost:8080${path}/v1/chat/completions -H 'content-type: application/json' -d '${JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }], ...more })}'`

export default {
  upstreams: [
    { name: 'llm', port: 9001, kind: 'llm' },
    { name: 'judge', port: 9002, kind: 'guard' },
  ],
  commands: [
    { title: 'a prompt with a card number is rejected', command: curl('/patterns', 'pay with 4111 1111 1111 1111'), prints: /^no card numbers, please$/ },
    {
      title: 'a streamed response is masked before it is sent',
      command: curl('/patterns', 'repeat: 123-45-6789 is of project-apollo', { stream: true }),
      prints: /<SSN>[^]*<masked>[^]*\[DONE\]/,
    },
    { title: 'a guard webhook rejects a prompt', command: curl('/service', 'where is the dragon?'), prints: /^we do not talk about dragons$/ },
    { title: 'an unreachable guard rejects all prompts', command: curl('/away', 'hello'), prints: /prompt guard failed/ },
  ],
} satisfies Example
