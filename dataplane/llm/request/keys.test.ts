import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI, Traffic } from '#gen/config/types.ts'
import { compileExpression } from '../../expression/program.ts'
import { ExchangeView } from '../../expression/view.ts'
import { evalHost } from '#api/cel/index.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from '../testing/test-bed.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

/** A gateway whose clients have these keys. */
const startWithKeys = (keys: Readonly<Record<string, object>>, ai: BackendAI = {}): Promise<TestBed> => {
  const data = Object.fromEntries(Object.entries(keys).map(([key, metadata]) => [key, JSON.stringify({ key, metadata })]))
  const traffic: Traffic = { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } }
  return start({ ai: { routes: sdkRoutes, ...ai }, onGateway: [{ traffic }], secrets: [{ key: 'opaque/ns/keys', type: 'opaque', data }] })
}
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

const exposition = ({ registry }: TestBed['gateway']): string => [...registry.expose('text')].join('')

describe('what the metadata of a key says', () => {
  test.each<[string, object, string, number, string]>([
    ['a model that is listed', { models: ['gpt-4o'] }, 'gpt-4o', 200, ''],
    ['a model by pattern', { models: ['gpt-*-mini'] }, 'gpt-4o-mini', 200, ''],
    ['a model that is not listed', { models: ['gpt-4o'] }, 'o3', 403, 'model not allowed: the API key may not use o3'],
    ['an alias counts as it is asked for', { models: ['fast'] }, 'fast', 200, ''],
    ['no models', { models: [] }, 'gpt-4o', 403, 'model not allowed: the API key may not use gpt-4o'],
    ['a list that is none', { models: 'gpt-4o' }, 'gpt-4o', 403, 'model not allowed: the API key may not use gpt-4o'],
    ['no list', {}, 'anything', 200, ''],
    [
      'a budget that is none',
      { tokenBudget: { tokens: 'many' } },
      'gpt-4o',
      403,
      'model not allowed: the tokenBudget of the API key needs tokens (a number) and unit (Seconds, Minutes, Hours or Days)',
    ],
  ])('%s', async (_, metadata, model, status, text) => {
    const { post, mock } = await startWithKeys({ k1: metadata }, { modelAliases: { fast: 'gpt-4o' } })
    const answer = await post({ body: chat('x', { model }), ...as('k1') })
    expect(answer.status).toBe(status)
    if (status !== 200) expect([answer.text, mock.requests.length]).toEqual([text, 0])
  })

  test('the list of models has only those of the key', async () => {
    const { post } = await startWithKeys({ k1: { models: ['fast'] } }, { modelAliases: { fast: 'a', slow: 'b' } })
    const { json } = await post({ path: '/v1/models', method: 'GET', ...as('k1') })
    expect(json['data']).toEqual([{ id: 'fast', object: 'model', created: 0, owned_by: 'openai' }])
  })

  test('each key has its own budget', async () => {
    const { post } = await startWithKeys({ k1: { tokenBudget: { tokens: 3, unit: 'Days' } }, k2: { tokenBudget: { tokens: 3, unit: 'Days' } } })
    const first = await post({ body: chat('one two three'), ...as('k1') })
    expect([first.status, first.headers['x-ratelimit-limit']]).toEqual([200, '3'])
    const refused = await post({ body: chat('x'), ...as('k1') })
    expect([refused.status, refused.text, refused.headers['x-ratelimit-remaining']]).toEqual([429, 'rate limit exceeded', '0'])
    expect((await post({ body: chat('x'), ...as('k2') })).status).toBe(200)
  })
})

