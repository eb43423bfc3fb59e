// Vercel's AI SDK with one of its providers: openai, anthropic or openai-compatible.
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const plan = JSON.parse(process.argv[2])
const require = createRequire(join(plan.npm, 'package.json'))
const { generateText, streamText, Output, stepCountIs, tool } = require('ai')
const { z } = require('zod')
const { createOpenAI } = require('@ai-sdk/openai')
const { createAnthropic } = require('@ai-sdk/anthropic')
const { createOpenAICompatible } = require('@ai-sdk/openai-compatible')

const HELLO = 'Hello, world. Grüß Gott 👋.'
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const DEGREES = { Paris: 21, Rome: 25, Oslo: 3, Bergen: 7 }

const variants = {
  openai: {
    model: ({ url, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'key-of-the-client' })(model),
    thinking: { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', store: false, include: ['reasoning.encrypted_content'], forceReasoning: true } },
    // By default the SDK sends ids of items that OpenAI keeps, in place of the items.
    plain: { openai: { store: false } },
  },
  anthropic: {
    model: ({ url, model }) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'key-of-the-client' })(model),
    thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 4000 } } },
  },
  'openai-compatible': {
    model: ({ url, model }) =>
      createOpenAICompatible({ name: 'gateway', baseURL: `${url}/v1`, apiKey: 'key-of-the-client', includeUsage: true, supportsStructuredOutputs: true })(
        model,
      ),
    thinking: { gateway: { reasoningEffort: 'high' } },
    plain: { gateway: { reasoningEffort: 'none' } },
  },
}
const variant = variants[plan.variant]
const tools = {
  get_weather: tool({
    description: 'the weather of a city',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `${DEGREES[city]} degrees in ${city}`,
  }),
}

function same(actual, expected) {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`)
}

const common = (provider) => ({ model: variant.model(provider), maxRetries: 0, abortSignal: AbortSignal.timeout(60_000) })

/** A whole exchange, with all steps. */
async function exchange(provider, isStreamed, params) {
  if (!isStreamed) {
    const { text, steps, response } = await generateText({ ...common(provider), ...params })
    return { text, steps, messages: response.messages }
  }
  const failures = []
  const result = streamText({ ...common(provider), ...params, onError: ({ error }) => void failures.push(error) })
  const pieces = []
  for await (const piece of result.textStream) pieces.push(piece)
  if (failures.length > 0) throw failures[0]
  return { text: await result.text, pieces, steps: await result.steps, messages: (await result.response).messages }
}

/** OpenAI takes tools without reasoning only on Chat Completions. */
const plain = ({ name }) => (variant.plain && (name === 'OpenAI' || plan.variant === 'openai') ? { providerOptions: variant.plain } : {})

const features = {
  async text(provider) {
    same((await exchange(provider, false, { system: 'Be short.', prompt: 'Say hello.', maxOutputTokens: 500 })).text, HELLO)
  },
  async stream(provider) {
    const { text, pieces } = await exchange(provider, true, { prompt: 'Say hello.' })
    same([text, pieces.length > 3], [HELLO, true])
  },
  async tools(provider) {
    for (const isStreamed of [false, true]) {
      const { text, steps } = await exchange(provider, isStreamed, {
        prompt: 'Weather of Paris and Rome?',
        tools,
        stopWhen: stepCountIs(5),
        ...plain(provider),
      })
      same([text, steps.length], ['21 degrees in Paris; 25 degrees in Rome', 2])
    }
  },
  async image(provider) {
    const content = [
      { type: 'text', text: 'What is in the picture?' },
      { type: 'image', image: PNG, mediaType: 'image/png' },
    ]
    same((await exchange(provider, false, { messages: [{ role: 'user', content }] })).text, `image/png of ${PNG.length} bytes`)
  },
  async thinking(provider) {
    for (const isStreamed of [false, true]) {
      const params = { tools, stopWhen: stepCountIs(5), providerOptions: variant.thinking, maxOutputTokens: 16_000 }
      const messages = [{ role: 'user', content: 'Weather of Oslo, then of Bergen?' }]
      const first = await exchange(provider, isStreamed, { messages, ...params })
      same([first.text, first.steps.length], ['3 degrees in Oslo; 7 degrees in Bergen', 3])
      const again = [...messages, ...first.messages, { role: 'user', content: 'Say hello.' }]
      same((await exchange(provider, isStreamed, { messages: again, ...params })).text, HELLO)
    }
  },
  async schema(provider) {
    const schema = z.object({ city: z.string(), degrees: z.number() })
    const { output } = await generateText({ ...common(provider), prompt: 'Weather as JSON of Paris, please.', output: Output.object({ schema }) })
    same(output, { city: 'Paris', degrees: 21 })
  },
  async error(provider) {
    for (const isStreamed of [false, true]) {
      const error = await exchange(provider, isStreamed, { prompt: 'Fail with 429.' }).then(
        () => new Error('no error'),
        (thrown) => thrown,
      )
      if (error.statusCode !== 429) throw error
      same(error.message.includes('slow down'), true)
    }
  },
  async cancel(provider) {
    const tag = randomUUID().replaceAll('-', '')
    const controller = new AbortController()
    const failures = []
    const onError = ({ error }) => void failures.push(error)
    const { textStream } = streamText({ ...common(provider), abortSignal: controller.signal, prompt: `Count to a million, ${tag}`, onError })
    for await (const piece of textStream) if (piece !== '') break
    if (failures.length > 0) throw failures[0]
    controller.abort()
    same(await (await fetch(`${plan.control}/${tag}`)).json(), { isGone: true })
  },
}

async function attempt(run, provider) {
  try {
    await run(provider)
    return { outcome: 'works' }
  } catch (error) {
    const text = [error.message, error.responseBody].filter(Boolean).join(' ')
    if ([400, 404].includes(error.statusCode) && !text.includes('violation')) return { outcome: 'rejected', status: error.statusCode, reason: text }
    return { outcome: 'fails', reason: text, trace: error.stack }
  }
}

globalThis.AI_SDK_LOG_WARNINGS = false
const print = (value) => console.log(JSON.stringify(value))
print({ version: `${require('ai/package.json').version}, @ai-sdk/${plan.variant} ${require(`@ai-sdk/${plan.variant}/package.json`).version}` })
for (const provider of plan.providers)
  for (const [feature, run] of Object.entries(features)) {
    if (plan.only && !plan.only.includes(feature)) continue
    const started = Date.now()
    const outcome = await attempt(run, provider)
    print({ provider: provider.name, feature, seconds: (Date.now() - started) / 1000, ...outcome })
  }
