import Anthropic from '@anthropic-ai/sdk'
import { expect } from '@jest/globals'
import OpenAI from 'openai'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const openai = (run: ExampleRun) => new OpenAI({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}/v1` })

const lastModel = (run: ExampleRun): unknown => (JSON.parse(run.upstream('llm').requests.at(-1)?.body ?? '{}') as { model?: unknown }).model

async function modelFor(run: ExampleRun, messages: readonly string[], model = 'auto'): Promise<unknown> {
  await openai(run).chat.completions.create({ model, messages: messages.map((content) => ({ role: 'user', content })) })
  return lastModel(run)
}

export default expectations({
  'the model depends on the length of all messages': async (run) => {
    expect(await modelFor(run, ['x'.repeat(200)])).toBe('gpt-4o-mini')
    expect(await modelFor(run, ['x'.repeat(100), 'x'.repeat(101)])).toBe('gpt-4o')
    expect(await modelFor(run, ['x'.repeat(4001)])).toBe('gpt-4.1')
    expect(await modelFor(run, ['x'.repeat(4001)], 'gpt-4o-mini')).toBe('gpt-4o-mini')
  },
  'clients of other formats get the same model': async (run) => {
    const anthropic = new Anthropic({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}` })
    await anthropic.messages.create({ model: 'auto', max_tokens: 9, system: 'x'.repeat(150), messages: [{ role: 'user', content: 'x'.repeat(51) }] })
    expect(lastModel(run)).toBe('gpt-4o')
    await openai(run).responses.create({ model: 'auto', input: 'hello' })
    expect(lastModel(run)).toBe('gpt-4o-mini')
  },
  'the choice is counted by model': async (run) => {
    await modelFor(run, ['hello'])
    const metrics = await run.dataplane.metrics()
    expect(metrics).toMatch(/proxy_plugin_events_total\{plugin="[^"]*router",event="routed",detail="gpt-4o-mini"\} \d/)
  },
})
