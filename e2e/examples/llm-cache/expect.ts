import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

const chatRequest = (content: string, team?: string, more: object = {}, headers: Record<string, string> = {}) => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: { 'content-type': 'application/json', ...(team !== undefined && { 'x-team': team }), ...headers },
  body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }], ...more }),
})

export default expectations({
  'an equal request of the same team gets the stored response, also as a stream': async (run) => {
    const { requests } = run.upstream('llm')
    const before = requests.length
    const first = await run.send(8080, chatRequest('what is a proxy?', 'red'))
    const second = await run.send(8080, chatRequest('what is a proxy?', 'red'))
    expect([second.status, second.body]).toEqual([200, first.body])
    expect(second.headers['age']).toMatch(/^\d+$/)

    const stream = await run.send(8080, chatRequest('what is a proxy?', 'red', { stream: true }))
    expect([stream.status, stream.headers['content-type']]).toEqual([200, expect.stringContaining('text/event-stream')])
    expect(stream.headers['age']).toMatch(/^\d+$/)
    expect(requests.length - before).toBe(1)
  },

  'another team, a request without team and no-store get a response of the provider': async (run) => {
    const { requests } = run.upstream('llm')
    await run.send(8080, chatRequest('what is a cache?', 'red'))
    const before = requests.length
    for (const request of [
      chatRequest('what is a cache?', 'blue'),
      chatRequest('what is a cache?'),
      chatRequest('what is a cache?', 'red', {}, { 'cache-control': 'no-store' }),
    ]) {
      expect((await run.send(8080, request)).headers).not.toHaveProperty('age')
    }
    expect(requests.length - before).toBe(3)
  },
})
