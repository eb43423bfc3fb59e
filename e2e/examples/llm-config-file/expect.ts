import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const send = (run: ExampleRun, path: string, model: string) =>
  run.send(4000, {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-the-client' },
    body: JSON.stringify({ model, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }),
  })

export default expectations({
  'each model is served by its provider, with the key of the gateway': async (run) => {
    const { requests } = run.upstream('llm')
    expect((await send(run, '/v1/chat/completions', 'gpt-4o')).status).toBe(200)
    expect(requests.at(-1)).toMatchObject({ path: '/v1/chat/completions', headers: { authorization: 'Bearer demo-openai-key' } })
    expect((await send(run, '/v1/messages', 'claude')).status).toBe(200)
    expect(requests.at(-1)).toMatchObject({ path: '/v1/messages', headers: { 'x-api-key': 'demo-anthropic-key' } })
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toMatchObject({ model: 'claude-sonnet-4-5' })
  },
  'a client of Anthropic uses the model of OpenAI': async (run) => {
    expect((await send(run, '/v1/messages', 'gpt-4o')).json()).toMatchObject({ type: 'message', content: [{ type: 'text', text: 'echo: hello' }] })
  },
})
