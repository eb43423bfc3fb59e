import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI, Budget } from '#gen/config/types.ts'
import { startMockServer, type Answer } from '../../../e2e/harness/llm/server.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './testing/gateway.ts'
import { sdkRoutes, send, type Post, type TestResponse } from './testing/test-bed.ts'

/** What budgets have in unusual courses of a request: all that providers reported, and an estimate of what they did not. */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const dollarEach = { input: '1000000', output: '1000000' }
const limits: Budget['limits'] = [
  { tokens: 1_000_000, window: 'Day' },
  { usd: '1000000', window: 'Day' },
]
const unlimited: Budget[] = [{ name: 'b', limits }]

interface Setup {
  readonly budgets?: Budget[]
  readonly ai?: BackendAI
  readonly more?: Partial<LlmGatewayOptions>
}

/** A gateway with a group for each provider, in order. */
async function start(answers: readonly Answer[], { budgets = unlimited, ai, more }: Setup = {}) {
  const mocks = await Promise.all(answers.map((answer) => startMockServer({ answer })))
  const gateway = await startLlmGateway({
    ai: { groups: mocks.map(({ port }, nth) => ({ providers: [{ name: `p${nth}`, providerA: {}, host: '127.0.0.1', port }] })) },
    policies: { auth: { key: 'key-of-the-provider' }, health: { eviction: {} }, ai: { routes: sdkRoutes, prices: { '*': dollarEach }, ...ai } },
    route: { retry: { attempts: 1, codes: [502] } },
    onGateway: [{ traffic: { budgets } }],
    ...more,
  })
  open.push(gateway, ...mocks)
  return { gateway, mocks, ask: (post: Post): Promise<TestResponse> => send(gateway.port, post) }
}

/** What was charged to a budget: tokens and dollars. */
const spentOf = ({ registry }: LlmGateway, budget = 'b'): number[] => {
  const exposed = [...registry.expose('text')].join('')
  return ['tokens', 'usd'].map((unit) =>
    Number(new RegExp(`proxy_budget_spent_total\\{[^}]*budget="${budget}"[^}]*unit="${unit}"\\} ([\\d.]+)`).exec(exposed)?.[1] ?? 0),
  )
}

const json =
  (body: object, status = 200): Answer =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const events =
  (...bodies: object[]): Answer =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bodies.map((body) => `data: ${JSON.stringify(body)}\n\n`).join(''))
const usage = { prompt_tokens: 30, completion_tokens: 12 }
const completion = (more: object = {}) => ({
  id: 'c',
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage,
  ...more,
})
const chat = (more: object = {}) => ({ model: 'gpt-4o', max_tokens: 9, messages: [{ role: 'user', content: 'one two three four' }], ...more })

