import { expect } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const chat = (run: ExampleRun, content: string, mock?: string) =>
  run.send(8080, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', ...(mock !== undefined && { 'x-mock-openai': mock }) },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }] }),
  })
const count = (run: ExampleRun) => ['openai', 'anthropic'].map((name) => run.upstream(name).requests.length)

const isFirstUsed = async (run: ExampleRun): Promise<boolean> => {
  const before = run.upstream('openai').requests.length
  expect((await chat(run, 'hello')).status).toBe(200)
  return run.upstream('openai').requests.length > before
}

export default expectations({
  'the first group receives the requests while it is healthy': async (run) => {
    await waitUntil('the first group is in', () => isFirstUsed(run))
    expect(await isFirstUsed(run)).toBe(true)
  },
  'after a failure the second group is used until the eviction of the first ends': async (run) => {
    const [openai = 0, anthropic = 0] = count(run)
    expect((await chat(run, 'fail', 'status=429')).status).toBe(200)
    expect(count(run)).toEqual([openai + 1, anthropic + 1])
    expect(await isFirstUsed(run)).toBe(false)
    await waitUntil('the first group is back', () => isFirstUsed(run))
  },
})
