import {
  BedrockRuntimeClient,
  ConverseCommand,
  ConverseStreamCommand,
  CountTokensCommand,
  InvokeModelCommand,
  ThrottlingException,
} from '@aws-sdk/client-bedrock-runtime'
import { FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { providers, startSdkGateway, type SdkGateway } from './gateway.ts'

/** SDKs whose format is passed through without translation (Detect), and LangChain. */

/** Jest's sandbox has its own global object; undici's dispatcher, which Google's SDK needs, is on the real one. */
const dispatcher = Symbol.for('undici.globalDispatcher.1')
const realGlobal = (Headers.constructor as (code: string) => () => Record<symbol, unknown>)('return globalThis')()

let gateway: SdkGateway
beforeAll(async () => {
  await fetch('data:,')
  Object.assign(globalThis, { [dispatcher]: realGlobal[dispatcher] })
  gateway = await startSdkGateway()
})
afterAll(() => gateway.close())

describe.each(["Bedrock's mock", 'provider F'])('the SDK of Bedrock with %s', (place) => {
  const isDirect = place !== 'provider F'
  const client = (): BedrockRuntimeClient =>
    new BedrockRuntimeClient({
      region: 'eu-west-1',
      endpoint: isDirect ? gateway.mock.url : gateway.origin('F'),
      credentials: { accessKeyId: 'AKIDOFTHECLIENT', secretAccessKey: 'secret-of-the-client' },
      maxAttempts: 1,
    })
  const open: BedrockRuntimeClient[] = []
  const use = (): BedrockRuntimeClient => {
    const one = client()
    open.push(one)
    return one
  }
  afterAll(() => {
    for (const one of open) one.destroy()
  })
  const modelId = providers.F.model
  const messages = [{ role: 'user' as const, content: [{ text: 'hello you' }] }]
  const toolConfig = { tools: [{ toolSpec: { name: 'get_weather', inputSchema: { json: { type: 'object', properties: { city: { type: 'string' } } } } } }] }

  test('calls Converse', async () => {
    const { output, stopReason, usage } = await use().send(new ConverseCommand({ modelId, system: [{ text: 'be nice' }], messages }))
    expect([output?.message?.content, stopReason, usage]).toMatchObject([
      [{ text: 'echo: hello you' }],
      'end_turn',
      { inputTokens: 4, outputTokens: 3, totalTokens: 7 },
    ])
    // The request has the gateway's credentials, not the client's.
    expect(gateway.mock.requests.at(-1)?.headers['authorization']).toContain(`Credential=${isDirect ? 'AKIDOFTHECLIENT' : 'AKIDEXAMPLE'}/`)
  })

  test('calls ConverseStream with a tool', async () => {
    const { stream } = await use().send(new ConverseStreamCommand({ modelId, messages, toolConfig }))
    const seen: string[] = []
    let input = ''
    for await (const event of stream ?? []) {
      seen.push(...Object.keys(event))
      input += event.contentBlockDelta?.delta?.toolUse?.input ?? ''
    }
    expect(JSON.parse(input)).toEqual({ city: 'Paris' })
    expect([seen[0], ...seen.slice(-2)]).toEqual(['messageStart', 'messageStop', 'metadata'])
  })

  test('calls InvokeModel and CountTokens', async () => {
    const invoked = await use().send(new InvokeModelCommand({ modelId: 'amazon.titan-embed-text-v2:0', body: '{"inputText":"some words here"}' }))
    expect(JSON.parse(Buffer.from(invoked.body).toString())).toMatchObject({ embedding: [15 / 128, 3 / 16, 0.5], inputTextTokenCount: 3 })
    const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'one two' }] }))
    const counted = await use().send(new CountTokensCommand({ modelId, input: { invokeModel: { body } } }))
    expect(counted.inputTokens).toBeGreaterThanOrEqual(1)
  })

  test('throws its own exception for an error', async () => {
    const failing = use()
    failing.middlewareStack.add(
      (next) => (args) => {
        ;(args.request as { headers: Record<string, string> }).headers['x-mock'] = 'status=429'
        return next(args)
      },
      { step: 'build' },
    )
    const error: unknown = await failing.send(new ConverseCommand({ modelId, messages })).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ $metadata: { httpStatusCode: 429 }, message: expect.stringContaining('mock failure') })
    expect(error).toBeInstanceOf(ThrottlingException)
  })
})

