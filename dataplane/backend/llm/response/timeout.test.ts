import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { BackendAI, RouteRetry } from '#gen/config/types.ts'
import { startMockServer, type MockServer } from '../../../../e2e/harness/llm/server.ts'
import { BufferBody, readBody, type Body } from '../../../http/body.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import { passChat } from '../convert/native.ts'
import { EventBody } from './event-body.ts'
import { startLlmGateway, type LlmGateway } from '../testing/gateway.ts'
import { chat, sdkRoutes, send, type TestResponse } from '../testing/test-bed.ts'

/** `timeouts.request` covers the complete response. A stream ends with an error in the client's format. */

const chunk = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'hello' }, finish_reason: null }] })}\n\n`
const created = `event: response.created\ndata: ${JSON.stringify({ type: 'response.created', response: { id: 'r', object: 'response', status: 'in_progress', output: [] } })}\n\n`
const requestMs = 4000

const openPassStream = () =>
  passChat('completions').stream({
    memo: { model: 'm', isStreaming: true, toolNames: new Map() },
    header: () => undefined,
    hex: () => '',
    nowMs: () => 0,
  })

const open: { close(): Promise<void> }[] = []
let mock: MockServer
beforeAll(async () => {
  // Starts a stream that never continues.
  mock = await startMockServer({
    answer({ path, headers }, response) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(headers['x-mute'] !== undefined ? ': wait\n\n' : path.endsWith('responses') ? created : chunk)
    },
  })
  open.push(mock)
})
afterAll(async () => {
  for (const one of open.toReversed()) await one.close()
})

async function startLate(ai: BackendAI = {}, retry?: RouteRetry): Promise<LlmGateway> {
  const gateway = await startLlmGateway({
    ai: { provider: { providerA: {}, host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes: sdkRoutes, ...ai } },
    route: { timeouts: { requestMs }, ...(retry && { retry }) },
  })
  open.push(gateway)
  return gateway
}

const regex: BackendAI = { promptGuard: { response: [{ regex: { builtins: ['Ssn'] } }] } }
const error = { message: 'request timeout', type: 'timeout_error', param: null, code: 'timeout_error' }
const ends = {
  '/v1/chat/completions': `data: ${JSON.stringify({ error })}\n\n`,
  '/v1/messages': `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'timeout_error', message: 'request timeout' } })}\n\n`,
  '/v1/responses': `event: error\ndata: ${JSON.stringify({ type: 'error', code: 'timeout_error', message: 'request timeout', param: null })}\n\n`,
} as const

describe('a stream that exceeds the request timeout', () => {
  const cases = (Object.keys(ends) as (keyof typeof ends)[]).flatMap((path) => [{ path, ai: {} } as const, { path, ai: regex } as const])
  let results: { response: TestResponse; gateway: LlmGateway }[]
  beforeAll(async () => {
    results = await Promise.all(
      cases.map(async ({ path, ai }) => {
        const gateway = await startLate(ai)
        const body = path.endsWith('responses') ? { model: 'gpt-4o', input: 'x', stream: true } : chat('x', { stream: true, max_tokens: 9 })
        return { gateway, response: await send(gateway.port, { path, body }) }
      }),
    )
  })

  test.each(cases.map(({ path, ai }, index) => [path, ai === regex ? 'with a guard' : 'without guards', index] as const))(
    'ends with an error event: %s %s',
    (path, _, index) => {
      const { response, gateway } = results[index] ?? {}
      expect(response?.status).toBe(200)
      expect(response?.text.endsWith(ends[path])).toBe(true)
      expect(response?.text).not.toMatch(/\[DONE\]|message_stop|response\.completed/)
      expect(gateway?.finished.map(({ cutBy, error: reason }) => [cutBy, reason?.code])).toEqual([['timeout', 'REQUEST_TIMEOUT']])
    },
  )

  test('before its first content is a 504 if another attempt is left', async () => {
    const gateway = await startLate({}, { attempts: 2, codes: [503] })
    const response = await send(gateway.port, { body: chat('x', { stream: true }), headers: { 'x-mute': '1' } })
    expect([response.status, response.text]).toEqual([504, 'request timeout'])
  })

  test('is closed if the client does not read', async () => {
    const stream = openPassStream()
    const ended: string[] = []
    const body = new EventBody(new BufferBody(chunk), stream, { guard: undefined, deadlineAtMs: performance.now() + 1, onClose: (end) => void ended.push(end) })
    const failure = await new Promise<Error>((resolve, reject) => {
      body.pause()
      body.start({ onData: () => reject(new Error('data')), onEnd: () => reject(new Error('end')), onError: resolve })
    })
    expect([failure.message, ended]).toEqual(['request timeout', ['timeout']])
  })
})

test('a stream that the upstream resets ends with an error event that does not name the upstream', async () => {
  const failure = new UpstreamError('reset', '10.0.0.1:443: connection closed')
  const source: Body = { length: undefined, start: (sink) => (sink.onData(Buffer.from(chunk)), sink.onError(failure)), pause() {}, resume() {}, cancel() {} }
  let logged: Error | undefined
  const body = new EventBody(source, openPassStream(), { guard: undefined, onClose: (_end, cause) => void (logged = cause) })
  const text = (await readBody(body, 100_000)).bytes.toString()
  expect(text).toContain('the upstream closed the stream early: connection reset')
  expect(text).not.toContain('10.0.0.1')
  expect(logged).toBe(failure)
})
