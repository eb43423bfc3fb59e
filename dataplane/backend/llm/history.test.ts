import { afterEach, describe, expect, test } from '@jest/globals'
import type { JsonObject } from './common/types.ts'
import { startMockServer, type Answer } from '../../../e2e/harness/llm/server.ts'
import { bodyOf, type AnswerBlock } from './convert/testdata/answers.ts'
import { firstRequest, nextRequest } from './convert/testdata/clients.ts'
import { startLlmGateway } from './testing/gateway.ts'
import { sdkRoutes, send } from './testing/test-bed.ts'

/**
 * A turn is sent with the same bytes in each later request (llm.md §7.15): prompt caches and signed thinking are valid only behind the history that they
 * were made for. Policies that add, mask and rename are on.
 */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const paths = { completions: '/v1/chat/completions', messages: '/v1/messages', responses: '/v1/responses', gemini: '/v1beta/models/m:generateContent' } as const
type Row = readonly [keyof typeof paths, 'completions' | 'messages' | 'converse' | 'responses', object, string]
const rows: readonly Row[] = [
  ['completions', 'completions', { providerA: {} }, 'gpt-4o'],
  ['messages', 'completions', { providerA: {} }, 'gpt-5.5'],
  ['responses', 'responses', { providerA: {} }, 'gpt-5.5'],
  ['messages', 'completions', { providerA: {} }, 'mistral-large-latest'],
  ['completions', 'completions', { providerA: {} }, 'mistral-large-latest'],
  ['messages', 'completions', { providerA: {} }, 'deepseek-reasoner'],
  ['messages', 'messages', { providerC: {} }, 'claude-sonnet-4-5'],
  ['messages', 'messages', { providerC: {} }, 'claude-fable-5-1'],
  ['completions', 'messages', { providerC: {} }, 'claude-opus-4-8'],
  ['completions', 'completions', { providerD: {} }, 'gemini-3-pro'],
  ['messages', 'completions', { providerD: {} }, 'gemini-2.5-pro'],
  ['responses', 'completions', { providerD: {} }, 'gemini-3-pro'],
  ['completions', 'converse', { providerF: {} }, 'anthropic.claude-sonnet-4-5-v1:0'],
  ['messages', 'converse', { providerF: {} }, 'amazon.nova-pro-v1:0'],
  ['responses', 'converse', { providerF: {} }, 'anthropic.claude-opus-4-6-v1:0'],
  ['gemini', 'completions', { providerA: {} }, 'gpt-4o'],
  ['gemini', 'messages', { providerC: {} }, 'claude-opus-4-8'],
  ['gemini', 'converse', { providerF: {} }, 'amazon.nova-pro-v1:0'],
]

/** What the model answers, turn by turn: thinking, tools with names and ids that are replaced, text that is masked, a blank. */
const turns: readonly (readonly AnswerBlock[])[] = [
  [
    { type: 'thinking', text: 'I look', signature: 'c2ln' },
    { type: 'text', text: 'Let me ask jane@example.com.' },
    { type: 'call', id: 'functions.f:0', name: 'NAME', json: '{"city":"Bern"}' },
    { type: 'call', id: 'functions.f:0', name: 'get_weather', json: '{}' },
  ],
  [{ type: 'text', text: 'Sunny.' }],
  [{ type: 'text', text: ' ' }],
  [{ type: 'call', id: 'b', name: 'NAME', json: 'not json' }],
  [{ type: 'text', text: 'Done.' }],
]

/** A request as text: what is apart from the conversation, and its messages block by block with their role. Cache points move with the conversation. */
function partsOf(body: JsonObject): { readonly fixed: string; readonly blocks: string[] } {
  const { messages, input, ...fixed } = body
  const plain = (value: unknown): string => JSON.stringify(value).replaceAll(/,?\{"cachePoint":\{[^}]*\}\}|,"cache_control":\{[^}]*\}/g, '')
  const blocks = ((messages ?? input) as JsonObject[]).flatMap(({ content, ...message }) =>
    Array.isArray(content)
      ? content.filter((block) => !('cachePoint' in (block as object))).map((block) => plain({ ...message, block: block as unknown }))
      : [plain({ ...message, content })],
  )
  return { fixed: plain(fixed), blocks }
}

describe('five turns', () => {
  test.each(rows)('of a %s client over %s begin with the same bytes in each request: %j, model %s', async (format, over, provider, model) => {
    let turn = 0
    let sent = ''
    const answer: Answer = ({ raw }, response) => {
      const text = raw.toString()
      sent = text
      const name = /"name":"(mcp[^"]*)"/.exec(text)?.[1] ?? 'mcp.server/tool'
      const blocks = (turns[turn] ?? []).map((block) => (block.type === 'call' && block.name === 'NAME' ? { ...block, name } : block))
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(bodyOf(blocks, over)))
    }
    const server = await startMockServer({ answer })
    const gateway = await startLlmGateway({
      ai: { provider: { ...provider, host: '127.0.0.1', port: server.port } },
      policies: {
        auth: { key: 'k' },
        ai: {
          routes: { ...sdkRoutes, ':generateContent': 'Gemini' },
          prompt: { prepend: [{ role: 'system', content: 'Company rules.' }], append: [{ role: 'user', content: 'Answer in English.' }] },
          promptGuard: { request: [{ regex: { builtins: ['Email'] } }] },
          promptCaching: { cacheSystem: true, cacheMessages: true },
          defaults: [{ field: 'seed', value: 1 }],
        },
      },
    })
    open.push(server, gateway)
    let request: JsonObject = { ...firstRequest(format), model }
    let last: ReturnType<typeof partsOf> | undefined
    for (turn = 0; turn < turns.length; turn++) {
      const { status, json, text } = await send(gateway.port, { path: paths[format].replace('/m:', `/${model}:`), body: request })
      expect([status, text.slice(0, 300)]).toEqual([200, text.slice(0, 300)])
      const parts = partsOf(JSON.parse(sent) as JsonObject)
      expect(sent).not.toContain('jane@example.com')
      if (last !== undefined) {
        expect(parts.fixed).toBe(last.fixed)
        expect(parts.blocks.slice(0, last.blocks.length)).toEqual(last.blocks)
        expect(parts.blocks.length).toBeGreaterThan(last.blocks.length)
      }
      last = parts
      request = nextRequest(format, request, json, [{ kind: 'plain', text: 'write to jane@example.com', isError: false }])
    }
  })
})
