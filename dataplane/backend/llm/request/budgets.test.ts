import { afterEach, describe, expect, test } from '@jest/globals'
import type { BackendAI, Budget } from '#gen/config/types.ts'
import { chat, sdkRoutes, startTestBed, type TestBed } from '../testing/test-bed.ts'
import { logFieldsOf } from '../../../testing/log-fields.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})
const prices = { 'gpt-*': { input: '1000000', output: '1000000' } }
async function start(budgets: Budget[], ai: BackendAI = {}): Promise<TestBed> {
  const bed = await startTestBed({ ai: { routes: sdkRoutes, prices, ...ai }, onGateway: [{ traffic: { budgets } }] })
  open.push(bed)
  return bed
}
const JSON_CLIENT = { accept: 'application/json' }

describe('a budget on an LLM route', () => {
  const dollars: Budget[] = [{ name: 'team', limits: [{ usd: '10', window: 'Day' }], exposeRemaining: true }]

  test('is charged the price of the response, and its error has the format of the client', async () => {
    const { post } = await start(dollars)
    // 3 tokens in, 4 out, a dollar each.
    expect((await post({ body: chat('one two three', { max_tokens: 5 }) })).status).toBe(200)
    expect((await post({ body: chat('one two three', { max_tokens: 5 }) })).status).toBe(200)
    const openai = await post({ body: chat('x'), headers: JSON_CLIENT })
    expect([openai.status, openai.json['error']]).toEqual([
      429,
      {
        type: 'rate_limit_error',
        param: null,
        code: null,
        message: expect.stringMatching(/^budget exceeded: budget "team" of 10 USD per Day is used up until /),
      },
    ])
    expect(openai.headers['x-budget-remaining-usd']).toBe('0')
    const anthropic = await post({ path: '/v1/messages', body: { ...chat('x'), max_tokens: 5 }, headers: JSON_CLIENT })
    expect([anthropic.status, anthropic.json['type']]).toEqual([429, 'error'])
  })

  test('is charged for a stream whose client leaves or whose upstream fails, by what was forwarded', async () => {
    const { post, gateway } = await start([{ name: 'team', limits: [{ tokens: 1000, window: 'Day' }] }])
    await post({ body: chat('one two three', { stream: true, max_tokens: 500 }), headers: { 'x-mock': 'cut=3' } }).catch(() => undefined)
    const spent = [...gateway.registry.expose('text')].join('').match(/proxy_budget_spent_total\{[^}]*unit="tokens"\} (\d+)/)?.[1]
    expect(Number(spent)).toBeGreaterThan(0)
    expect(Number(spent)).toBeLessThan(50)
  })

  test('is charged once for a failed attempt and its retry, and nothing for an error', async () => {
    const { post } = await start([{ name: 'team', limits: [{ tokens: 7, window: 'Day' }] }])
    expect((await post({ body: chat('one two three', { max_tokens: 1 }), headers: { 'x-mock': 'status=500' } })).status).toBe(500)
    expect((await post({ body: chat('one two three', { max_tokens: 1 }) })).status).toBe(200)
    expect((await post({ body: chat('x') })).status).toBe(429)
  })

  test('rejects a model without a price', async () => {
    const { post, mock } = await start(dollars)
    const response = await post({ body: chat('x', { model: 'own' }) })
    expect([response.status, response.text, mock.requests.length]).toEqual([
      403,
      'model not allowed: budget "team" needs a price of own (ai.prices, ai.priceCatalog)',
      0,
    ])
  })

  test('applies to the models that its expression selects, and charges an expression that fails', async () => {
    const { post } = await start([{ name: 'o3', models: 'llm.requestModel == "o3"', limits: [{ requests: 1, window: 'Day' }] }])
    const statusOf = async (model: string): Promise<number> => (await post({ body: chat('x', { model }) })).status
    expect([await statusOf('o3'), await statusOf('gpt-4o'), await statusOf('o3'), await statusOf('gpt-4o')]).toEqual([200, 200, 429, 200])
  })

  test('replaces the model of requests that exceed it', async () => {
    const { post, mock, gateway } = await start([{ name: 'team', limits: [{ tokens: 5, window: 'Day' }], onExceeded: { model: 'small' } }], {
      modelAliases: { small: 'gpt-4o-mini' },
    })
    for (let i = 0; i < 3; i++) expect((await post({ body: chat('one two three', { model: 'gpt-4o' }) })).status).toBe(200)
    expect(mock.requests.map(({ body }) => body?.['model'])).toEqual(['gpt-4o', 'gpt-4o-mini', 'gpt-4o-mini'])
    expect(logFieldsOf(gateway.finished[1])['proxy.budget.exceeded']).toBe('team')
    expect(logFieldsOf(gateway.finished[1])['gen_ai.request.model']).toBe('gpt-4o-mini')
  })
})
