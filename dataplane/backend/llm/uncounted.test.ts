import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, test } from '@jest/globals'
import type { NamedLLMProvider } from '#gen/config/types.ts'
import { startMockServer, type Answer } from '../../../e2e/harness/llm/server.ts'
import { waitUntil } from '../../../e2e/harness/wait.ts'
import { startLlmGateway, type LlmGateway } from './testing/gateway.ts'
import { sdkRoutes, send } from './testing/test-bed.ts'

/** What budgets are charged if an upstream does not say what it has used. */

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

/** 18 bytes: 5 tokens; the response `Hello` has 2. */
const PROMPT = 'one two three four'
const ESTIMATE = 7

const text = (more: object) => ({
  id: 'c',
  model: 'gpt-4o',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  ...more,
})
const messages = (more: object) => ({
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'gpt-4o',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  ...more,
})
const responses = (more: object) => ({
  id: 'r', object: 'response', status: 'completed', model: 'gpt-4o',
  output: [{ type: 'message', role: 'assistant', id: 'm1', content: [{ type: 'output_text', text: 'Hello' }] }], ...more,
}) // prettier-ignore
const converse = (more: object) => ({ output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } }, stopReason: 'end_turn', ...more })
const gemini = (more: object) => ({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }], ...more })
const embeddings = (more: object) => ({ object: 'list', model: 'gpt-4o', data: [{ object: 'embedding', index: 0, embedding: [0.5] }], ...more })

const chat = { model: 'gpt-4o', max_tokens: 9, messages: [{ role: 'user', content: PROMPT }] }
const parts = [{ text: PROMPT }]
const openai = { providerA: {} }
const detect = { '*': 'Detect' } as const

/** A request, the provider, its response, where usage is, and the names of its counts. */
const cases: Readonly<
  Record<string, readonly [path: string, body: object, provider: Omit<NamedLLMProvider, 'name'>, reply: (more: object) => object, usage: string, names: readonly string[], routes?: typeof detect]>
> = {
  Completions: ['/v1/chat/completions', chat, openai, text, 'usage', ['prompt_tokens', 'completion_tokens']],
  'Completions from Messages': ['/v1/chat/completions', chat, { providerC: {} }, messages, 'usage', ['input_tokens', 'output_tokens']],
  'Completions from Converse': ['/v1/chat/completions', chat, { providerF: {} }, converse, 'usage', ['inputTokens', 'outputTokens']],
  Messages: ['/v1/messages', chat, { providerC: {} }, messages, 'usage', ['input_tokens', 'output_tokens']],
  Responses: ['/v1/responses', { model: 'gpt-4o', input: PROMPT }, openai, responses, 'usage', ['input_tokens', 'output_tokens']],
  Embeddings: ['/v1/embeddings', { model: 'gpt-4o', input: PROMPT }, openai, embeddings, 'usage', ['prompt_tokens']],
  'Detect of Completions': ['/v1/chat/completions', chat, openai, text, 'usage', ['prompt_tokens', 'completion_tokens'], detect],
  'Detect of Converse': ['/model/gpt-4o/converse', { messages: [{ role: 'user', content: parts }] }, openai, converse, 'usage', ['inputTokens', 'outputTokens'], detect],
  'Detect of Gemini': ['/v1beta/models/gpt-4o:generateContent', { contents: [{ role: 'user', parts }] }, openai, gemini, 'usageMetadata', ['promptTokenCount', 'candidatesTokenCount'], detect],
} // prettier-ignore

/** Values in place of counts; undefined: no usage at all. */
const values: readonly unknown[] = [undefined, {}, 0, -1, -1e9, null, '12', 'many', [], 1e15, 2 ** 53, 1e300]

async function start(name: string, answer: Answer): Promise<LlmGateway> {
  const [, , provider, , , , routes = sdkRoutes] = cases[name] ?? []
  const mock = await startMockServer({ answer })
  const gateway = await startLlmGateway({
    ai: { provider: { ...(provider ?? openai), host: '127.0.0.1', port: mock.port } },
    policies: { auth: { key: 'k' }, ai: { routes, prices: { '*': { input: '1000000', output: '1000000' } } } },
    onGateway: [
      {
        traffic: {
          budgets: [
            {
              name: 'b',
              limits: [
                { tokens: 1_000_000, window: 'Day' },
                { usd: '1000000', window: 'Day' },
              ],
            },
          ],
        },
      },
    ],
  })
  open.push(mock, gateway)
  return gateway
}

