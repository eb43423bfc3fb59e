import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { fileURLToPath } from 'node:url'
import OpenAI, { BadRequestError } from 'openai'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, tailOf, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBackends, type Backends } from '../llm/gateway.ts'
import { PYTHON } from './gateway.ts'

/** llama.cpp's server as the provider: a real model, whose words nobody knows. What it must hold to is the form. */

const model = 'smollm2'
const servers: Program[] = []
let url: string
let gateway: Backends

beforeAll(async () => {
  const ports = await findFreePorts(2)
  for (const [at, kind] of ['chat', 'embeddings'].entries()) {
    const program = startProgram({
      name: `llama.cpp, ${kind}`,
      command: PYTHON,
      args: [fileURLToPath(new URL('llama.py', import.meta.url)), String(ports[at]), kind],
    })
    servers.push(program)
    const isReady = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${ports[at]}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    await waitUntil(`llama.cpp for ${kind}`, async () => program.hasExited() || (await isReady()), 240_000)
    if (program.hasExited()) throw new Error(`llama.cpp exited:\n${tailOf(program.lines)}`)
  }
  url = `http://127.0.0.1:${ports[0]}`
  const routes = { '/messages': 'Messages', '/messages/count_tokens': 'TokenCount', '/responses': 'Responses', '/embeddings': 'Embeddings', '*': 'Completions' }
  const backend = (provider: object, port: number | undefined): object => ({
    ai: { provider: { ...provider, host: '127.0.0.1', port } },
    policies: { ai: { routes } },
  })
  gateway = await startBackends({
    openai: backend({ providerA: {} }, ports[0]),
    anthropic: backend({ providerC: {} }, ports[0]),
    embeddings: backend({ providerA: {} }, ports[1]),
  })
})
afterAll(async () => {
  await gateway?.close()
  for (const server of servers) await server.stop(500)
})

const openai = (name = 'openai'): OpenAI => new OpenAI({ apiKey: 'of-the-client', maxRetries: 0, baseURL: `${gateway.origin(name)}/v1` })
const anthropic = (name: string): Anthropic => new Anthropic({ apiKey: 'of-the-client', maxRetries: 0, baseURL: gateway.origin(name) })
const messages = [{ role: 'user' as const, content: 'What is the weather in Paris?' }]
const schema = { type: 'object' as const, properties: { city: { type: 'string', enum: ['Paris'] } }, required: ['city'], additionalProperties: false }
const long = [{ role: 'user' as const, content: 'weather '.repeat(2000) }]

/** Whether the model is at work for a client. */
const isBusy = async (): Promise<boolean> => ((await (await fetch(`${url}/slots`)).json()) as { is_processing: boolean }[]).some((slot) => slot.is_processing)

