import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import OpenAI, { NotFoundError, BadRequestError, RateLimitError } from 'openai'
import { findFreePort } from '../../harness/program/ports.ts'
import { startProgram, tailOf, type Program } from '../../harness/program/program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startBackends, type Backends } from './gateway.ts'

/** LiteLLM's proxy as the provider; its mock responses are its own. */
const LITELLM = fileURLToPath(new URL('../../../.tools/litellm/bin/litellm', import.meta.url))
const KEY = 'sk-0f8a6c1d2b3e4f5061728394a5b6c7d8'
const SAID = 'the rain in Spain falls mainly on the plain'
const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }
const mocks = {
  'gpt-4o': { mock_response: SAID },
  limited: { mock_response: 'litellm.RateLimitError' },
  caller: { mock_response: '', mock_tool_calls: [call] },
}
const models = [
  ...Object.entries(mocks).map(([model_name, mock]) => ({ model_name, litellm_params: { model: 'openai/gpt-4o', api_key: 'x', ...mock } })),
  { model_name: 'text-embedding-3-small', litellm_params: { model: 'openai/text-embedding-3-small', api_key: 'x', mock_response: [0.25, -0.5] } },
]

let directory: string
let litellm: Program
let gateway: Backends

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'litellm-'))
  const port = await findFreePort()
  const config = join(directory, 'config.yaml')
  await writeFile(config, JSON.stringify({ model_list: models, general_settings: { master_key: KEY }, litellm_settings: { telemetry: false } }))
  litellm = startProgram({
    name: 'litellm',
    command: LITELLM,
    args: ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'],
    // Without these settings LiteLLM fetches a price list and rejects weak keys.
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true' },
  })
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/health/liveliness`).then(
      ({ ok }) => ok,
      () => false,
    )
  await waitUntil('LiteLLM', async () => litellm.hasExited() || (await isReady()), 500_000)
  if (litellm.hasExited()) throw new Error(`LiteLLM exited:\n${tailOf(litellm.lines)}`)
  const backend = (provider: object, guard?: object) => ({
    ai: { provider: { ...provider, host: '127.0.0.1', port } },
    policies: {
      auth: { key: KEY },
      ai: {
        routes: { '/messages': 'Messages', '/responses': 'Responses', '/embeddings': 'Embeddings', '*': 'Completions' },
        ...(guard && { promptGuard: guard }),
      },
    },
  })
  gateway = await startBackends({
    asOpenAI: backend({ providerA: {} }),
    asAnthropic: backend({ providerC: {} }),
    guarded: backend({ providerA: {} }, { response: [{ regex: { matches: ['Spain'] } }] }),
  })
})
afterAll(async () => {
  await gateway?.close()
  await litellm?.stop(500)
  await rm(directory, { recursive: true, force: true })
})

const openai = (name: string) => new OpenAI({ apiKey: 'of-the-client', maxRetries: 0, baseURL: `${gateway.origin(name)}/v1` })
const anthropic = (name: string) => new Anthropic({ authToken: 'of-the-client', apiKey: null, maxRetries: 0, baseURL: gateway.origin(name) })
const messages = [{ role: 'user' as const, content: 'what about the weather?' }]

describe.each(['asOpenAI', 'asAnthropic'])('chat completions from LiteLLM %s', (name) => {
  test('are returned with usage', async () => {
    const { choices, usage } = await openai(name).chat.completions.create({ model: 'gpt-4o', messages, max_tokens: 100 })
    expect([choices[0]?.message.content, choices[0]?.finish_reason]).toEqual([SAID, 'stop'])
    expect(usage?.total_tokens).toBeGreaterThan(10)
  })
})

test('chat completions from LiteLLM are streamed with usage at the end', async () => {
  const stream = openai('asOpenAI').chat.completions.stream({ model: 'gpt-4o', messages, stream_options: { include_usage: true } })
  const pieces: string[] = []
  stream.on('content', (piece) => pieces.push(piece))
  const { choices, usage } = await stream.finalChatCompletion()
  expect([choices[0]?.message.content, pieces.length > 5, usage?.completion_tokens]).toEqual([SAID, true, expect.any(Number)])
})

test('chat completions from LiteLLM are returned to a messages client: buffered, streamed and with a tool', async () => {
  const body = { model: 'gpt-4o', max_tokens: 100, messages }
  const buffered = await anthropic('asOpenAI').messages.create(body)
  const streamed = await anthropic('asOpenAI').messages.stream(body).finalMessage()
  for (const { content, stop_reason, usage } of [buffered, streamed]) {
    expect([content, stop_reason]).toMatchObject([[{ type: 'text', text: SAID }], 'end_turn'])
    expect(usage.output_tokens).toBeGreaterThan(5)
  }
  const called = await anthropic('asOpenAI').messages.create({ ...body, model: 'caller' })
  // LiteLLM sends an empty text beside the call.
  expect(called.content.at(-1)).toMatchObject({ type: 'tool_use', name: 'get_weather', input: { city: 'Paris' } })
})

test('a buffered response of LiteLLM to a streaming messages request becomes a stream', async () => {
  const body = { model: 'gpt-4o', max_tokens: 100, messages }
  expect((await anthropic('asAnthropic').messages.create(body)).content).toMatchObject([{ type: 'text', text: SAID }])
  const streamed = await openai('asAnthropic')
    .chat.completions.stream({ ...body, messages })
    .finalChatCompletion()
  expect(streamed.choices[0]?.message.content).toBe(SAID)
})

test('responses and embeddings of LiteLLM are returned', async () => {
  expect((await openai('asOpenAI').responses.create({ model: 'gpt-4o', input: 'x' })).output_text).toBe(SAID)
  const { data } = await openai('asOpenAI').embeddings.create({ model: 'text-embedding-3-small', input: 'x', encoding_format: 'float' })
  expect(data[0]?.embedding).toEqual([0.25, -0.5])
})

test('a guard masks responses of LiteLLM, also streamed ones', async () => {
  const buffered = await openai('guarded').chat.completions.create({ model: 'gpt-4o', messages })
  const streamed = await openai('guarded').chat.completions.stream({ model: 'gpt-4o', messages }).finalChatCompletion()
  for (const { choices } of [buffered, streamed]) expect(choices[0]?.message.content).toBe(SAID.replace('Spain', '<masked>'))
})

test('errors of LiteLLM are errors of the SDKs', async () => {
  await expect(openai('asOpenAI').chat.completions.create({ model: 'limited', messages })).rejects.toBeInstanceOf(RateLimitError)
  await expect(anthropic('asOpenAI').messages.create({ model: 'limited', max_tokens: 5, messages })).rejects.toMatchObject({
    status: 429,
    error: { type: 'error' },
  })
  const unknown: unknown = await openai('asOpenAI')
    .chat.completions.create({ model: 'nobody-knows', messages })
    .catch((error: unknown) => error)
  expect(unknown instanceof BadRequestError || unknown instanceof NotFoundError).toBe(true)
})
