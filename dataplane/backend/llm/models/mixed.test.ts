import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { AIModel, Budget } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../../config/store.ts'
import { Gateway } from '../../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { RequestHead, ResponseHead } from '../../../http/message.ts'
import type { UpstreamPool } from '../../../net/upstream/types.ts'
import { createRegistry } from '../../../observe/telemetry/metrics/registry.ts'
import type { Telemetry } from '../../../observe/telemetry/telemetry.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { expandRows, type LedgerBatch } from '../../../store/ledger/batch.ts'
import { columns, type Column } from '../../../store/ledger/columns.ts'
import { PendingRows, startRecorder } from '../../../store/ledger/recorder.ts'
import { readLedgerSettings } from '../../../store/ledger/settings.ts'
import { testConnection, testRequest } from '../../../testing/exchange.ts'
import { testGateway, testListener, testRoute } from '../../../testing/messages.ts'
import { replaceMessages } from '../../../testing/store.ts'
import { createLlmFactory } from '../service.ts'

/** Mixed requests for models, without sockets: shares, stickiness, budgets and the ledger of 3 replicas with 2 workers each. */
/** `REQUESTS=100000 make test T=dataplane/backend/llm/models/mixed` takes a minute. */
const REQUESTS = Number(process.env['REQUESTS'] ?? 6000)
const WORKERS = 6
const USERS = 997

/** Dollars for each token, so that sums are exact. */
const prices = { large: 5, small: 2, spare: 3 } as const
type Model = keyof typeof prices
const target = (model: Model, weight: number) => ({ backendRef: { backend: `ns/${model}` }, model, weight })
const models: AIModel[] = [
  { name: 'shared', to: [target('large', 95), target('small', 5)] },
  { name: 'sticky', sticky: 'request.headers["x-user"]', to: [target('large', 70), target('small', 30)] },
  { name: 'failing', to: [target('large', 1)], fallback: [{ on: ['RateLimit'], to: [target('spare', 1)] }] },
]
const budgets: Budget[] = [
  {
    name: 'all',
    limits: [
      { tokens: 2_000_000_000, window: 'Day' },
      { usd: '2000000000', window: 'Day' },
    ],
  },
]

/** Requests, tokens and dollars of a model. */
type Sums = [requests: number, tokens: number, usd: number]
const addTo = (sums: Map<string, Sums>, model: string, tokens: number, usd: number, requests = 1): void => {
  const known = sums.get(model) ?? [0, 0, 0]
  sums.set(model, [known[0] + requests, known[1] + tokens, known[2] + usd])
}

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return (state >>> 0) / 2 ** 32
  }
}

/** What providers have reported: the books have to equal it. */
const reported = new Map<string, Sums>()

