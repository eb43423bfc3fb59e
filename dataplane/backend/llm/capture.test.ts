import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from '@jest/globals'
import { capturedBodies, captureLimits } from '../../request/exchange/captured-bodies.ts'
import { createCollector } from './replay/index.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

async function start(options: TestBedOptions = {}, limit: number | undefined = 10_000): Promise<TestBed> {
  const bed = await startTestBed({ ...options, ai: { routes: sdkRoutes, ...options.ai } })
  open.push(bed)
  if (limit !== undefined) captureLimits.set(bed.gateway.registry, limit)
  return bed
}

const bodiesOf = ({ gateway: { finished } }: TestBed) => finished.map((exchange) => capturedBodies.get(exchange))
const mask = { regex: { action: 'Mask' as const, matches: ['s3cr3t'] } }
const reject = { regex: { action: 'Reject' as const, matches: ['forbidden'] } }

describe('bodies for the ledger', () => {
  test('are captured only if a limit is set', async () => {
    const bed = await start({}, undefined)
    captureLimits.delete(bed.gateway.registry)
    await bed.post({ body: chat() })
    expect(bodiesOf(bed)).toEqual([undefined])
  })

  test.each([false, true])('are the request as sent and the response as one, as a stream: %s', async (stream) => {
    const bed = await start()
    await bed.post({ body: chat('hello', { stream }) })
    const [bodies] = bodiesOf(bed)
    expect(bodies?.request).toBe(bed.mock.requests[0]?.raw.toString())
    expect(JSON.parse(bodies?.response ?? '')).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'echo: hello' }, finish_reason: 'stop' }],
    })
  })

  test.each(['/v1/messages', '/v1/responses'])('are captured in the format of clients of %s', async (path) => {
    const bed = await start({ provider: { providerF: { model: 'anthropic.claude-sonnet-4-5' } }, policies: { auth: { key: 'k' } } })
    const body = path === '/v1/messages' ? chat('hello', { stream: true, max_tokens: 9 }) : { model: 'm', input: 'hello', stream: true }
    await bed.post({ path, body })
    const response = JSON.parse(bodiesOf(bed)[0]?.response ?? '') as Record<string, unknown>
    expect(path === '/v1/messages' ? response['content'] : response['output']).toEqual([
      expect.objectContaining({ type: path === '/v1/messages' ? 'text' : 'message' }),
    ])
  })

  test('have what guards masked, and not what they rejected', async () => {
    const bed = await start({ ai: { promptGuard: { request: [mask, reject], response: [{ regex: { action: 'Mask', matches: ['echo'] } }] } } })
    for (const stream of [false, true]) await bed.post({ body: chat('my s3cr3t', { stream }) })
    await bed.post({ body: chat('forbidden') })
    const [whole, streamed, rejected] = bodiesOf(bed)
    for (const bodies of [whole, streamed]) {
      expect(bodies?.request).toContain('my <')
      expect(JSON.stringify(bodies)).not.toMatch(/s3cr3t|echo/)
    }
    expect(rejected).toBeUndefined()
  })

  test.each([false, true])('have no response that a guard rejected, as a stream: %s', async (stream) => {
    const bed = await start({ ai: { promptGuard: { response: [reject] } } })
    await bed.post({ body: chat('forbidden', { stream }) })
    const [bodies] = bodiesOf(bed)
    expect(bodies?.request).toContain('forbidden')
    expect(bodies?.response ?? '').not.toContain('forbidden')
  })

  test('have no response of a provider that failed', async () => {
    const bed = await start()
    await bed.post({ body: chat(), headers: { 'x-mock': 'status=500' } })
    expect(bodiesOf(bed)[0]).toEqual({ request: expect.any(String) })
  })

  test('are cut at the limit, also within a character', async () => {
    const bed = await start({}, 60)
    for (const stream of [false, true]) await bed.post({ body: chat('ü'.repeat(200), { stream }) })
    for (const bodies of bodiesOf(bed))
      for (const text of [bodies?.request, bodies?.response]) {
        expect(text?.isWellFormed() ?? true).toBe(true)
        expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(62)
      }
  })

  test('are decoded', async () => {
    const bed = await start()
    const { text } = await bed.post({ body: chat(), headers: { 'accept-encoding': 'gzip', 'x-mock': 'gzip' } })
    expect(gzipSync(text).length).toBeGreaterThan(0)
    expect(bodiesOf(bed)[0]?.response).toContain('echo: hello')
  })

  test('of a cached response are captured too', async () => {
    const bed = await start({ ai: { cache: { tenant: '"all"' } } })
    await bed.post({ body: chat('hello', { stream: true }) })
    await bed.post({ body: chat('hello', { stream: true }) })
    const [miss, hit] = bodiesOf(bed)
    expect(hit?.response).toBe(miss?.response)
    expect(bed.mock.requests).toHaveLength(1)
  })
})

describe('a collector of a stream', () => {
  const event = (data: string): Buffer => Buffer.from(`data: ${data}\n\n`)

  test.each([
    ['no stream', [Buffer.from('<html>')]],
    ['events that are no JSON', [event('{'), event('[1]')]],
    ['deep nesting', [event('['.repeat(50_000))]],
    ['an event without end', [Buffer.from('data: {'), ...Array.from({ length: 100 }, () => Buffer.alloc(10_000, 'a'))]],
  ])('returns nothing for %s', (_, chunks) => {
    const collector = createCollector('completions', 1000)
    for (const chunk of chunks) collector.push(chunk)
    expect(collector.text()).toBeUndefined()
  })

  test('stops at the limit, and keeps the part before an error', () => {
    const piece = event(JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { content: 'a'.repeat(100) } }] }))
    const long = createCollector('completions', 1000)
    for (let nth = 0; nth < 10_000; nth++) long.push(piece)
    expect(long.text()?.length).toBe(1000)
    const broken = createCollector('completions', 1000)
    for (const chunk of [piece, event('{"error":{"message":"x"}}'), piece]) broken.push(chunk)
    expect(JSON.parse(broken.text() ?? '')).toMatchObject({ choices: [{ message: { content: 'a'.repeat(100) } }] })
  })
})
