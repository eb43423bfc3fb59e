import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function modelFor(run: ExampleRun, body: object): Promise<string> {
  const response = await run.send(8080, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'hello' }], ...body }),
  })
  return response.status === 200 ? String(response.headers['x-proxy-model']) : String(response.status)
}

const text = (content: string): object => ({ messages: [{ role: 'user', content }] })
const image = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }] }

export default expectations({
  'the target is chosen by size, tools and media': async (run) => {
    const tools = { tools: [{ type: 'function', function: { name: 'f' } }] }
    expect([await modelFor(run, {}), await modelFor(run, text('x'.repeat(20_000))), await modelFor(run, tools), await modelFor(run, image)]).toEqual([
      'llama',
      'gemini-3-pro',
      'gpt-5',
      'gpt-5',
    ])
    expect(run.upstream('vllm').requests.every(({ path }) => path === '/v1/chat/completions')).toBe(true)
  },
})
