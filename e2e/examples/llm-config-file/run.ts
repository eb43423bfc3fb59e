import type { Example } from '../../harness/example/example.ts'

const chat = (model: string): string =>
  `curl -s http://localhost:4000/v1/chat/completions -H 'content-type: application/json' -d '${JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] })}'`
const tools = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })

export default {
  upstreams: [
    { name: 'llm', port: 9001, kind: 'llm' },
    { name: 'documents', port: 9002, kind: 'mcp' },
    { name: 'tickets', port: 9003, kind: 'mcp' },
  ],
  commands: [
    { title: 'a chat with a model of Anthropic in the format of OpenAI', command: chat('claude'), prints: /"content":"echo: hello"/ },
    { title: 'the models', command: 'curl -s http://localhost:4000/v1/models', prints: /"id":"gpt-4o"[^]*"id":"claude"/ },
    { title: 'a model that does not exist', command: chat('gpt-5'), prints: /"message":"The model of this request does not exist. Models: gpt-4o, claude"/ },
    {
      title: 'the tools of both MCP servers',
      command: `curl -s http://localhost:3000/mcp -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -d '${tools}'`,
      prints: /"documents_search"[^]*"tickets_search"/,
    },
  ],
} satisfies Example