/** What was charged: tokens and dollars, which are a dollar each. */
const spentOf = ({ registry }: LlmGateway): number[] => {
  const exposed = [...registry.expose('text')].join('')
  return ['tokens', 'usd'].map((unit) => Number(new RegExp(`proxy_budget_spent_total\\{[^}]*unit="${unit}"\\} ([\\d.]+)`).exec(exposed)?.[1] ?? 0))
}

describe.each(Object.keys(cases))('a response of %s', (name) => {
  test.each(values)('is charged the estimate if its counts are %j', async (value) => {
    const [path = '', body = {}, , reply = text, usage = '', names = []] = cases[name] ?? []
    const counts =
      value === undefined
        ? {}
        : { [usage]: typeof value === 'object' && !Array.isArray(value) && value !== null ? {} : Object.fromEntries(names.map((each) => [each, value])) }
    const gateway = await start(name, (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply(counts))))
    expect((await send(gateway.port, { path, body })).status).toBe(200)
    const expected = name === 'Embeddings' ? 5 : ESTIMATE
    expect(spentOf(gateway)).toEqual([expected, expected])
  })

  test('is charged its counts if it has some', async () => {
    const [path = '', body = {}, , reply = text, usage = '', names = []] = cases[name] ?? []
    const counts = { [usage]: Object.fromEntries(names.map((each, nth) => [each, nth === 0 ? 30 : 12])) }
    const gateway = await start(name, (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply(counts))))
    expect((await send(gateway.port, { path, body })).status).toBe(200)
    const expected = name === 'Embeddings' ? 30 : 42
    expect(spentOf(gateway)).toEqual([expected, expected])
  })

  test('is charged its prompt if the client leaves before it', async () => {
    const [path = '', body = {}] = cases[name] ?? []
    let isSent = false
    const gateway = await start(name, () => void (isSent = true))
    const abort = new AbortController()
    const request = fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: abort.signal,
    }).catch(() => undefined)
    await waitUntil('the provider has the request', () => isSent)
    abort.abort()
    await request
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    await wait(0)
    expect(spentOf(gateway)).toEqual([5, 5])
  })
})

describe('a prompt that a client hides from a budget', () => {
  const hidden = 'word '.repeat(800)
  const twice = `{"model":"gpt-4o","messages":[{"role":"user","content":"${hidden}","content":"x"}]}`
  const once = `{"model":"gpt-4o","messages":[{"role":"user","content":"${hidden}"}]}`
  const reply: Answer = (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(text({})))

  test.each<[string, string, string]>([
    ['in a member that is repeated', 'application/json', twice],
    ['in a member that is repeated, as text', 'text/plain', twice],
    ['as text', 'text/plain', once],
    ['as bytes', 'application/octet-stream', once],
    ['in the id of the user', 'application/json', `{"user":"${hidden}","messages":[]}`],
    ['in JSON over the limit of a body', 'application/json', `{"messages":["${'word '.repeat(800_000)}"]}`],
  ])('%s is charged on a Detect route', async (_, type, body) => {
    const gateway = await start('Detect of Completions', reply)
    const response = await fetch(`${gateway.url}/model/gpt-4o/invoke`, { method: 'POST', headers: { 'content-type': type }, body })
    expect(response.status).toBe(200)
    await response.text()
    await waitUntil('the request ends', () => gateway.finished.length > 0)
    const prompt = Math.floor(body.length / 4)
    await waitUntil('the prompt is charged', () => (spentOf(gateway)[0] ?? 0) > prompt * 0.9)
    expect(spentOf(gateway)[0]).toBeLessThan(prompt * 1.1)
  })

  test('in a member that is repeated is rejected', async () => {
    const gateway = await start('Completions', reply)
    const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: twice })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('repeats a name')])
    expect(spentOf(gateway)[0]).toBe(0)
  })
})
