import { afterEach, describe, expect, test } from '@jest/globals'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { newProviderState } from './choice/candidates.ts'
import { learnMissing } from './missing-api.ts'
import { chat, sdkRoutes, startTestBed, type Post, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

/** Responses clients of servers that have Chat Completions only (llm.md §5.1). */

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

const MEMORY_MS = 600_000
const ask = (more: object = {}): Post => ({ path: '/v1/responses', body: { model: 'm', input: 'hi', ...more } })

async function start(more: Partial<TestBedOptions> = {}) {
  let now = 1000
  const bed = await startTestBed({ ai: { routes: sdkRoutes }, clocks: { monotonicMs: () => now }, ...more })
  open.push(bed)
  const paths = (): string[] => bed.mock.requests.splice(0).map(({ path }) => path)
  return { ...bed, paths, advance: (ms: number) => void (now += ms) }
}

describe('a server without the Responses API', () => {
  test.each([404, 405, 501])('that answers %i gets Chat Completions, at once and for ten minutes', async (status) => {
    const { post, mock, paths, advance } = await start()
    mock.behave({ status, of: '/responses', html: true })
    const first = await post(ask())
    expect([first.status, first.json['object'], first.json['output']?.[0]?.['content']?.[0]?.['text']]).toEqual([200, 'response', 'echo: hi'])
    expect(paths()).toEqual(['/v1/responses', '/v1/chat/completions'])
    expect((await post(ask())).status).toBe(200)
    expect(paths()).toEqual(['/v1/chat/completions'])
    advance(MEMORY_MS)
    mock.behave({})
    expect((await post(ask())).status).toBe(200)
    expect(paths()).toEqual(['/v1/responses'])
  })

  test('streams events of the Responses API', async () => {
    const { post, mock } = await start()
    mock.behave({ status: 404, of: '/responses', html: true })
    const { status, text } = await post(ask({ stream: true }))
    expect([status, text.includes('event: response.output_text.delta'), text.includes('event: response.completed')]).toEqual([200, true, true])
  })

  test('is not counted as failed, and the log has one request', async () => {
    const { post, mock, gateway } = await start({ policies: { health: { eviction: { consecutiveFailures: 1 } } } })
    mock.behave({ status: 404, of: '/responses', html: true })
    await post(ask())
    const fields = logFieldsOf(gateway.finished[0])
    expect([gateway.finished.length, fields['proxy.ai.failed'], fields['gen_ai.usage.output_tokens']]).toEqual([1, undefined, 2])
  })

  test('that needs the state of an earlier response gives 400 with the field', async () => {
    const { post, mock, paths } = await start()
    mock.behave({ status: 404, of: '/responses', html: true })
    const { status, text } = await post(ask({ previous_response_id: 'resp_1' }))
    expect([status, text]).toEqual([400, expect.stringContaining('previous_response_id: this provider does not support it')])
    expect(paths()).toEqual(['/v1/responses'])
  })

  test('may be one of several providers', async () => {
    const { post, mocks } = await start({ groups: [{ one: { providerA: {} }, two: { providerA: {} } }] })
    for (const mock of mocks) mock.behave({ status: 404, of: '/responses', html: true })
    for (let index = 0; index < 6; index++) expect((await post(ask())).status).toBe(200)
  })

  test('is not assumed where Chat Completions do not exist either: the error is that of the server, and the next request asks again', async () => {
    const { post, mock, paths } = await start()
    mock.behave({ status: 404, html: true })
    expect((await post(ask())).status).toBe(404)
    expect((await post(ask())).status).toBe(404)
    expect(paths()).toEqual(['/v1/responses', '/v1/chat/completions', '/v1/responses', '/v1/chat/completions'])
  })

  test('is not assumed of one that has it: a client cannot turn it off', async () => {
    const { post, mock, paths } = await start()
    await post(ask())
    mock.behave({ status: 404, of: '/responses', html: true })
    expect((await post(ask())).status).toBe(404)
    expect(paths()).toEqual(['/v1/responses', '/v1/responses'])
  })

  test('is not assumed where `path` replaces the path of all requests', async () => {
    const { post, mock, paths } = await start({ provider: { providerA: {}, path: '/own/responses' } })
    mock.behave({ status: 404, html: true })
    expect((await post(ask())).status).toBe(404)
    expect(paths()).toEqual(['/own/responses'])
  })

  test('other requests keep their path', async () => {
    const { post, mock, paths } = await start()
    mock.behave({ status: 404, html: true })
    expect([(await post({ body: chat() })).status, paths()]).toEqual([404, ['/v1/chat/completions']])
  })
})

describe('the field `formats`', () => {
  test('with Completions translates without asking', async () => {
    const { post, paths } = await start({ provider: { providerA: { formats: ['Completions'] } } })
    expect((await post(ask())).status).toBe(200)
    expect(paths()).toEqual(['/v1/chat/completions'])
  })

  test('with Responses rejects Chat Completions clients, and does not fall back', async () => {
    const { post, mock, paths } = await start({ provider: { providerA: { formats: ['Responses'] } } })
    const { status, text } = await post({ body: chat() })
    expect([status, text]).toEqual([400, expect.stringContaining('unsupported conversion: from Completions to provider openai')])
    mock.behave({ status: 404, html: true })
    expect([(await post(ask())).status, paths()]).toEqual([404, ['/v1/responses']])
  })
})

describe('a 404 tells of a missing API', () => {
  // Bodies as the servers send them: FastAPI (vLLM, SGLang), Gin (Ollama), llama.cpp, Express, Kong (Mistral), Spring, OpenAI, Azure, LM Studio.
  test.each([
    '',
    '{"detail":"Not Found"}',
    '404 page not found',
    '{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}',
    '<!DOCTYPE html><pre>Cannot POST /v1/responses</pre> of this model',
    '{"message":"no Route matched with those values"}',
    '{"timestamp":1,"status":404,"error":"Not Found","path":"/v1/responses"}',
    '{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null,"code":null}}',
    '{"error":{"code":"404","message":"Resource not found"}}',
    '{"error":"Unexpected endpoint or method. (POST /v1/responses)"}',
  ])('by the body %s', (body) => {
    const state = newProviderState()
    expect([learnMissing(state, 404, Buffer.from(body), 0), state.responses.lacksUntilMs]).toEqual([true, MEMORY_MS])
  })

  test.each([
    '{"error":{"message":"The model `m` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}',
    '{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","param":null,"code":404}',
    '{"error":{"message":"model \\"m\\" not found, try pulling it first","type":"not_found_error"}}',
    '{"error":{"message":"Item with id \'rs_1\' not found. Items are not persisted when `store` is set to false.","param":"input"}}',
    '{"error":{"message":"Previous response with id \'resp_1\' not found.","code":"previous_response_not_found"}}',
    '{"error":{"message":"Response with id \'resp_1\' not found."}}',
    '{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}',
  ])('not by the body %s, which a client causes', (body) => {
    const state = newProviderState()
    expect([learnMissing(state, 404, Buffer.from(body), 0), state.responses.lacksUntilMs]).toEqual([false, 0])
  })
})
