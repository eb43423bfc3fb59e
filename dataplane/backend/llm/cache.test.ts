import { afterEach, describe, expect, test } from '@jest/globals'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { allocateRing, SharedRing } from '../../runtime/shared-ring.ts'
import { decodeEntry, encodeEntry, MemoryEntries, SharedEntries, type CachedResponse } from './response/cache-store.ts'
import { chat, sdkRoutes, startTestBed, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

let nowMs = 1_000_000
const clocks = { monotonicMs: () => nowMs, epochMs: () => nowMs }
const cache = { tenant: 'request.headers["x-tenant"]' }
const acme = { 'x-tenant': 'acme' }

const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }
const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }
const round = [
  { role: 'user', content: 'weather?' },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
]

async function start(options: TestBedOptions = {}): Promise<TestBed> {
  const bed = await startTestBed({ clocks, ...options, ai: { cache, routes: sdkRoutes, ...options.ai } })
  open.push(bed)
  return bed
}

const calls = (bed: TestBed): number => bed.mock.requests.length
const exposition = ({ gateway }: TestBed): string => [...gateway.registry.expose('text')].join('')

describe('the LLM response cache', () => {
  test('returns the response to an equal request with its age and without charging tokens', async () => {
    const bed = await start()
    const first = await bed.post({ body: chat(), headers: acme })
    nowMs += 7000
    const { messages, model } = chat() as Record<string, unknown>
    const second = await bed.post({ body: JSON.stringify({ messages, model }, undefined, 2), headers: acme })
    expect(second).toMatchObject({ status: 200, text: first.text, headers: { age: '7', 'content-type': first.headers['content-type'] } })
    expect(first.headers).not.toHaveProperty('age')
    expect(calls(bed)).toBe(1)
    expect(logFieldsOf(bed.gateway.finished[0])['proxy.ai.cache']).toBe('miss')
    const fields = logFieldsOf(bed.gateway.finished[1])
    expect(fields['proxy.ai.cache']).toBe('hit')
    expect(fields['proxy.ai.cache.saved_cost']).toBe(logFieldsOf(bed.gateway.finished[0])['proxy.ai.usage.cost.total'])
    expect(fields).not.toHaveProperty(['gen_ai.usage.input_tokens'])
    expect(exposition(bed)).toMatch(/proxy_llm_cache_requests_total\{result="hit"\} 1/)
    expect(exposition(bed)).toMatch(/proxy_llm_cache_saved_cost_total \d/)
  })

  const forms = [
    ['/v1/chat/completions', {}],
    ['/v1/messages', { max_tokens: 4096 }],
    ['/v1/responses', { input: 'hello', messages: undefined }],
  ] as const
  const bedrock: TestBedOptions = { provider: { providerF: { model: 'anthropic.claude-sonnet-4-5' } }, policies: { auth: { key: 'k' } } }

  test.each(forms)('replays what it recorded from %s to clients of each format, as a stream and not', async (path, more) => {
    for (const isStored of [false, true]) {
      const bed = await start(bedrock)
      const first = await bed.post({ path, body: { ...chat('hello', { stream: isStored }), ...more, ...tokens(path) }, headers: acme })
      expect([first.status, calls(bed)]).toEqual([200, 1])
      nowMs += 2000
      for (const [other, its] of forms)
        for (const stream of [false, true]) {
          const replayed = await bed.post({ path: other, body: { ...chat('hello', { stream }), ...its, ...tokens(other) }, headers: acme })
          expect(replayed).toMatchObject({ status: 200, headers: { age: '2', 'content-type': stream ? 'text/event-stream' : 'application/json' } })
          expect(replayed.text).toMatch(/echo: hello|"echo: ".*"hello"/s)
          if (other === path && stream === isStored) expect(replayed.text).toBe(first.text)
        }
      expect(calls(bed)).toBe(1)
    }
  })

  /** The same limit in each format. */
  const tokens = (path: string) => ({
    [path === '/v1/messages' ? 'max_tokens' : path === '/v1/responses' ? 'max_output_tokens' : 'max_completion_tokens']: 4096,
  })

  test('shares responses of an OpenAI provider between chat completions and messages, not with responses', async () => {
    const bed = await start()
    await bed.post({ body: chat('hello', { max_tokens: 9 }), headers: acme })
    const headers = { ...acme, 'anthropic-version': '2023-06-01' }
    const replayed = await bed.post({ path: '/v1/messages', body: chat('hello', { max_tokens: 9, stream: true }), headers })
    expect([replayed.headers['age'], calls(bed)]).toEqual(['0', 1])
    for (const path of ['/v1/chat/completions', '/v1/messages'])
      await bed.post({ path, body: { ...chat('hello', { max_tokens: 9 }), model: 'llama' }, headers: acme })
    expect(calls(bed)).toBe(2)
    await bed.post({ path: '/v1/responses', body: { model: 'gpt-4o', input: 'hello' }, headers: acme })
    expect(calls(bed)).toBe(3)
  })

  test('keeps streams without usage apart', async () => {
    const bed = await start()
    await bed.post({ body: chat('hello', { stream: true }), headers: acme })
    await bed.post({ body: chat('hello', { stream: true, stream_options: { include_usage: true } }), headers: acme })
    expect(calls(bed)).toBe(1)
    await bed.post({ body: chat('hello', { stream: true, stream_options: { include_usage: false } }), headers: acme })
    expect(calls(bed)).toBe(2)
  })

  test.each([
    ['another tenant', { headers: { 'x-tenant': 'other' } }],
    ['another question', { body: chat('other'), headers: acme }],
    ['another anthropic-beta header', { headers: { ...acme, 'anthropic-beta': 'x' } }],
    ['cache-control no-cache', { headers: { ...acme, 'cache-control': 'no-cache' } }],
    ['cache-control no-store', { headers: { ...acme, 'cache-control': 'max-age=1, No-Store' } }],
    ['another query', { path: '/v1/chat/completions?x=1', headers: acme }],
  ])('sends a request with %s to the provider', async (_, post) => {
    const bed = await start({ ai: { routes: { '*': 'Completions' } } })
    await bed.post({ body: chat(), headers: acme })
    await bed.post({ body: chat(), ...post })
    expect(calls(bed)).toBe(2)
  })

  test.each([
    ['without a tenant', { body: chat() }],
    ['with tools', { body: chat('hello', { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }), headers: acme }],
    ['with a failure of the provider', { body: chat(), headers: { ...acme, 'x-mock': 'status=500' } }],
    ['with cache-control no-store', { body: chat(), headers: { ...acme, 'cache-control': 'no-store' } }],
    ['with more fields than a key covers', { body: chat('a', Object.fromEntries(Array.from({ length: 65 }, (__, index) => [`f${index}`, 1]))), headers: acme }],
  ])('stores no response to a request %s', async (_, post) => {
    const bed = await start()
    await bed.post(post)
    await bed.post(post)
    expect(calls(bed)).toBe(2)
  })

  test.each<[string, object, number]>([
    ['with tools of the client', { tools: [weather] }, 1],
    ['with results of tools', { tools: [weather], messages: round }, 1],
    ['with a tool of the provider', { tools: [weather, { type: 'web_search' }] }, 2],
    ['with a search of the provider', { web_search_options: {} }, 2],
  ])('with tools: Allow, requests %s make the same response %#', async (_, body, requests) => {
    const bed = await start({ ai: { cache: { ...cache, tools: 'Allow' } } })
    const post = { body: { ...chat(), ...body }, headers: acme }
    const first = await bed.post(post)
    expect([first.status, (await bed.post(post)).text, calls(bed)]).toEqual([200, first.text, requests])
  })

  test('stores no stream that was cut off', async () => {
    const bed = await start()
    const post = { body: chat('one two three', { stream: true }), headers: { ...acme, 'x-mock': 'cut=1' } }
    await bed.post(post)
    await bed.post(post)
    expect(calls(bed)).toBe(2)
  })

  test('a request that is retried counts once', async () => {
    const bed = await start({ route: { retry: { attempts: 1, codes: [500] } } })
    bed.mock.behave({ status: 500 })
    await bed.post({ body: chat(), headers: acme })
    expect([calls(bed), /proxy_llm_cache_requests_total\{result="miss"\} (\d+)/.exec(exposition(bed))?.[1]]).toEqual([2, '1'])
  })

  test('a response expires after ttl', async () => {
    const bed = await start({ ai: { cache: { ...cache, ttl: '10s' } } })
    await bed.post({ body: chat(), headers: acme })
    nowMs += 10_000
    await bed.post({ body: chat(), headers: acme })
    expect(calls(bed)).toBe(2)
  })

  test('equal requests at the same time make one request to the provider', async () => {
    const bed = await start()
    bed.mock.behave({ delay: 200 })
    const responses = await Promise.all(Array.from({ length: 5 }, () => bed.post({ body: chat(), headers: acme })))
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1)
    expect(calls(bed)).toBe(1)
  })

  test('a changed guard applies to requests that were cached before', async () => {
    const bed = await start()
    await bed.post({ body: chat(), headers: acme })
    const ai = { cache, routes: sdkRoutes, promptGuard: { request: [{ regex: { action: 'Reject' as const, matches: ['hello'] } }] } }
    bed.gateway.update({ policies: { ai } })
    expect((await bed.post({ body: chat(), headers: acme })).status).toBe(403)
    bed.gateway.update({ policies: { ai: { ...ai, promptGuard: { request: [{ regex: { action: 'Reject' as const, matches: ['other'] } }] } } } })
    await bed.post({ body: chat(), headers: acme })
    expect(calls(bed)).toBe(2)
  })

  test('authorization runs before a stored response is returned', async () => {
    const rule = { action: 'Allow' as const, policy: { matchExpressions: ['request.headers["x-user"] == "bob"'] } }
    const bed = await start({ onGateway: [{ traffic: { authorization: rule } }] })
    expect((await bed.post({ body: chat(), headers: { ...acme, 'x-user': 'bob' } })).status).toBe(200)
    expect((await bed.post({ body: chat(), headers: acme })).status).toBe(403)
    expect(calls(bed)).toBe(1)
  })

  test('an exhausted token limit rejects a request whose response is stored', async () => {
    const bed = await start({ onGateway: [{ traffic: { rateLimit: { local: [{ tokens: 2, unit: 'Hours' as const }] } } }] })
    expect((await bed.post({ body: chat(), headers: acme })).status).toBe(200)
    expect((await bed.post({ body: chat(), headers: acme })).status).toBe(429)
  })

  test('a stored response charges no tokens', async () => {
    const bed = await start({ onGateway: [{ traffic: { rateLimit: { local: [{ tokens: 1000, unit: 'Hours' as const }] } } }] })
    const remaining: (string | undefined)[] = []
    for (let count = 0; count < 3; count++) remaining.push((await bed.post({ body: chat(), headers: acme })).headers['x-ratelimit-remaining'])
    expect(remaining[1]).toMatch(/^\d+$/)
    expect(remaining[2]).toBe(remaining[1])
    expect(calls(bed)).toBe(1)
  })

  test('a response is stored as response guards masked it', async () => {
    const promptGuard = { response: [{ regex: { action: 'Mask' as const, matches: ['hello'] } }] }
    const bed = await start({ ai: { promptGuard } })
    const first = await bed.post({ body: chat(), headers: acme })
    const second = await bed.post({ body: chat(), headers: acme })
    expect(first.text).not.toContain('hello')
    expect(second).toMatchObject({ text: first.text, headers: { age: '0' } })
  })

  test('nothing is stored behind a transformation of the backend', async () => {
    const bed = await start({ policies: { transformation: { request: { set: [{ name: 'x-user', value: 'request.headers["x-user"]' }] } } } })
    await bed.post({ body: chat(), headers: acme })
    await bed.post({ body: chat(), headers: acme })
    expect(calls(bed)).toBe(2)
    expect(logFieldsOf(bed.gateway.finished[1])['proxy.ai.cache']).toBe('bypass')
  })

  test('a request with a nested duplicate key reaches the provider as it is stored', async () => {
    const bed = await start()
    await bed.post({ body: '{"model":"gpt-4o","messages":[{"role":"user","content":"first","content":"second"}]}', headers: acme })
    expect(bed.mock.requests[0]?.raw.toString()).not.toContain('first')
  })
})