describe('usage that a provider reports of an attempt that fails', () => {
  const failed = { id: 'c', model: 'gpt-4o', usage: { prompt_tokens: 1000, completion_tokens: 500 } }

  test.each<[string, Answer]>([
    ['a response without choices', json(failed)],
    ['an error with status 200', json({ ...failed, error: { message: 'overloaded' } })],
    ['a stream in place of JSON, without an end', events({ ...failed, choices: [] }, { error: { message: 'overloaded' } })],
  ])('is charged with that of the next one: %s', async (_, first) => {
    const { gateway, ask, mocks } = await start([first, json(completion())])
    expect((await ask({ body: chat() })).status).toBe(200)
    expect(mocks.map(({ requests }) => requests.length)).toEqual([1, 1])
    expect(spentOf(gateway)).toEqual([1542, 1542])
  })

  test('is charged if it is the last one, and if it is a stream without content', async () => {
    const { gateway, ask } = await start([json({ ...failed, error: { message: 'overloaded' } })])
    expect((await ask({ body: chat() })).status).toBe(502)
    // Both attempts.
    expect(spentOf(gateway)).toEqual([3000, 3000])
    const stream = await start([
      events({ ...failed, choices: [] }, { error: { message: 'overloaded' } }),
      events(completion({ choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' }] })),
    ])
    expect((await stream.ask({ body: chat({ stream: true }) })).status).toBe(200)
    await waitUntil('the request ends', () => stream.gateway.finished.length > 0)
    expect(spentOf(stream.gateway)).toEqual([1542, 1542])
  })
})

describe('a request that fails over to another model', () => {
  const aliases = { p0: { ai: { modelAliases: { any: 'small' } } }, p1: { ai: { modelAliases: { any: 'large' } } } }
  const large: Budget = { name: 'large', models: 'llm.requestModel == "large"', limits: [{ tokens: 42, window: 'Day' }] }

  test('is charged to the budget of that model, and rejected over it', async () => {
    const { gateway, ask, mocks } = await start([json({}, 502), json(completion())], { budgets: [...unlimited, large], more: { onProvider: aliases } })
    expect((await ask({ body: chat({ model: 'any' }) })).status).toBe(200)
    expect([spentOf(gateway), spentOf(gateway, 'large')]).toEqual([
      [42, 42],
      [42, 0],
    ])
    expect((await ask({ body: chat({ model: 'any' }) })).status).toBe(429)
    expect(mocks[1]?.requests).toHaveLength(1)
    expect([spentOf(gateway), spentOf(gateway, 'large')]).toEqual([
      [42, 42],
      [42, 0],
    ])
  })
})

describe('a model without a price', () => {
  const free: Budget[] = [{ name: 'b', unpriced: 'Allow', limits: [{ usd: '100', window: 'Day' }] }]

  test('is charged the price of the model in the response, whether the budget has something left or not', async () => {
    const { gateway, ask } = await start([json(completion())], { budgets: free, ai: { prices: { 'gpt-4o': dollarEach } } })
    for (let count = 0; count < 4; count++) expect((await ask({ body: chat({ model: 'my-deployment' }) })).status).toBe(200)
    expect(spentOf(gateway)).toEqual([0, 168])
    expect((await ask({ body: chat() })).status).toBe(429)
  })
})

describe('a response in the background', () => {
  const queued = { id: 'r', object: 'response', status: 'queued', model: 'gpt-4o', output: [], usage: null }

  test.each<[string, BackendAI | undefined]>([
    ['', undefined],
    [' on a Detect route', { routes: { '*': 'Detect' } }],
  ])('is charged what was reserved, because it has no usage yet%s', async (_, ai) => {
    const { gateway, ask } = await start([json(queued)], { ...(ai && { ai }) })
    const body = { model: 'gpt-4o', input: 'one two three four', max_output_tokens: 5000, background: true }
    expect((await ask({ path: '/v1/responses', body })).status).toBe(200)
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    expect(spentOf(gateway)).toEqual([5005, 5005])
  })
})

describe('a response that the gateway cannot read', () => {
  test('is charged what was reserved', async () => {
    const { gateway, ask } = await start([(_, response) => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('sound')], {
      ai: { routes: { '*': 'Detect' } },
    })
    expect((await ask({ path: '/v1/audio/speech', body: { model: 'tts-1', input: 'one two three four', voice: 'alloy' } })).status).toBe(200)
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    // The prompt with the voice, and the output of a request without a limit.
    expect(spentOf(gateway)).toEqual([4096 + 6, 4096 + 6])
  })
})

describe('an upload to a Detect route', () => {
  const audio = Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), Buffer.alloc(50_000, 0x80)])
  const form = (fields: readonly (readonly [name: string, value: string | Buffer, type?: string])[]): Buffer =>
    Buffer.concat([
      ...fields.flatMap(([name, value, type]) => [
        Buffer.from(`--xx\r\nContent-Disposition: form-data; name="${name}"${type === undefined ? '' : `; filename="f"\r\nContent-Type: ${type}`}\r\n\r\n`),
        Buffer.from(value),
        Buffer.from('\r\n'),
      ]),
      Buffer.from('--xx--\r\n'),
    ])
  const multipart = { 'content-type': 'multipart/form-data; boundary=xx' }
  const file = ['file', audio, 'audio/wav'] as const
  const model = ['model', 'whisper-1'] as const
  const text = 'word '.repeat(1000)

  test.each<[string, Buffer, Record<string, string>, number]>([
    ['a form with audio', form([model, file]), multipart, 101],
    ['a form whose model is after the file', form([file, model]), multipart, 101],
    [
      'a form with an image',
      form([model, ['image', Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(20_000)]), 'image/png'], ['prompt', 'draw a cat!!']]),
      multipart,
      201 + 3,
    ],
    ['a form with a text that pretends to be audio', form([model, ['file', text, 'audio/wav']]), multipart, 1250],
    ['audio', audio, { 'content-type': 'audio/wav' }, 101],
    ['text that pretends to be audio', Buffer.from(text), { 'content-type': 'audio/wav' }, 1250],
    ['bytes', audio, { 'content-type': 'application/octet-stream' }, 1251],
  ])('is charged its prompt if the response has no usage: %s', async (_, body, headers, prompt) => {
    const { gateway, ask, mocks } = await start([json({ text: 'four' })], { ai: { routes: { '*': 'Detect' }, prices: { '*': dollarEach } } })
    expect((await ask({ path: '/model/whisper-1/invoke', body, headers })).status).toBe(200)
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    expect(mocks[0]?.requests[0]?.raw.equals(body)).toBe(true)
    expect(spentOf(gateway)).toEqual([prompt + 1, prompt + 1])
  })

  test('is priced by the model of a form, and charged its usage', async () => {
    const { gateway, ask } = await start([json({ text: 'four', usage: { input_tokens: 14, output_tokens: 4, total_tokens: 18 } })], {
      ai: { routes: { '*': 'Detect' }, prices: { 'whisper-1': dollarEach } },
    })
    const statusOf = async (...fields: Parameters<typeof form>[0]): Promise<number> =>
      (await ask({ path: '/v1/audio/transcriptions', body: form(fields), headers: multipart })).status
    expect(await statusOf(file, model)).toBe(200)
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    expect(spentOf(gateway)).toEqual([18, 18])
    // Servers differ in which of two they read.
    for (const fields of [[file], [model, file, ['model', 'large']], [['model', 'large'], file]] as const) expect(await statusOf(...fields)).toBe(403)
  })

  test('reserves its prompt and all its answers, so that requests at the same time do not exceed a budget', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const { ask, mocks } = await start(
      [
        async (request, response) => {
          await held
          await json({ text: '' })(request, response)
        },
      ],
      { budgets: [{ name: 'b', limits: [{ tokens: 4096 * 3 + 100, window: 'Day' }] }], ai: { routes: { '*': 'Detect' } } },
    )
    const upload = (): Promise<TestResponse> => ask({ path: '/v1/images/edits', body: form([model, file, ['n', '3']]), headers: multipart })
    const first = upload()
    await waitUntil('the provider has it', () => mocks[0]?.requests.length === 1)
    expect((await upload()).status).toBe(429)
    release()
    expect((await first).status).toBe(200)
  })
})