describe.each(["Gemini's mock", 'provider D', "Vertex AI's mock", 'provider E'])('the SDK of Google with %s', (place) => {
  const vertexai = place.includes('Vertex') || place === 'provider E'
  const client = (headers: Record<string, string> = {}): GoogleGenAI => {
    const baseUrl = place.endsWith('mock') ? gateway.mock.url : gateway.origin(vertexai ? 'E with Gemini' : 'D')
    return new GoogleGenAI({ apiKey: 'AIzaKeyOfTheClient', vertexai, httpOptions: { baseUrl, headers } })
  }
  const model = 'gemini-2.5-flash'
  const contents = 'hello you'

  test('calls generateContent', async () => {
    const response = await client().models.generateContent({ model, contents })
    expect([response.text, response.candidates?.[0]?.finishReason, response.usageMetadata?.totalTokenCount]).toEqual(['echo: hello you', 'STOP', 5])
    const { path } = gateway.mock.requests.at(-1) ?? {}
    expect(path).toMatch(/\/models\/gemini-2.5-flash:generateContent$/)
  })

  test('calls generateContentStream', async () => {
    const pieces: string[] = []
    for await (const { text } of await client().models.generateContentStream({ model, contents })) pieces.push(text ?? '')
    expect(pieces).toEqual(['echo: ', 'hello ', 'you'])
  })

  test('receives a tool call and a response in a schema', async () => {
    const declaration = { name: 'get_weather', parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } } }
    const toolConfig = { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } }
    const called = await client().models.generateContent({ model, contents, config: { tools: [{ functionDeclarations: [declaration] }], toolConfig } })
    expect(called.functionCalls).toMatchObject([{ name: 'get_weather', args: { city: 'Paris' } }])
    const structured = await client().models.generateContent({
      model,
      contents,
      config: { responseMimeType: 'application/json', responseSchema: declaration.parameters },
    })
    expect(JSON.parse(structured.text ?? '')).toEqual({ city: 'Paris' })
  })

  test('calls countTokens', async () => {
    expect((await client().models.countTokens({ model, contents: 'one two three' })).totalTokens).toBe(3)
  })

  test('throws an error', async () => {
    const call = client({ 'x-mock': 'status=429' }).models.generateContent({ model, contents })
    await expect(call).rejects.toMatchObject({ status: 429 })
  })
})

test('a native Gemini call has its token usage recorded by the gateway', async () => {
  await new GoogleGenAI({ apiKey: 'AIza', httpOptions: { baseUrl: gateway.origin('D') } }).models.generateContent({
    model: 'gemini-2.5-pro',
    contents: 'a b c',
  })
  const line = await gateway.program.waitForLine(/gemini-2\.5-pro/)
  expect(line).toMatch(/input_tokens"?[=:]3\b/)
})

describe.each(["OpenAI's mock", 'provider A', 'provider C', 'provider F'] as const)('LangChain with %s', (place) => {
  const provider = place === "OpenAI's mock" ? 'A' : (place.slice(-1) as 'A' | 'C' | 'F')
  const configuration = () => ({ baseURL: `${place === "OpenAI's mock" ? gateway.mock.url : gateway.origin(provider)}/v1` })
  const chat = (): ChatOpenAI => new ChatOpenAI({ model: providers[provider].model, apiKey: 'x', maxRetries: 0, configuration: configuration() })
  const prompt = [new SystemMessage('be nice'), new HumanMessage('hello you')]

  test('invokes, streams and calls a tool', async () => {
    const response = await chat().invoke(prompt)
    expect([response.text, response.usage_metadata]).toMatchObject(['echo: hello you', { total_tokens: provider === 'C' ? 9 : 7 }])
    const pieces: string[] = []
    for await (const chunk of await chat().stream(prompt)) if (chunk.text !== '') pieces.push(chunk.text)
    expect(pieces).toEqual(['echo: ', 'hello ', 'you'])
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const bound = chat().bindTools([{ type: 'function', function: { name: 'get_weather', parameters } }])
    const called = await bound.invoke(prompt)
    expect(called.tool_calls).toMatchObject([{ name: 'get_weather', args: { city: 'Paris' } }])
    const result = new ToolMessage({ content: '21 degrees', tool_call_id: called.tool_calls?.[0]?.id ?? '' })
    expect((await bound.invoke([...prompt, called, result])).text).toBe('echo: 21 degrees')
  })
})

test.each(["OpenAI's mock", 'provider A', 'provider F'] as const)('LangChain receives embeddings of %s', async (place) => {
  const provider = place === 'provider F' ? 'F' : 'A'
  const configuration = { baseURL: `${place === "OpenAI's mock" ? gateway.mock.url : gateway.origin(provider)}/v1` }
  // Titan accepts one text per request.
  const embeddings = new OpenAIEmbeddings({ model: providers[provider].embeds, apiKey: 'x', maxRetries: 0, configuration })
  expect([...(await embeddings.embedQuery('some words here'))]).toEqual([15 / 128, 3 / 16, 0.5])
})
