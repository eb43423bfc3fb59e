import type { Example } from '../../harness/example/example.ts'

const body = (model: string): string => JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] })
const chat = (model: string, more = ''): string =>
  `curl -s -o /dev/null -w '%header{x-proxy-model}' http://localhost:8080/v1/chat/completions ${more}-d '${body(model)}'`

export default {
  upstreams: [
    { name: 'openai', port: 9001, kind: 'llm' },
    { name: 'anthropic', port: 9002, kind: 'llm' },
  ],
  commands: [
    { title: 'the provider is asked for the model of the target', command: chat('gpt-5-mini'), prints: /^gpt-5-mini-2026-08$/ },
    { title: 'requests of one session go to one target', command: chat('assistant', "-H 'x-session: a' "), prints: /^(?:gpt-5|claude-sonnet-4-5)$/ },
    {
      title: 'models that clients may use are listed',
      command: 'curl -s http://localhost:8080/v1/models',
      prints: /"id":"gpt-5-mini".*"id":"assistant".*"id":"steady"/,
    },
    {
      title: 'others do not exist',
      command: `curl -s http://localhost:8080/v1/chat/completions -d '${body('gpt-5-raw')}'`,
      prints: /the model does not exist: "gpt-5-raw"; use one of gpt-5-mini, assistant, steady/,
    },
  ],
} satisfies Example
