import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { startMockServer, type Answer } from '../../../../e2e/harness/llm/server.ts'
import { startLlmGateway, type LlmGateway } from '../testing/gateway.ts'
import { send } from '../testing/test-bed.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(answer: Answer): Promise<LlmGateway> {
  const mock = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes: { '*': 'Detect' } } },
    onGateway: [{ traffic: { budgets: [{ name: 'b', limits: [{ tokens: 1_000_000, window: 'Day' }] }] } }],
  })
  open.push(mock, gateway)
  return gateway
}

const spentOf = ({ registry }: LlmGateway): number =>
  Number(/proxy_budget_spent_total\{[^}]*unit="tokens"\} ([\d.]+)/.exec([...registry.expose('text')].join(''))?.[1] ?? 0)

const USAGE = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 }
const LINE = 250
/** 20 MB in fewer members than JSON may have. */
function longReply(): string {
  const text = randomBytes(15_000_000).toString('base64')
  const data = Array.from({ length: text.length / LINE }, (_, i) => text.slice(i * LINE, (i + 1) * LINE))
  return JSON.stringify({ id: 'c', model: 'm', data, usage: USAGE })
}

const long = { path: '/v1/things', body: { model: 'm', prompt: 'long' } }
const short = { path: '/v1/things', body: { model: 'm', prompt: 'short' } }

describe('on a Detect route', () => {
  test('another request is served while a response of 20 MB is decoded and parsed', async () => {
    const bytes = gzipSync(longReply(), { level: 1 })
    const { promise: isSent, resolve: sent } = Promise.withResolvers<void>()
    const gateway = await start(({ body }, response) => {
      if (!JSON.stringify(body).includes('long')) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"c"}')
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bytes, () => sent())
    })
    const served: string[] = []
    const first = send(gateway.port, long).then((response) => (served.push('long'), response))
    await isSent
    await send(gateway.port, short).then(() => served.push('short'))
    expect((await first).status).toBe(200)
    expect(served).toEqual(['short', 'long'])
    // The usage is read before the response is returned.
    expect(spentOf(gateway)).toBeGreaterThanOrEqual(USAGE.total_tokens)
  })

  const events = `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [] })}\n\ndata: ${JSON.stringify({ id: 'c', model: 'm', usage: USAGE })}\n\ndata: [DONE]\n\n`
  test.each([
    ['JSON', 'application/json', JSON.stringify({ id: 'c', model: 'm', usage: USAGE })],
    ['long JSON', 'application/json', JSON.stringify({ id: 'c', model: 'm', text: 'x'.repeat(300_000), usage: USAGE })],
    ['a stream', 'text/event-stream', events],
    ['a long stream', 'text/event-stream', `data: ${JSON.stringify({ text: 'x' })}\n\n`.repeat(20_000) + events],
  ])('the usage of %s is charged when the response ends, coded and plain', async (_, type, content) => {
    for (const isCoded of [true, false]) {
      const gateway = await start((_request, response) => {
        const head = { 'content-type': type, ...(isCoded && { 'content-encoding': 'gzip' }) }
        response.writeHead(200, head).end(isCoded ? gzipSync(content) : content)
      })
      expect((await send(gateway.port, short)).status).toBe(200)
      expect(spentOf(gateway)).toBe(USAGE.total_tokens)
    }
  })

  test('a response that its coding does not match is forwarded', async () => {
    const gateway = await start((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('{"usage":{"total_tokens":9}}')
    })
    expect((await send(gateway.port, short)).status).toBe(200)
  })
})