const entry = (length: number): CachedResponse => ({
  form: { format: 'completions', isStreaming: false },
  body: Buffer.alloc(length, 'a'),
  storedAtMs: 0,
  expiresAtMs: 10,
  cost: undefined,
})

describe('the memory of the LLM response cache', () => {
  test('drops the least recently used response when it is full', () => {
    const store = new MemoryEntries(5000)
    store.store('a', entry(1000))
    store.store('b', entry(1000))
    store.find('a', 0)
    store.store('c', entry(1000))
    expect([store.find('a', 0), store.find('b', 0), store.find('c', 0)].map((found) => found !== undefined)).toEqual([true, false, true])
    expect(store.bytes).toBeLessThanOrEqual(5000)
    store.store('large', entry(6000))
    expect(store.find('large', 0)).toBeUndefined()
  })

  test('is released by a response that expired', () => {
    const store = new MemoryEntries()
    store.store('a', entry(1000))
    expect(store.find('a', 10)).toBeUndefined()
    expect(store.bytes).toBe(0)
  })

  test('has what another worker stored, and keeps what is used', () => {
    const size = 64 * 1024
    const memory = allocateRing(size)
    const [one, other] = [new SharedEntries(new SharedRing(memory, size)), new SharedEntries(new SharedRing(memory, size))]
    one.store('a', entry(1000))
    expect(other.find('a', 9)).toEqual(entry(1000))
    expect(other.find('a', 10)).toBeUndefined()
    for (let nth = 0; nth < 300; nth++) {
      other.find('a', 0)
      one.store(`${nth}`, entry(1000))
    }
    expect([other.find('a', 0), other.find('0', 0)]).toEqual([entry(1000), undefined])
  })

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a length beyond the end', Buffer.from([255, 255, 255, 255, 1])],
    ['no JSON', Buffer.from([1, 0, 0, 0, 0x7b])],
    ['another format', encodeEntry({ ...entry(1), form: { format: 'other' as 'messages', isStreaming: false } })],
    ['no times', encodeEntry({ ...entry(1), expiresAtMs: Number.NaN })],
  ])('reads %s as a miss', (_, bytes) => {
    expect(decodeEntry(bytes)).toBeUndefined()
  })
})
