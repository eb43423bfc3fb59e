import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function bodyFor(run: ExampleRun, more: object, headers: Record<string, string> = {}): Promise<Record<string, unknown>> {
  const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hello' }], ...more })
  const response = await run.send(8080, { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json', ...headers }, body })
  expect(response.status).toBe(200)
  return JSON.parse(run.upstream('llm').requests.at(-1)?.body ?? '{}') as Record<string, unknown>
}

export default expectations({
  'aliases map model names exactly or by pattern': async (run) => {
    expect((await bodyFor(run, { model: 'fast' }))['model']).toBe('gpt-4o-mini')
    expect((await bodyFor(run, { model: 'claude-opus' }))['model']).toBe('gpt-4o')
    expect((await bodyFor(run, { model: 'o3' }))['model']).toBe('o3')
  },
  'the static message is prepended to every conversation': async (run) => {
    expect((await bodyFor(run, {}))['messages']).toEqual([
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: 'hello' },
    ])
  },
  'fields of the client replace defaults but not overrides': async (run) => {
    expect(await bodyFor(run, { temperature: 1, store: true })).toMatchObject({ temperature: 1, store: false })
    expect(await bodyFor(run, {})).toMatchObject({ temperature: 0.2, store: false })
  },
  'computed fields can read the body and the request; a field whose expression fails is removed': async (run) => {
    expect(await bodyFor(run, { max_completion_tokens: 50_000 }, { 'x-team': 'red' })).toMatchObject({ max_completion_tokens: 1000, user: 'red' })
    const body = await bodyFor(run, { max_completion_tokens: 50, user: 'me' })
    expect([body['max_completion_tokens'], body['user']]).toEqual([50, undefined])
  },
})