describe('the list of models', () => {
  const keyed: Budget[] = [{ name: 'team', key: 'request.headers["x-team"]', limits: [...limits, { requests: 1, window: 'Day' }] }]

  test('needs no key of a budget, and everything else does', async () => {
    const { ask, mocks } = await start([json(completion())], { budgets: keyed })
    const statuses: number[] = []
    for (const [path, method] of [
      ['/v1/models', 'GET'],
      ['/v1/models/gpt-4o', 'GET'],
      ['/v1/chat/completions', 'POST'],
      ['/v1/messages/count_tokens', 'POST'],
      ['/v1/files', 'GET'],
      ['/v1/realtime', 'GET'],
    ] as const)
      statuses.push((await ask({ path, method, ...(method === 'POST' && { body: chat() }) })).status)
    expect(statuses).toEqual([200, 404, 403, 403, 403, 403])
    expect(mocks[0]?.requests).toHaveLength(0)
    // With a key it is a request like others.
    const listed = async (): Promise<number> => (await ask({ path: '/v1/models', method: 'GET', headers: { 'x-team': 'a' } })).status
    expect([await listed(), await listed()]).toEqual([200, 429])
  })

  test('is no way around a key for a request that a policy rewrites', async () => {
    const { ask, mocks } = await start([json(completion())], {
      more: {
        onGateway: [{ traffic: { budgets: keyed, transformation: { request: { set: [{ name: ':path', value: '"/v1/chat/completions"' }] } } } }],
      },
    })
    expect((await ask({ path: '/v1/models', body: chat() })).status).toBe(403)
    expect((await ask({ path: '/v1/models', body: chat(), headers: { 'x-team': 'a' } })).status).toBe(200)
    expect(mocks[0]?.requests).toHaveLength(1)
  })
})

test('requests at the same time whose limit of output is 0 do not exceed a budget, because some servers take it as none', async () => {
  const { gateway, ask } = await start([json(completion())], { budgets: [{ name: 'b', limits: [{ tokens: 100, window: 'Day' }] }] })
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await ask({ body: chat({ max_tokens: 0 }) })).status))
  expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(3)
  expect(spentOf(gateway)[0]).toBeLessThanOrEqual(126)
})
