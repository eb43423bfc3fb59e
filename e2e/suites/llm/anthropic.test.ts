import Anthropic, { type APIError, RateLimitError } from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { providerNames, providers, startSdkGateway, type SdkGateway } from './gateway.ts'

let gateway: SdkGateway
beforeAll(async () => {
  gateway = await startSdkGateway()
})
afterAll(() => gateway.close())

/** The mock without the gateway, which must be compatible with the SDK, and each provider through the gateway. */
const places: readonly { readonly name: string; readonly model: string; client(): Anthropic }[] = [
  { name: "Anthropic's mock", model: providers.C.model, client: () => new Anthropic({ apiKey: 'x', maxRetries: 0, baseURL: gateway.mock.url }) },
  ...providerNames.map((name) => ({
    name: `provider ${name}`,
    model: providers[name].model,
    client: () => new Anthropic({ authToken: 'key-of-the-client', apiKey: null, maxRetries: 0, baseURL: gateway.origin(name) }),
  })),
]

const system = 'be nice'
const question = { role: 'user', content: 'hello you' } as const
const schema = { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false }
const tools = [{ name: 'get_weather', description: 'the weather of a city', input_schema: schema }]
const misbehave = (how: string) => ({ headers: { 'x-mock': how } })

describe.each(places.map((place) => [place.name, place] as const))('messages of %s', (_, { model, client }) => {
  const body = { model, max_tokens: 100, system, messages: [question] }

  test('are returned with usage', async () => {
    const message = await client().messages.create(body)
    expect([message.type, message.role, message.stop_reason]).toEqual(['message', 'assistant', 'end_turn'])
    expect(message.content).toMatchObject([{ type: 'text', text: 'echo: hello you' }])
    expect(message.usage).toMatchObject({ input_tokens: 4, output_tokens: 3 })
  })

  test('are streamed in pieces', async () => {
    const stream = client().messages.stream(body)
    const pieces: string[] = []
    stream.on('text', (piece) => pieces.push(piece))
    const message = await stream.finalMessage()
    expect(pieces.filter((piece) => piece !== '')).toEqual(['echo: ', 'hello ', 'you'])
    expect([message.content[0]?.type, message.stop_reason, message.usage.output_tokens]).toEqual(['text', 'end_turn', 3])
  })

  test.each([false, true])('call a tool and accept its result; streamed: %s', async (isStreamed) => {
    const create = (messages: Anthropic.MessageParam[]): Promise<Anthropic.Message> => {
      const params = { ...body, tools, messages }
      return isStreamed ? client().messages.stream(params).finalMessage() : client().messages.create(params)
    }
    const first = await create([question])
    const use = first.content.find(({ type }) => type === 'tool_use')
    if (use?.type !== 'tool_use') throw new Error('no tool was used')
    expect([first.stop_reason, use.name, use.input]).toEqual(['tool_use', 'get_weather', { city: 'Paris' }])
    const result = { type: 'tool_result', tool_use_id: use.id, content: [{ type: 'text', text: '21 degrees' }] } as const
    const second = await create([
      question,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ ...result, content: [...result.content] }] },
    ])
    expect([second.stop_reason, second.content]).toMatchObject(['end_turn', [{ type: 'text', text: 'echo: 21 degrees' }]])
  })

  test('follow a JSON schema', async () => {
    const message = await client().messages.create({ ...body, output_config: { format: { type: 'json_schema', schema } } })
    const [block] = message.content
    expect(JSON.parse(block?.type === 'text' ? block.text : '')).toEqual({ city: 'Paris' })
  })

  test('can have their tokens counted', async () => {
    const { input_tokens } = await client().messages.countTokens({ model, system, messages: [question], tools })
    expect(input_tokens).toBeGreaterThanOrEqual(2)
    expect(input_tokens).toBeLessThan(60)
  })

  test('report errors, also for streams', async () => {
    for (const stream of [false, true]) {
      const error: unknown = await client()
        .messages.create({ ...body, stream }, misbehave('status=429'))
        .catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(RateLimitError)
      expect((error as APIError).error).toMatchObject({ type: 'error', error: { type: expect.any(String), message: 'mock failure' } })
    }
  })

  test.each(['error=4', 'cut=4'])('report a failed stream: %s', async (how) => {
    await expect(client().messages.stream(body, misbehave(how)).finalMessage()).rejects.toBeInstanceOf(Error)
  })
})
