import { expect } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

/** The model that responds, or the status of an error. */
async function ask(run: ExampleRun, model: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const response = await run.send(8080, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  return response.status === 200 ? String(response.headers['x-proxy-model']) : String(response.status)
}

export default expectations({
  'a session stays with its target, and sessions are divided by weight': async (run) => {
    const chosen = new Map<string, string>()
    for (let i = 0; i < 40; i++) chosen.set(`s${i}`, await ask(run, 'assistant', { 'x-session': `s${i}` }))
    for (const [session, model] of chosen) expect(await ask(run, 'assistant', { 'x-session': session })).toBe(model)
    expect(new Set(chosen.values())).toEqual(new Set(['gpt-5', 'claude-sonnet-4-5']))
  },
  'the fallback is used while the provider of the target is evicted': async (run) => {
    await waitUntil('the target is in', async () => (await ask(run, 'steady')) === 'gpt-5')
    await ask(run, 'steady', { 'x-mock-openai': 'status=429' })
    expect(await ask(run, 'steady')).toBe('claude-sonnet-4-5')
    await waitUntil('the target is back', async () => (await ask(run, 'steady')) === 'gpt-5')
  },
  'internal and unknown models do not exist for clients': async (run) => {
    expect([await ask(run, 'gpt-5-raw'), await ask(run, 'nothing')]).toEqual(['404', '404'])
  },
})
