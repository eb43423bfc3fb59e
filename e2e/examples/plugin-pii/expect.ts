import Anthropic from '@anthropic-ai/sdk'
import { expect } from '@jest/globals'
import OpenAI from 'openai'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const openai = (run: ExampleRun) => new OpenAI({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}/v1` })
const anthropic = (run: ExampleRun) => new Anthropic({ apiKey: 'x', maxRetries: 0, baseURL: `http://127.0.0.1:${run.port(8080)}` })
const prompt = 'ann@example.com and bob.b+x@mail.example.org, not ann@example.com, on +49 170-555-0100 [email'
const hidden = '[email 1] and [email 2], not [email 1], on [phone 3] [email'
const ask = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: prompt }] }

const lastPrompt = (run: ExampleRun): unknown => {
  const { messages } = JSON.parse(run.upstream('llm').requests.at(-1)?.body ?? '{}') as { messages?: { content: unknown }[] }
  return messages?.at(-1)?.content
}

export default expectations({
  'the provider receives tokens, one for each value, and the client the values': async (run) => {
    const { choices } = await openai(run).chat.completions.create(ask)
    expect(choices[0]?.message.content).toBe(`echo: ${prompt}`)
    expect(lastPrompt(run)).toBe(hidden)
  },
  'values are restored in streams whose events split the tokens, to the clients of OpenAI and Anthropic': async (run) => {
    const stream = openai(run).chat.completions.stream(ask)
    const pieces: string[] = []
    stream.on('content', (piece) => pieces.push(piece))
    expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(`echo: ${prompt}`)
    expect(pieces.length).toBeGreaterThan(5)
    expect(lastPrompt(run)).toBe(hidden)
    const { content } = await anthropic(run)
      .messages.stream({ ...ask, max_tokens: 100 })
      .finalMessage()
    expect(content).toMatchObject([{ type: 'text', text: `echo: ${prompt}` }])
    const response = await openai(run).responses.stream({ model: 'gpt-4o', input: prompt }).finalResponse()
    expect(response.output_text).toBe(`echo: ${prompt}`)
  },
  'a token that the request did not have stays as it is': async (run) => {
    const { choices } = await openai(run).chat.completions.create({ ...ask, messages: [{ role: 'user', content: 'what is [phone 7]?' }] })
    expect(choices[0]?.message.content).toBe('echo: what is [phone 7]?')
  },
})
