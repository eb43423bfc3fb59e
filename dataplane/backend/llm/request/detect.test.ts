import { afterEach, describe, expect, test } from '@jest/globals'
import { encodeFrame } from '../../../../e2e/harness/llm/bedrock.ts'
import { startMockServer, type Answer } from '../../../../e2e/harness/llm/server.ts'
import { waitUntil } from '../../../../e2e/harness/wait.ts'
import { startLlmGateway, type LlmGateway } from '../testing/gateway.ts'
import { send } from '../testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

/** Dollars a million tokens: 1 and 100 dollars a token. */
const prices = { cheap: { input: '1000000', output: '1000000' }, dear: { input: '100000000', output: '100000000' } }

async function start(answer: Answer, unpriced?: 'Allow'): Promise<LlmGateway> {
  const mock = await startMockServer({ answer })
  const budget = { name: 'b', limits: [{ usd: '100000000', window: 'Day' }], ...(unpriced && { unpriced }) }
  const gateway = await startLlmGateway({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Detect' }, prices } },
    onGateway: [{ traffic: { budgets: [budget] } }],
  })
  open.push(mock, gateway)
  return gateway
}

const spentOf = ({ registry }: LlmGateway): number =>
  Number(/proxy_budget_spent_total\{[^}]*unit="usd"\} ([\d.]+)/.exec([...registry.expose('text')].join(''))?.[1] ?? 0)

const json =
  (body: object): Answer =>
  (_, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const usage = { usage: { input_tokens: 30, output_tokens: 12 } }
const messages = [{ role: 'user', content: 'hello' }]

describe('a Detect request under a budget in dollars', () => {
  test('is charged the usage in the chunks of InvokeModelWithResponseStream', async () => {
    const chunk = (event: object): Buffer =>
      encodeFrame(
        { ':message-type': 'event', ':event-type': 'chunk', ':content-type': 'application/json' },
        { bytes: Buffer.from(JSON.stringify(event)).toString('base64'), p: 'abcdef' },
      )
    const frames = Buffer.concat(
      [
        { type: 'message_start', message: { usage: { input_tokens: 30, output_tokens: 1 } } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 12 } },
      ].map(chunk),
    )
    const gateway = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
      // Frames end anywhere in what arrives.
      for (let at = 0; at < frames.length; at += 50) response.write(frames.subarray(at, at + 50))
      response.end()
    })
    expect((await send(gateway.port, { path: '/model/cheap/invoke-with-response-stream', body: { messages } })).status).toBe(200)
    await waitUntil('the usage is charged', () => spentOf(gateway) > 0)
    expect(spentOf(gateway)).toBe(42)
  })

  test.each([
    ['/model/dear/invoke', 4200],
    ['/model/dear/converse', 4200],
    ['/v1beta/models/dear:generateContent', 4200],
    ['/v1/projects/p/locations/l/publishers/anthropic/models/dear:rawPredict', 4200],
    ['/model/%64ear/invoke', 4200],
    ['/v1/chat/completions', 42],
  ])('has the model of its path, and else of its body: %s', async (path, expected) => {
    const gateway = await start(json(usage))
    expect((await send(gateway.port, { path, body: { model: 'cheap', messages } })).status).toBe(200)
    expect(spentOf(gateway)).toBe(expected)
  })

  test.each([
    ['a model without a price', '/model/unknown/invoke', { messages }],
    ['a model without a price in the path and one with a price in the body', '/model/unknown/invoke', { model: 'cheap', messages }],
    ['no model', '/v1/chat/completions', { messages }],
  ])('is rejected with %s, and free with `unpriced: Allow`', async (_, path, body) => {
    let sent = 0
    const answer: Answer = (...args) => {
      sent++
      return json(usage)(...args)
    }
    const rejecting = await start(answer)
    const { status, text } = await send(rejecting.port, { path, body })
    expect([status, sent]).toEqual([403, 0])
    expect(text).toContain('price')
    const allowing = await start(answer, 'Allow')
    expect((await send(allowing.port, { path, body })).status).toBe(200)
    expect([sent, spentOf(allowing)]).toEqual([1, 0])
  })
})