/** A provider that reports as many tokens as the prompt says, as JSON or as a stream; `large` limits the rate of the model `failing`. */
async function respond(host: string, { body }: RequestHead): Promise<ResponseHead> {
  const { messages, stream } = JSON.parse(String((await readBody(body, 10_000)).bytes)) as { messages: { content: string }[]; stream?: boolean }
  const [kind = '', prompt = 0, completion = 0] = (messages[0]?.content ?? '').split(' ').map((word, index) => (index === 0 ? word : Number(word)))
  const model = host as Model
  if (kind === 'failing' && host === 'large') return answer(429, 'application/json', '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}')
  const usage = { prompt_tokens: Number(prompt), completion_tokens: Number(completion), total_tokens: Number(prompt) + Number(completion) }
  addTo(reported, model, usage.total_tokens, usage.total_tokens * prices[model])
  const base = { id: 'c', model, created: 1 }
  if (stream !== true) {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]
    return answer(200, 'application/json', JSON.stringify({ ...base, object: 'chat.completion', choices, usage }))
  }
  const chunks = [
    { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hello' }, finish_reason: null }] },
    { ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { ...base, object: 'chat.completion.chunk', choices: [], usage },
  ]
  return answer(200, 'text/event-stream', `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`)
}

const answer = (status: number, type: string, text: string): ResponseHead => ({
  status,
  headers: new HeaderList(['content-type', type, 'content-length', String(Buffer.byteLength(text))]),
  body: new BufferBody(text),
  upgraded: undefined,
})

const createPool = (_: unknown, { host }: { readonly host: string }): UpstreamPool => ({
  size: 0,
  close: () => undefined,
  call: (request) => ({ response: respond(host, request), cancel: () => undefined }),
})

/** A worker of a replica, with its recorder of the ledger. */
function startWorker(seed: number, batches: LedgerBatch[]) {
  const registry = createRegistry()
  const gateway = new Gateway({ registry, createPool, factories: { ai: createLlmFactory({ random: seeded(seed) }) } })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  replaceMessages(store, [
    ...testListener,
    testRoute({ backend: 'ns/models' }),
    { kind: 'backend', message: { key: 'ns/models', ai: { models } } },
    {
      kind: 'policy',
      message: { key: 'p', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' }, target: testGateway, traffic: { budgets } },
    },
    ...Object.entries(prices).map(([model, price]): ConfigMessage => {
      const rates = { input: String(price * 1_000_000), output: String(price * 1_000_000) }
      return {
        kind: 'backend',
        message: { key: `ns/${model}`, ai: { provider: { providerA: {}, host: model, port: 80 } }, policies: { ai: { prices: { [model]: rates } } } },
      }
    }),
  ])
  const settings = readLedgerSettings({ sqlite: { path: '/unused' } }, 'ns/gw')
  if (typeof settings === 'string') throw new Error(settings)
  const telemetry: Pick<Telemetry, 'observe'> & { metrics: { registry: typeof registry } } = { observe: undefined, metrics: { registry } }
  const recorder = startRecorder({
    settings,
    pending: new PendingRows().memory,
    telemetry,
    send: (batch) => void batches.push(batch),
  })
  return {
    registry,
    gateway,
    recorder,
    async ask(body: object, user: string): Promise<string | undefined> {
      const request = testRequest(
        { method: 'POST', target: '/v1/chat/completions', body: new BufferBody(JSON.stringify(body)) },
        { 'content-type': 'application/json', 'x-user': user },
      )
      const exchange = new Exchange(testConnection, request, performance.now())
      await gateway.handle(exchange)
      const { response } = exchange
      await readBody(response?.body, 10_000)
      if (response?.status !== 200) throw new Error(`status ${response?.status}`)
      exchange.finishedAtMs = performance.now()
      telemetry.observe?.(exchange)
      return response?.headers.get('x-proxy-model') ?? undefined
    },
  }
}

describe('mixed requests for models at 3 replicas with 2 workers each', () => {
  const batches: LedgerBatch[] = []
  /** Responses by the requested model and the one that responded. */
  const chosen = new Map<string, Map<string, number>>()
  const stuck = new Map<string, Set<string>>()
  let workers: ReturnType<typeof startWorker>[] = []

  beforeAll(async () => {
    workers = Array.from({ length: WORKERS }, (_, index) => startWorker(index + 1, batches))
    const random = seeded(20_261_128)
    for (let index = 0; index < REQUESTS; index++) {
      const model = ['shared', 'sticky', 'failing'][Math.floor(random() * 3)] ?? ''
      const user = `user-${Math.floor(random() * USERS)}`
      const content = `${model} ${1 + Math.floor(random() * 50)} ${1 + Math.floor(random() * 50)}`
      const stream = random() < 0.2
      const body = { model, messages: [{ role: 'user', content }], ...(stream && { stream, stream_options: { include_usage: true } }) }
      const used = (await workers[Math.floor(random() * WORKERS)]?.ask(body, user)) ?? ''
      const counts = chosen.get(model) ?? new Map<string, number>()
      chosen.set(model, counts.set(used, (counts.get(used) ?? 0) + 1))
      if (model === 'sticky') stuck.set(user, (stuck.get(user) ?? new Set()).add(used))
    }
    for (const { recorder } of workers) recorder.close()
  }, 600_000)
  afterAll(() => workers.forEach(({ gateway }) => gateway.close()))

  test('are divided by weight, within 4 standard deviations', () => {
    const [large = 0, small = 0] = ['large', 'small'].map((model) => chosen.get('shared')?.get(model))
    const total = large + small
    expect(total).toBeGreaterThan(REQUESTS / 4)
    expect(Math.abs(small - total * 0.05)).toBeLessThanOrEqual(4 * Math.sqrt(total * 0.05 * 0.95))
    const users = [...stuck.values()].filter((used) => used.has('small')).length
    expect(Math.abs(users - stuck.size * 0.3)).toBeLessThanOrEqual(4 * Math.sqrt(stuck.size * 0.3 * 0.7))
  })

  test('stick to one target for each user, in all workers', () => {
    expect([...stuck].filter(([, used]) => used.size !== 1)).toEqual([])
  })

  test('fall back where a target limits the rate, and the header names the model that responded', () => {
    expect([...(chosen.get('failing') ?? [])]).toEqual([['spare', expect.any(Number)]])
    const answered = new Map<string, number>()
    for (const counts of chosen.values()) for (const [model, count] of counts) answered.set(model, (answered.get(model) ?? 0) + count)
    expect(answered).toEqual(new Map([...reported].map(([model, [requests]]) => [model, requests])))
  })

  test('are charged to budgets as providers have reported them', () => {
    const spent = { tokens: 0, usd: 0 }
    for (const { registry } of workers)
      for (const [, unit, value] of [...registry.expose('text')].join('').matchAll(/proxy_budget_spent_total\{[^}]*unit="(tokens|usd)"\} ([\d.e+]+)/g))
        spent[unit as keyof typeof spent] += Number(value)
    const sums = [...reported.values()]
    expect(spent).toEqual({ tokens: sums.reduce((sum, [, tokens]) => sum + tokens, 0), usd: sums.reduce((sum, [, , usd]) => sum + usd, 0) })
  })

  test('are in the ledger with the model that responded, its tokens and its price', () => {
    const booked = new Map<string, Sums>()
    const at = (column: Column): number => columns.indexOf(column)
    for (const row of batches.flatMap(expandRows)) {
      const [model, input, output, cost] = (['model', 'input_tokens', 'output_tokens', 'cost'] as const).map((column) => row[at(column)])
      addTo(booked, String(model), Number(input) + Number(output), Number(cost))
    }
    expect(booked).toEqual(reported)
  })
})
