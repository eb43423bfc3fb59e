import { expect } from '@jest/globals'
import { waitUntil } from '../../harness/wait.ts'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

/** The model that responds to each of some requests, or the status of an error. */
async function ask(run: ExampleRun, model: string, count: number, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const models: string[] = []
  for (let i = 0; i < count; i++) {
    const response = await run.send(8080, {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
    })
    models.push(response.status === 200 ? String(response.headers['x-proxy-model']) : String(response.status))
  }
  return models
}

export default expectations({
  'a rollout without errors ends with all requests at the new model': async (run) => {
    await waitUntil('the rollout is promoted', async () => (await ask(run, 'assistant', 30)).every((model) => model === 'gpt-5.5'))
  },
  'errors of the new model abort its rollout': async (run) => {
    const broken = { 'x-mock-next': 'status=503' }
    await waitUntil('the rollout is aborted', async () => (await ask(run, 'risky', 20, broken)).every((model) => model === 'gpt-5'))
    expect(new Set(await ask(run, 'risky', 20))).toEqual(new Set(['gpt-5']))
  },
})
