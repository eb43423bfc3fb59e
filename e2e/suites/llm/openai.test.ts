import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import OpenAI, { AzureOpenAI, type APIError, RateLimitError } from 'openai'
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { createServer } from 'node:tls'
import { connect, type AddressInfo } from 'node:net'
import { makeCertificate } from '../../harness/certificates.ts'
import { providerNames, providers, startSdkGateway, type SdkGateway } from './gateway.ts'

let gateway: SdkGateway
beforeAll(async () => {
  gateway = await startSdkGateway()
})
afterAll(() => gateway.close())

interface Place {
  readonly name: string
  readonly model: string
  readonly embeds: string | undefined
  readonly hasResponses: boolean
  client(): OpenAI
}

const settings = { apiKey: 'key-of-the-client', maxRetries: 0 }
const vertex = '/v1/projects/p/locations/us-central1/endpoints/openapi'
/** The mocks without the gateway, which must be compatible with the SDK, and each provider through the gateway. */
const places: readonly Place[] = [
  {
    ...providers.A,
    name: "OpenAI's mock",
    hasResponses: true,
    client: () => new OpenAI({ ...settings, baseURL: `${gateway.mock.url}/v1` }),
  },
  {
    ...providers.B,
    name: "Azure's mock",
    hasResponses: true,
    client: () => new AzureOpenAI({ ...settings, endpoint: gateway.mock.url, apiVersion: '2024-10-21' }),
  },
  {
    ...providers.D,
    name: "Gemini's mock",
    hasResponses: false,
    client: () => new OpenAI({ ...settings, baseURL: `${gateway.mock.url}/v1beta/openai` }),
  },
  {
    ...providers['E with Gemini'],
    embeds: undefined,
    name: "Vertex AI's mock",
    hasResponses: false,
    client: () => new OpenAI({ ...settings, baseURL: `${gateway.mock.url}${vertex}` }),
  },
  ...providerNames.map((name) => ({
    ...providers[name],
    name: `provider ${name}`,
    hasResponses: name !== 'C' && name !== 'E with Claude',
    client: () => new OpenAI({ ...settings, baseURL: `${gateway.origin(name)}/v1` }),
  })),
]

const messages = [
  { role: 'system', content: 'be nice' },
  { role: 'user', content: 'hello you' },
] as const
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } as const
const misbehave = (how: string) => ({ headers: { 'x-mock': how } })

describe.each(places.map((place) => [place.name, place] as const))('chat completions of %s', (name, { model, client }) => {
  // The mock of Anthropic reports two cached tokens, which its own count of input tokens does not include.
  const cached = name === 'provider C' || name === 'provider E with Claude' ? 2 : 0

  test('are returned with usage', async () => {
    const { choices, usage, object } = await client().chat.completions.create({ model, messages: [...messages], max_tokens: 100 })
    expect([object, choices[0]?.message.content, choices[0]?.message.role, choices[0]?.finish_reason]).toEqual([
      'chat.completion',
      'echo: hello you',
      'assistant',
      'stop',
    ])
    expect(usage).toMatchObject({ prompt_tokens: 4 + cached, completion_tokens: 3, total_tokens: 7 + cached })
  })

  test('are streamed in pieces', async () => {
    const stream = client().chat.completions.stream({ model, messages: [...messages], stream_options: { include_usage: true } })
    const pieces: string[] = []
    stream.on('content', (delta) => pieces.push(delta))
    const { choices, usage } = await stream.finalChatCompletion()
    expect(pieces.filter((piece) => piece !== '')).toEqual(['echo: ', 'hello ', 'you'])
    expect([choices[0]?.message.content, choices[0]?.finish_reason, usage?.total_tokens]).toEqual(['echo: hello you', 'stop', 7 + cached])
  })

  test.each([false, true])('call a tool that the SDK runs; streamed: %s', async (stream) => {
    const calls: unknown[] = []
    const tools: [RunnableToolFunctionWithParse<object>] = [
      {
        type: 'function',
        function: {
          name: 'get_weather',
          description: 'the weather of a city',
          parameters: { ...parameters, required: ['city'] },
          parse: JSON.parse as (text: string) => object,
          function: (args) => `${calls.push(args)} degrees`,
        },
      },
    ]
    const body = { model, messages: [...messages], tools }
    const runner = stream ? client().chat.completions.runTools({ ...body, stream }) : client().chat.completions.runTools(body)
    expect(await runner.finalContent()).toBe('echo: 1 degrees')
    expect(calls).toEqual([{ city: 'Paris' }])
  })

  test('follow a JSON schema', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'place', schema: parameters, strict: true } } as const
    const { choices } = await client().chat.completions.create({ model, messages: [...messages], response_format })
    expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual({ city: 'Paris' })
  })

  test('report errors, also for streams', async () => {
    for (const stream of [false, true]) {
      const call = client().chat.completions.create({ model, messages: [...messages], stream }, misbehave('status=429'))
      const error: unknown = await call.catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(RateLimitError)
      expect((error as APIError).message).toContain('mock failure')
    }
  })

  test.each(['error=3', 'cut=3'])('report a failed stream: %s', async (how) => {
    const stream = client().chat.completions.stream({ model, messages: [...messages] }, misbehave(how))
    await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(Error)
  })
})