describe('chat completions of llama.cpp', () => {
  test('are returned with usage', async () => {
    const { choices, usage } = await openai().chat.completions.create({ model, messages, max_tokens: 4 })
    expect([choices[0]?.message.content?.length, choices[0]?.finish_reason]).toEqual([expect.any(Number), 'length'])
    expect([usage?.completion_tokens, (usage?.prompt_tokens ?? 0) > 10]).toEqual([4, true])
  })

  test('are streamed with usage', async () => {
    const stream = openai().chat.completions.stream({ model, messages, max_tokens: 4, stream_options: { include_usage: true } })
    const pieces: string[] = []
    stream.on('content', (piece) => pieces.push(piece))
    const { choices, usage } = await stream.finalChatCompletion()
    expect([pieces.join(''), usage?.completion_tokens]).toEqual([choices[0]?.message.content, 4])
    expect(pieces.length).toBeGreaterThan(1)
  })

  test('read tools, calls and results', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'get_weather', description: 'the weather', parameters: schema } }]
    const calls = [{ id: 'call_1', type: 'function' as const, function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }]
    const turns = [
      ...messages,
      { role: 'assistant' as const, content: null, tool_calls: calls },
      { role: 'tool' as const, tool_call_id: 'call_1', content: '21 degrees' },
    ]
    const [plain, called] = await Promise.all(
      [{ messages }, { messages: turns, tools }].map((one) => openai().chat.completions.create({ model, max_tokens: 4, ...one })),
    )
    expect((called?.usage?.prompt_tokens ?? 0) - (plain?.usage?.prompt_tokens ?? 0)).toBeGreaterThan(100)
  })

  test('follow a JSON schema', async () => {
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'place', schema, strict: true } }
    const { choices } = await openai().chat.completions.create({ model, messages, response_format, max_tokens: 64 })
    expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual({ city: 'Paris' })
  })

  test('end when the client leaves, and the server stops its work', async () => {
    const stream = await openai().chat.completions.create({ model, messages, stream: true, max_tokens: 900 })
    for await (const { choices } of stream) if ((choices[0]?.delta.content ?? '') !== '') break
    stream.controller.abort()
    await waitUntil('an idle server', async () => !(await isBusy()), 60_000)
    expect(await isBusy()).toBe(false)
  })

  test('report a prompt that is too long', async () => {
    for (const stream of [false, true]) {
      const error: unknown = await openai()
        .chat.completions.create({ model, messages: long, stream })
        .catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(BadRequestError)
      expect((error as Error).message).toMatch(/exceeds the available context size/)
    }
  })
})

describe.each(['openai', 'anthropic'])('messages of llama.cpp as %s', (name) => {
  const body = { model, messages, max_tokens: 4 }

  test('are returned and streamed with usage', async () => {
    const whole = await anthropic(name).messages.create(body)
    const streamed = await anthropic(name).messages.stream(body).finalMessage()
    for (const { content, stop_reason, usage } of [whole, streamed])
      expect([content[0]?.type, stop_reason, usage.output_tokens, usage.input_tokens > 0]).toEqual(['text', 'max_tokens', 4, true])
  })

  test('read tools, calls and results', async () => {
    const tools = [{ name: 'get_weather', description: 'the weather', input_schema: schema }]
    const turns = [
      ...messages,
      { role: 'assistant' as const, content: [{ type: 'tool_use' as const, id: 'toolu_1', name: 'get_weather', input: { city: 'Paris' } }] },
      { role: 'user' as const, content: [{ type: 'tool_result' as const, tool_use_id: 'toolu_1', content: '21 degrees' }] },
    ]
    const called = await anthropic(name).messages.create({ ...body, tools, messages: turns })
    const plain = await anthropic(name).messages.create(body)
    expect(called.usage.input_tokens + (called.usage.cache_read_input_tokens ?? 0) - plain.usage.input_tokens).toBeGreaterThan(80)
  })

  test('can have their tokens counted', async () => {
    expect((await anthropic(name).messages.countTokens({ model, messages })).input_tokens).toBeGreaterThan(5)
  })

  test('report a prompt that is too long', async () => {
    const call = anthropic(name).messages.create({ ...body, messages: long })
    await expect(call).rejects.toMatchObject({ status: 400, error: { type: 'error', error: { message: expect.stringContaining('exceeds') } } })
  })
})

test('responses of llama.cpp are returned and streamed', async () => {
  const body = { model, input: 'Say hello.', max_output_tokens: 16 }
  const { output_text, usage } = await openai().responses.create(body)
  expect([output_text.length > 0, usage?.output_tokens]).toEqual([true, expect.any(Number)])
  const types = new Set<string>()
  for await (const { type } of await openai().responses.create({ ...body, stream: true })) types.add(type)
  expect([...types]).toEqual(expect.arrayContaining(['response.created', 'response.output_text.delta', 'response.completed']))
})

test('embeddings of llama.cpp are returned', async () => {
  const { data, usage } = await openai('embeddings').embeddings.create({ model, input: ['one text', 'another text'] })
  expect(data.map(({ embedding }) => embedding.length)).toEqual([576, 576])
  expect(usage.prompt_tokens).toBeGreaterThan(3)
})
