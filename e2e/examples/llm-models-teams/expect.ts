import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const ask = (run: ExampleRun, key: string, path = '/v1/chat/completions') =>
  run.send(8080, {
    path,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    ...(path === '/v1/models'
      ? { method: 'GET' }
      : { method: 'POST', body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'hi' }] }) }),
  })

export default expectations({
  'each team gets its own model, with the credentials of its namespace': async (run) => {
    expect([(await ask(run, 'demo-key-blue')).status, (await ask(run, 'demo-key-green')).status]).toEqual([200, 200])
    expect(run.upstream('openai').requests.at(-1)?.headers['authorization']).toBe('Bearer key-of-blue')
    expect(run.upstream('anthropic').requests.at(-1)?.headers['x-api-key']).toBe('key-of-green')
  },
  'the model does not exist for clients of no team, nor do the models of the teams': async (run) => {
    expect((await ask(run, 'demo-key-guest')).status).toBe(404)
    const lists = await Promise.all(['demo-key-blue', 'demo-key-guest'].map((key) => ask(run, key, '/v1/models')))
    expect(lists.map(({ body }) => (JSON.parse(body) as { data: { id: string }[] }).data.map(({ id }) => id))).toEqual([['assistant'], []])
  },
})
