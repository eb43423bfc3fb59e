import { describe, expect, test } from '@jest/globals'
import { apiKeyNames } from '../../request/exchange/key-names.ts'
import { variables } from '../../request/exchange/variables.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import { setProtocol, type Protocol } from '../../observe/telemetry/outcome.ts'
import type { Telemetry } from '../../observe/telemetry/telemetry.ts'
import { testExchange } from '../../testing/exchange.ts'
import { LlmUsageRecorder } from './llm-usage.ts'
import { TailRecorder } from './tail.ts'

const MINUTE = 60_000

function start() {
  const clock = { ms: 100 * MINUTE }
  const telemetry: Pick<Telemetry, 'observe'> = { observe: undefined }
  const recorder = new LlmUsageRecorder(telemetry, () => clock.ms)
  const finish = (model: string, { status = 200, protocol = 'llm', key }: { status?: number; protocol?: Protocol; key?: object } = {}): void => {
    const exchange = testExchange()
    setProtocol(exchange, protocol)
    exchange.labels = { gateway: 'ns/gw', listener: 'http', route: 'ns/chat', rule: '' }
    if (key !== undefined) variables.apiKey.set(exchange, { metadata: key })
    if (status !== 0) exchange.response = { status } as NonNullable<typeof exchange.response>
    setLogField(exchange, 'gen_ai.request.model', model)
    setLogField(exchange, 'gen_ai.provider.name', 'openai')
    if (status === 200) {
      setLogField(exchange, 'gen_ai.usage.input_tokens', 100)
      setLogField(exchange, 'gen_ai.usage.output_tokens', 20)
      setLogField(exchange, 'gen_ai.usage.cache_read.input_tokens', 40)
      setLogField(exchange, 'proxy.ai.usage.cost.total', 0.5)
      setLogField(exchange, 'proxy.ai.time_to_first_token', 0.25)
      setLogField(exchange, 'proxy.ai.time_per_output_token', 0.125)
    }
    telemetry.observe?.(exchange)
  }
  return { clock, telemetry, recorder, finish }
}

describe('LLM numbers of a thread', () => {
  test('are sums by model, API key name and route', () => {
    const { recorder, finish } = start()
    const key = {}
    apiKeyNames.set(key, 'team-a')
    finish('early')
    expect(recorder.read().rows).toEqual([])
    finish('m', { key })
    finish('m', { key })
    finish('m')
    finish('other protocol', { protocol: 'http' })
    const sums = {
      inputTokens: 200,
      outputTokens: 40,
      cachedTokens: 80,
      cost: 1,
      streams: 2,
      firstTokenSeconds: 0.5,
      generationSeconds: 5,
      generatedTokens: 40,
    }
    expect(recorder.read().rows).toMatchObject([
      { model: 'm', provider: 'openai', key: 'team-a', route: 'ns/chat', requests: 2, ...sums },
      { model: 'm', key: null, requests: 1 },
    ])
  })

  test('count errors by class', () => {
    const { recorder, finish } = start()
    recorder.read()
    for (const status of [200, 400, 403, 429, 500, 0]) finish('m', { status })
    expect(recorder.read().rows).toMatchObject([{ requests: 6, clientErrors: 2, rateLimited: 1, serverErrors: 1, aborted: 1, timeouts: 0 }])
  })

  test('cover 15 minutes', () => {
    const { clock, recorder, finish } = start()
    recorder.read()
    finish('a')
    clock.ms += 14 * MINUTE
    finish('a')
    expect(recorder.read().rows).toMatchObject([{ requests: 2 }])
    clock.ms += MINUTE
    expect(recorder.read()).toMatchObject({ sinceMs: 101 * MINUTE, rows: [{ requests: 1 }] })
    clock.ms += 14 * MINUTE
    expect(recorder.read().rows).toEqual([])
  })

  test('are bounded, and failed requests with invented models use at most half of the rows', () => {
    const { clock, recorder, finish } = start()
    recorder.read()
    for (let i = 0; i < 600; i++) finish(`invented-${i}`, { status: 404 })
    const models = (): string[] => recorder.read().rows.map(({ model }) => model)
    expect(models().length).toBe(251)
    expect(recorder.read().rows.find(({ model }) => model === 'other')).toMatchObject({ requests: 350, key: null, route: 'other' })
    for (let i = 0; i < 600; i++) finish(`real-${i}`)
    expect(models().length).toBe(500)
    clock.ms += 15 * MINUTE
    finish('new')
    expect(models()).toEqual(['new'])
  })

  test('are not recorded any more 15 minutes after the last read', () => {
    const { clock, telemetry, recorder, finish } = start()
    recorder.read()
    finish('m')
    clock.ms += 15 * MINUTE + 1
    finish('m')
    expect(telemetry.observe).toBeUndefined()
    expect(recorder.read()).toMatchObject({ sinceMs: clock.ms, rows: [] })
  })

  test('and a tail of requests are recorded at the same time', () => {
    const { telemetry, recorder, finish } = start()
    const nowMs = { value: 0 }
    const tail = new TailRecorder(
      telemetry,
      () => nowMs.value,
      () => 0,
    )
    recorder.read()
    tail.read({ tail: 't', filter: 'true', limit: 0 })
    finish('m')
    nowMs.value = 10_000
    tail.removeIdle()
    finish('m')
    expect(recorder.read().rows).toMatchObject([{ requests: 2 }])
  })
})
