import Anthropic from '@anthropic-ai/sdk'
import { expect } from '@jest/globals'
import OpenAI from 'openai'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const post = (run: ExampleRun, path: string, content: string, more: object = {}) =>
  run.send(8080, {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content }], ...more }),
  })
const openai = (run: ExampleRun, prefix: string) => new OpenAI({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}${prefix}/v1` })
const anthropic = (run: ExampleRun, prefix: string) => new Anthropic({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}${prefix}` })
const seen = (run: ExampleRun): number => run.upstream('llm').requests.length
const secret = 'the number 123-45-6789 is of project-apollo today'
const masked = 'echo: the number <SSN> is of <masked> today'

export default expectations({
  'a rejected prompt never reaches the provider': async (run) => {
    const before = seen(run)
    const { status, body } = await post(run, '/patterns/v1/chat/completions', 'pay with 4111 1111 1111 1111')
    expect([status, body, seen(run)]).toEqual([422, 'no card numbers, please', before])
  },
  'masked parts of a prompt never reach the provider': async (run) => {
    await post(run, '/patterns/v1/chat/completions', 'write to ann@example.com')
    expect(run.upstream('llm').requests.at(-1)?.body).toContain('write to <EMAIL_ADDRESS>')
  },
  'the OpenAI SDK receives masked responses, buffered and streamed, in both of its formats': async (run) => {
    const client = openai(run, '/patterns')
    const messages = [{ role: 'user' as const, content: secret }]
    const whole = await client.chat.completions.create({ model: 'gpt-4o', messages })
    expect(whole.choices[0]?.message.content).toBe(masked)
    const stream = client.chat.completions.stream({ model: 'gpt-4o', messages })
    const pieces: string[] = []
    stream.on('content', (piece) => pieces.push(piece))
    expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(masked)
    expect([pieces.join(''), pieces.length > 3]).toEqual([masked, true])
    const response = await client.responses.stream({ model: 'gpt-4o', input: secret }).finalResponse()
    expect(response.output_text).toBe(masked)
  },
  'the Anthropic SDK receives masked responses, buffered and streamed': async (run) => {
    const body = { model: 'gpt-4o', max_tokens: 100, messages: [{ role: 'user' as const, content: secret }] }
    const whole = await anthropic(run, '/patterns').messages.create(body)
    const streamed = await anthropic(run, '/patterns').messages.stream(body).finalMessage()
    for (const { content } of [whole, streamed]) expect(content).toMatchObject([{ type: 'text', text: masked }])
  },
  'a guard webhook rejects prompts with its own status and text': async (run) => {
    const { status, body } = await post(run, '/service/v1/chat/completions', 'where is the dragon?')
    expect([status, body]).toEqual([451, 'we do not talk about dragons'])
  },
  'a guard webhook changes responses and delays streams until it has checked them': async (run) => {
    const { body } = await post(run, '/service/v1/chat/completions', 'who is Smaug')
    expect(body).toContain('echo: who is [somebody]')
    const stream = openai(run, '/service').chat.completions.stream({ model: 'gpt-4o', messages: [{ role: 'user', content: 'who is Smaug' }] })
    expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe('echo: who is [somebody]')
  },
  'an unreachable guard rejects all prompts': async (run) => {
    const before = seen(run)
    for (const path of ['/away/v1/chat/completions', '/away/v1/messages']) {
      const { status, body } = await post(run, path, 'hello', { max_tokens: 5 })
      expect([status, body]).toEqual([503, 'prompt guard failed'])
    }
    expect(seen(run)).toBe(before)
  },
})
