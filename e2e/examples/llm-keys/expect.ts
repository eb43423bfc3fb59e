import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const chat = (run: ExampleRun, key: string, model = 'gpt-4o') =>
  run.send(8080, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'one two three four five' }] }),
  })

export default expectations({
  'a key is limited to its models, and the provider receives the key of the provider': async (run) => {
    const refused = await chat(run, 'demo-key-alice', 'o3')
    expect([refused.status, refused.body]).toEqual([403, 'model not allowed: the API key may not use o3'])
    expect((await chat(run, 'demo-key-bob', 'o3')).status).toBe(200)
    expect(run.upstream('llm').requests.at(-1)?.headers['authorization']).toBe('Bearer demo-provider-key')
  },
  'each key has its own token budget': async (run) => {
    const [first, second, third] = [await chat(run, 'demo-key-alice'), await chat(run, 'demo-key-alice'), await chat(run, 'demo-key-alice')]
    expect([first.status, second.status, third.status]).toEqual([200, 200, 429])
    expect([first.headers['x-ratelimit-limit'], third.headers['x-ratelimit-remaining']]).toEqual(['12', '0'])
    expect((await chat(run, 'demo-key-bob')).status).toBe(200)
  },
  'responses carry their cost': async (run) => {
    // 5 input tokens and 6 output tokens.
    expect(Number((await chat(run, 'demo-key-bob')).headers['x-cost'])).toBeCloseTo((5 * 2.5 + 6 * 10) / 1e6, 9)
    expect(await run.dataplane.metrics()).toContain('proxy_gen_ai_client_cost_total')
  },
})
