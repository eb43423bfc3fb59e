import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI, Traffic } from '#gen/config/types.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import { evalHost } from '#api/cel/index.ts'
import { waitUntil } from '../../../../e2e/harness/wait.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from '../testing/test-bed.ts'
import { logFieldsOf } from '../../../testing/log-fields.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const start = async (options: TestBedOptions = {}): Promise<TestBed> => {
  const bed = await startTestBed(options)
  open.push(bed)
  return bed
}

/** Starts a gateway with these API keys. */
const startWithKeys = (keys: Readonly<Record<string, object>>, ai: BackendAI = {}): Promise<TestBed> => {
  const data = Object.fromEntries(Object.entries(keys).map(([key, metadata]) => [key, JSON.stringify({ key, metadata })]))
  const traffic: Traffic = { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } }
  return start({ ai: { routes: sdkRoutes, ...ai }, onGateway: [{ traffic }], secrets: [{ key: 'opaque/ns/keys', type: 'opaque', data }] })
}
const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })

const exposition = ({ registry }: TestBed['gateway']): string => [...registry.expose('text')].join('')

describe('the metadata of an API key', () => {
  test.each<[string, object, string, number, string]>([
    ['allows a listed model', { models: ['gpt-4o'] }, 'gpt-4o', 200, ''],
    ['allows a model by pattern', { models: ['gpt-*-mini'] }, 'gpt-4o-mini', 200, ''],
    ['denies a model that is not listed', { models: ['gpt-4o'] }, 'o3', 403, 'model not allowed: the API key may not use o3'],
    ['allows an alias by the name that the client uses', { models: ['fast'] }, 'fast', 200, ''],
    ['denies all models with an empty list', { models: [] }, 'gpt-4o', 403, 'model not allowed: the API key may not use gpt-4o'],
    ['denies all models with an invalid list', { models: 'gpt-4o' }, 'gpt-4o', 403, 'model not allowed: the API key may not use gpt-4o'],
    ['allows all models without a list', {}, 'anything', 200, ''],
    [
      'denies all models with an invalid budget',
      { tokenBudget: { tokens: 'many' } },
      'gpt-4o',
      403,
      'model not allowed: the tokenBudget of the API key needs tokens (a number) and unit (Seconds, Minutes, Hours or Days)',
    ],
  ])('%s', async (_, metadata, model, status, text) => {
    const { post, mock } = await startWithKeys({ k1: metadata }, { modelAliases: { fast: 'gpt-4o' } })
    const response = await post({ body: chat('x', { model }), ...as('k1') })
    expect(response.status).toBe(status)
    if (status !== 200) expect([response.text, mock.requests.length]).toEqual([text, 0])
  })

  test.each<[string, string, string | object, string, number]>([
    ['the model of a Realtime URL', '/v1/realtime?model=o3', {}, 'application/json', 403],
    ['a Realtime URL without a model', '/v1/realtime', {}, 'application/json', 403],
    ['the model of a Detect path beside an allowed one in the body', '/model/o3/invoke', { model: 'gpt-4o' }, 'application/json', 403],
    ['the model of a Detect path with a body that is not JSON', '/model/o3/invoke', 'x', 'text/plain', 403],
    ['one of two models in a Detect body', '/x', '{"model":"o3","model":"gpt-4o"}', 'application/json', 400],
    ['a Detect body whose model cannot be read', '/x', '{"model":"o3",', 'application/json', 400],
    ['no Detect body whose model is allowed', '/model/gpt-4o/invoke', { model: 'gpt-4o' }, 'application/json', 200],
  ])('rejects %s', async (_, path, body, type, status) => {
    const { post, mock } = await startWithKeys({ k1: { models: ['gpt-4o'] } }, { routes: { '/realtime': 'Realtime', '*': 'Detect' } })
    const response = await post({ path, body, headers: { ...as('k1').headers, 'content-type': type } })
    expect([response.status, mock.requests.length]).toEqual([status, status === 200 ? 1 : 0])
  })

  const form = (...fields: readonly (readonly [string, string])[]): string =>
    `${fields.map(([name, value]) => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`).join('')}--b--\r\n`

  test.each<[string, string, number, string]>([
    ['passes an allowed model', form(['file', 'x'], ['model', 'gpt-4o']), 200, ''],
    ['rejects another model behind the file', form(['file', 'x'.repeat(100_000)], ['model', 'o3']), 403, 'the API key may not use o3'],
    ['rejects two models', form(['model', 'gpt-4o'], ['model', 'o3']), 400, 'the field "model" is repeated'],
    ['rejects a form that is cut off', form(['model', 'gpt-4o']).slice(0, -4), 400, 'it ends without its last delimiter'],
  ])('%s in a form', async (_, body, status, text) => {
    const { post, mock } = await startWithKeys({ k1: { models: ['gpt-4o'] } }, { routes: { '*': 'Detect' } })
    const response = await post({ path: '/v1/audio/transcriptions', body, headers: { ...as('k1').headers, 'content-type': 'multipart/form-data; boundary=b' } })
    expect([response.status, mock.requests.length]).toEqual([status, status === 200 ? 1 : 0])
    if (status !== 200) expect(response.text).toContain(text)
  })

  test('limits the list of models', async () => {
    const { post } = await startWithKeys({ k1: { models: ['fast'] } }, { modelAliases: { fast: 'a', slow: 'b' } })
    const { json } = await post({ path: '/v1/models', method: 'GET', ...as('k1') })
    expect(json['data']).toEqual([{ id: 'fast', object: 'model', created: 0, owned_by: 'openai' }])
  })

  test('sets a budget per key', async () => {
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
    ['a buffered response', chat('one two three')],
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
    await post({ body: chat('x', { model: 'own' }) })
    expect(Object.keys(logFieldsOf(gateway.finished[0]))).not.toContain('proxy.ai.usage.cost.total')
    expect(exposition(gateway)).toContain('proxy_cost_catalog_lookups_total{status="missing"} 1')
  })

  test('a model of the built-in catalog has a cost without configuration', async () => {
    const { post, gateway } = await start()
    await post({ body: chat('one two three', { model: 'gpt-4o-mini' }) })
    // 3 tokens in at 0.15 dollars per million, 4 out at 0.60.
    expect(logFieldsOf(gateway.finished[0])['proxy.ai.usage.cost.total']).toBe(0.000_002_85)
    expect(exposition(gateway)).toContain('proxy_cost_catalog_lookups_total{status="exact"} 1')
  })
})

describe('telemetry', () => {
  test('counts tokens by type and durations, and the time to first token only for streams', async () => {
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

  test('uses models as labels only if an upstream confirmed them', async () => {
    const { post, gateway } = await start()
    for (let i = 0; i < 5; i++) await post({ body: chat('x', { model: `made-up-${i}` }), headers: { 'x-mock': 'status=404' } })
    expect(exposition(gateway)).not.toContain('made-up')
  })

  test('exposes prompt, completion and tool calls to expressions, without unknown members', async () => {
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

  test('records the first token of a Detect response only for streams', async () => {
    const { post, gateway } = await start({ ai: { routes: { '*': 'Detect' } } })
    for (const stream of [false, true]) await post({ body: chat('one two', { stream }) })
    await waitUntil('the end of both', () => gateway.finished.length === 2)
    const has = gateway.finished.map((exchange) => evalHost(compileExpression('has(llm.timeToFirstToken)', 'log'), new ExchangeView(exchange)))
    expect(has).toEqual([false, true])
  })

  test('exposes token usage to response transformations', async () => {
    const transformation = { response: { set: [{ name: 'x-tokens', value: 'string(llm.totalTokens)' }] } }
    const { post } = await start({ onGateway: [{ traffic: { transformation } }] })
    expect((await post({ body: chat('one two') })).headers['x-tokens']).toBe('5')
  })
})
