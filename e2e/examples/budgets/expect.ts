import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

const chat = (run: ExampleRun, key: string, model = 'gpt-4o') =>
  run.send(8080, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, max_tokens: 20, messages: [{ role: 'user', content: 'one two three four five' }] }),
  })

export default expectations({
  'a person is limited, and the error names the budget and its end': async (run) => {
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await chat(run, 'demo-key-alice')).status)
    // 11 tokens each.
    expect(statuses).toEqual([200, 200, 200, 429])
    const rejected = await chat(run, 'demo-key-alice')
    expect(rejected.body).toMatch(/"budget exceeded: budget \\"person\\" of 30 tokens per Day is used up until \d{4}-\d\d-\d\dT00:00:00Z"/)
    expect((await chat(run, 'demo-key-bob')).status).toBe(200)
  },
  'responses tell what is left of the budget of the team': async (run) => {
    const { headers } = await chat(run, 'demo-key-bob')
    expect(Number(headers['x-budget-remaining-usd'])).toBeCloseTo(500, 2)
    expect(await run.dataplane.metrics()).toMatch(/proxy_budget_spent_total\{policy="[^"]*\/budgets",budget="team",unit="usd"\} 0\.000/)
  },
  'a model without a price is rejected': async (run) => {
    expect((await chat(run, 'demo-key-bob', 'own')).body).toContain('budget \\"team\\" needs a price of own (ai.prices, ai.priceCatalog)')
  },
})