describe.each(places.filter(({ hasResponses }) => hasResponses).map((place) => [place.name, place] as const))('responses of %s', (_, { model, client }) => {
  const input = 'hello you'
  const instructions = 'be nice'
  const functionTool = { type: 'function', name: 'get_weather', parameters, strict: true } as const

  test('are returned with usage', async () => {
    const { status, output_text, usage } = await client().responses.create({ model, instructions, input })
    expect([status, output_text, usage?.input_tokens, usage?.output_tokens]).toEqual(['completed', 'echo: hello you', 4, 3])
  })

  test('are streamed in pieces', async () => {
    const stream = client().responses.stream({ model, instructions, input })
    const pieces: string[] = []
    stream.on('response.output_text.delta', ({ delta }) => pieces.push(delta))
    const { status, output_text, usage } = await stream.finalResponse()
    expect(pieces).toEqual(['echo: ', 'hello ', 'you'])
    expect([status, output_text, usage?.total_tokens]).toEqual(['completed', 'echo: hello you', 7])
  })

  test('call a tool and accept its result', async () => {
    for (const pending of [
      client().responses.create({ model, input, tools: [functionTool] }),
      client()
        .responses.stream({ model, input, tools: [functionTool] })
        .finalResponse(),
    ]) {
      const { output } = await pending
      const call = output.find(({ type }) => type === 'function_call')
      expect(call).toMatchObject({ name: 'get_weather', arguments: expect.stringMatching(/^\{"city": ?"Paris"\}$/) })
      if (call?.type !== 'function_call') throw new Error('no call')
      const result = { type: 'function_call_output', call_id: call.call_id, output: '21 degrees' } as const
      const items = [
        { role: 'user', content: input },
        { type: 'function_call', call_id: call.call_id, name: call.name, arguments: call.arguments },
        result,
      ] as const
      const followUp = await client().responses.create({ model, input: [...items], tools: [functionTool] })
      expect(followUp.output.map(({ type }) => type)).toEqual(['message'])
    }
  })

  test('follow a JSON schema', async () => {
    const text = { format: { type: 'json_schema', name: 'place', schema: parameters, strict: true } } as const
    const { output_text } = await client().responses.create({ model, input, text })
    expect(JSON.parse(output_text)).toEqual({ city: 'Paris' })
  })

  test('report an error', async () => {
    await expect(client().responses.create({ model, input }, misbehave('status=429'))).rejects.toBeInstanceOf(RateLimitError)
  })
})

test.each(places.flatMap(({ name, embeds, client }) => (embeds === undefined ? [] : [[name, embeds, client] as const])))(
  'the OpenAI SDK receives embeddings of %s',
  async (_, model, client) => {
    const { data, usage } = await client().embeddings.create({ model, input: 'some words here' })
    expect([data.map(({ embedding }) => [...embedding]), usage.total_tokens]).toEqual([[[15 / 128, 3 / 16, 0.5]], 3])
    const plain = await client().embeddings.create({ model, input: 'some words here', encoding_format: 'float' })
    expect(plain.data[0]?.embedding).toEqual([15 / 128, 3 / 16, 0.5])
  },
)

test('the OpenAI SDK lists the models of the mock and of the gateway', async () => {
  for (const { client, name } of places.slice(0, 5)) {
    const page = await client().models.list()
    expect([name, Array.isArray(page.data), page.object]).toEqual([name, true, 'list'])
  }
})

describe('a realtime session', () => {
  /** A TLS proxy in front of `port`, because the SDK uses TLS only. */
  async function startTlsFront(port: number): Promise<{ origin: string; close(): void }> {
    const { certificate, privateKey } = makeCertificate({ name: 'localhost' })
    const server = createServer({ cert: certificate, key: privateKey }, (socket) => {
      const upstream = connect(port, '127.0.0.1')
      socket.pipe(upstream).pipe(socket)
      for (const end of [socket, upstream]) end.on('error', () => {})
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() }
  }

  test.each(["OpenAI's mock", 'the gateway'])('exchanges events with %s', async (place) => {
    const front = place === 'the gateway' ? undefined : await startTlsFront(gateway.mock.port)
    const client = new OpenAI({ ...settings, baseURL: `${front?.origin ?? gateway.tlsOrigin}/v1` })
    const socket = new OpenAIRealtimeWS({ model: 'gpt-realtime', options: { rejectUnauthorized: false } }, client)
    try {
      const types = await new Promise<string[]>((resolve, reject) => {
        const seen: string[] = []
        socket.on('error', reject)
        socket.on('event', ({ type }) => {
          seen.push(type)
          if (type === 'session.created') socket.send({ type: 'session.update', session: { type: 'realtime', instructions: 'be nice' } })
          if (type === 'session.updated') socket.send({ type: 'response.create' })
          if (type === 'response.done') resolve(seen)
        })
      })
      expect(types).toEqual(['session.created', 'session.updated', 'response.done'])
      const { path, headers = {} } = gateway.mock.upgrades.at(-1) ?? {}
      expect([path, headers['authorization']]).toEqual([
        '/v1/realtime?model=gpt-realtime',
        `Bearer ${place === 'the gateway' ? 'key-of-the-provider' : 'key-of-the-client'}`,
      ])
    } finally {
      socket.close()
      front?.close()
    }
  })
})
