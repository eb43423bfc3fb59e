import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const chatRequest = (content: string) => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
})

export default expectations({
  'tokens are counted after the response: the request that exceeds the budget succeeds, the next gets 429': async (run) => {
    expect((await run.send(8080, chatRequest('one two three four five six seven eight nine ten'))).status).toBe(200)
    const refused = await run.send(8080, chatRequest('hello'))
    expect([refused.status, refused.body, refused.headers['x-ratelimit-limit'], refused.headers['x-ratelimit-remaining']]).toEqual([
      429,
      'rate limit exceeded',
      '20',
      '0',
    ])
    expect(run.upstream('llm').requests.length).toBe(1)
  },
})