describe('prices', () => {
  const prices = { 'gpt-*': { input: '1000', output: '2000000' }, 'gpt-4o': { input: '100000', output: '1000000', cacheRead: '0' } }

  test.each([
    ['an answer', chat('one two three')],
    ['a stream', chat('one two three', { stream: true })],
  ])('%s has a cost in log, metrics and expressions', async (_, body) => {
    const { post, gateway } = await start({ ai: { prices } })
    await post({ body })
    const [exchange] = gateway.finished
    if (exchange === undefined) throw new Error('no exchange')
    // 3 tokens in, 4 out.
    const fields = logFieldsOf(exchange)
    expect(fields['proxy.ai.usage.cost.total']).toBe(4.3)
    expect(
      evalHost(compileExpression('[llm.cost, llm.costRates.input, llm.totalTokens, llm.provider, llm.streaming]', 'log'), new ExchangeView(exchange)),
    ).toEqual([4.3, 100_000, 7, 'openai', 'stream' in body])
    expect(exposition(gateway)).toMatch(/proxy_gen_ai_client_cost_total\{[^}]*gen_ai_request_model="gpt-4o"[^}]*\} 4\.3/)
  })

  test('a model without a price has no cost', async () => {
    const { post, gateway } = await start({ ai: { prices } })
    await post({ body: chat('x', { model: 'o3' }) })
    expect(Object.keys(logFieldsOf(gateway.finished[0]))).not.toContain('proxy.ai.usage.cost.total')
  })
})

describe('telemetry', () => {
  test('tokens by type, durations, and first token times of streams only', async () => {
    const { post, gateway } = await start({ provider: { providerC: {} } })
    await post({ body: chat('one two', { model: 'claude-x' }) })
    const before = exposition(gateway)
    expect(before).toContain(
      'proxy_gen_ai_client_token_usage_sum{gen_ai_token_type="input",gen_ai_operation_name="chat",gen_ai_system="anthropic",gen_ai_request_model="claude-x",gen_ai_response_model="claude-x"',
    )
    expect(before).toMatch(/token_usage_sum\{gen_ai_token_type="input_cache_read"[^}]*\} 2/)
    expect(before).toMatch(/server_request_duration_count\{[^}]*\} 1/)
    expect(before).not.toContain('time_to_first_token_count{')
    await post({ body: chat('one two', { model: 'claude-x', stream: true }) })
    expect(exposition(gateway)).toMatch(/time_to_first_token_count\{[^}]*\} 1/)
  })

  test('models that no upstream confirmed are no labels', async () => {
    const { post, gateway } = await start()
    for (let i = 0; i < 5; i++) await post({ body: chat('x', { model: `made-up-${i}` }), headers: { 'x-mock': 'status=404' } })
    expect(exposition(gateway)).not.toContain('made-up')
  })

  test('expressions see prompt, completion and tool calls; what is unknown is absent', async () => {
    const { post, gateway } = await start()
    await post({ body: chat('one two', { temperature: 0.5, tools: [{ type: 'function', function: { name: 'weather', parameters: {} } }] }) })
    const [exchange] = gateway.finished
    if (exchange === undefined) throw new Error('no exchange')
    const read = (text: string): unknown => evalHost(compileExpression(text, 'log'), new ExchangeView(exchange))
    expect(read('llm.prompt[0].content')).toBe('one two')
    expect(read('llm.toolCalls[0].name')).toBe('weather')
    expect(read('llm.params.temperature')).toBe(0.5)
    expect(read('has(llm.timeToFirstToken)')).toBe(false)
    expect(read('llm.requestModel + " " + llm.responseModel')).toBe('gpt-4o gpt-4o')
  })

  test('an answer of Detect has no first token, unless it is a stream', async () => {
    const { post, gateway } = await start({ ai: { routes: { '*': 'Detect' } } })
    for (const stream of [false, true]) await post({ body: chat('one two', { stream }) })
    await waitUntil('the end of both', () => gateway.finished.length === 2)
    const has = gateway.finished.map((exchange) => evalHost(compileExpression('has(llm.timeToFirstToken)', 'log'), new ExchangeView(exchange)))
    expect(has).toEqual([false, true])
  })

  test('an answer can be changed by what the model took', async () => {
    const transformation = { response: { set: [{ name: 'x-tokens', value: 'string(llm.totalTokens)' }] } }
    const { post } = await start({ onGateway: [{ traffic: { transformation } }] })
    expect((await post({ body: chat('one two') })).headers['x-tokens']).toBe('5')
  })
})
