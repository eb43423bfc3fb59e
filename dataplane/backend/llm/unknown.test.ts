import { afterEach, describe, expect, test } from '@jest/globals'
import { startMockServer, type Answer } from '../../../e2e/harness/llm/server.ts'
import { startLlmGateway } from './testing/gateway.ts'
import { sdkRoutes, send } from './testing/test-bed.ts'

/** What the gateway does not know in responses is counted (llm.md §17.2). */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const messages = [{ role: 'user', content: 'hi' }]
const sse = (...events: readonly unknown[]): string => events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')
const choice = (finish: string | null, message: object): object => ({ id: 'c', model: 'm', choices: [{ index: 0, message, finish_reason: finish }] })
const chunk = (finish: string | null, delta: object): object => ({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })

/** Sends one request through a gateway to a provider that responds with the given body, and returns the lines of the counter. */
async function count(path: string, request: object, body: string, provider: object = { providerA: {} }, status = 200): Promise<string[]> {
  const type = body.startsWith('data:') ? 'text/event-stream' : 'application/json'
  const answer: Answer = (_, response) => void response.writeHead(status, { 'content-type': type }).end(body)
  const server = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { ...provider, host: '127.0.0.1', port: server.port } },
    policies: { auth: { key: 'k' }, ai: { routes: sdkRoutes } },
  })
  open.push(server, gateway)
  await send(gateway.port, { path, body: request })
  const lines = [...gateway.registry.expose('text')].join('').matchAll(/llm_unknown_total\{(target="[^}]*")\} (\d+)/g)
  return [...lines].map(([, labels, value]) => `${String(labels)} ${String(value)}`)
}

const chat = { model: 'm', messages }
const claude = { model: 'claude-sonnet-4-5', max_tokens: 9, messages }

describe('the counter of what is not understood', () => {
  test.each<[string, string, object, string, object, string[]]>([
    [
      'a finish reason',
      '/v1/messages',
      claude,
      JSON.stringify(choice('odd', { content: 'x' })),
      { providerA: {} },
      ['target="compatible",kind="finish_reason" 1'],
    ],
    [
      'a finish reason of a stream',
      '/v1/messages',
      { ...claude, stream: true },
      sse(chunk(null, { content: 'x' }), chunk('odd', {}), '[DONE]'),
      { providerA: {} },
      ['target="compatible",kind="finish_reason" 1'],
    ],
    [
      'a finish reason of a native stream',
      '/v1/chat/completions',
      { ...chat, stream: true },
      sse(chunk(null, { content: 'x' }), chunk('odd', {}), '[DONE]'),
      { providerA: {} },
      ['target="compatible",kind="finish_reason" 1'],
    ],
    [
      'parts of the content',
      '/v1/messages',
      claude,
      JSON.stringify(
        choice('stop', {
          content: [
            { type: 'hologram', data: 'x' },
            { type: 'text', text: 'x' },
          ],
        }),
      ),
      { providerA: {} },
      ['target="compatible",kind="fragment" 1'],
    ],
    [
      'events that are no JSON',
      '/v1/messages',
      { ...claude, stream: true },
      sse('{"broken', chunk('stop', { content: 'x' }), '[DONE]'),
      { providerA: {} },
      ['target="compatible",kind="fragment" 1'],
    ],
    [
      'blocks and deltas of the Messages API',
      '/v1/chat/completions',
      { model: 'claude-sonnet-4-5', stream: true, messages },
      sse(
        { type: 'message_start', message: { id: 'm', model: 'm', content: [] } },
        { type: 'content_block_start', index: 0, content_block: { type: 'hologram' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'hologram_delta', beam: 'x' } },
        { type: 'ping' },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: {} },
        { type: 'message_stop' },
      ),
      { providerC: {} },
      ['target="anthropic",kind="fragment" 2'],
    ],
    [
      'blocks of Converse',
      '/v1/chat/completions',
      { model: 'amazon.nova-pro-v1:0', messages },
      JSON.stringify({ output: { message: { content: [{ hologram: {} }, { text: 'x' }] } }, stopReason: 'odd', usage: {} }),
      { providerF: {} },
      ['target="converse",kind="fragment" 1', 'target="converse",kind="finish_reason" 1'],
    ],
    ['nothing', '/v1/messages', claude, JSON.stringify(choice('stop', { content: 'x', reasoning_content: 'y' })), { providerA: {} }, []],
  ])('has %s', async (_, path, request, body, provider, lines) => {
    expect((await count(path, request, body, provider)).toSorted()).toEqual(lines.toSorted())
  })

  test('has an error of a shape of no API, not one of a known shape', async () => {
    expect(await count('/v1/messages', claude, '<html>busy</html>', { providerA: {} }, 503)).toEqual(['target="compatible",kind="error" 1'])
    expect(await count('/v1/messages', claude, '{"error":{"message":"busy","type":"server_error"}}', { providerA: {} }, 503)).toEqual([])
  })
})
