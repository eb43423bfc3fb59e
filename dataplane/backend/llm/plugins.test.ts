import { afterEach, describe, expect, test } from '@jest/globals'
import type { NamedLLMProvider, Plugin } from '#gen/config/types.ts'
import { chat, sdkRoutes, startTestBed, type Loose, type TestBed, type TestBedOptions } from './testing/test-bed.ts'

const open: TestBed[] = []
afterEach(async () => {
  for (const bed of open.splice(0)) await bed.close()
})

/** More than a slow machine needs to start a thread. */
const SLOW = 60_000

const plugin = (llm: string, more: Partial<Plugin> = {}): Plugin => ({
  name: 'p',
  source: { configMapRef: { code: `export default { setup: () => ({ llm: { ${llm} } }) }`, file: 'index.ts', owner: 'ns/policy' } },
  limits: { timeout: '50s' },
  ...more,
})

const aws = { key: 'ns/aws', type: 'opaque', data: { accessKey: 'AK', secretKey: 'SK', sessionToken: 'ST' } } as const
const providers = { A: { providerA: {} }, C: { providerC: { model: 'claude-sonnet-4-5' } }, F: { providerF: {} } } as const satisfies Record<
  string,
  Omit<NamedLLMProvider, 'name'>
>

async function start(plugins: readonly Plugin[], { ai, ...options }: TestBedOptions = {}): Promise<TestBed> {
  const isF = options.provider?.providerF !== undefined
  const bed = await startTestBed({
    onGateway: [{ traffic: { plugins: [...plugins] } }],
    policies: { auth: isF ? { cloudA: { secretRef: { secret: 'ns/aws' } } } : { key: 'k' } },
    secrets: [aws],
    ...options,
    ai: { routes: sdkRoutes, ...ai },
  })
  open.push(bed)
  return bed
}

const sentBy = (request: { readonly body: unknown } | undefined): string => JSON.stringify(request?.body)

const text = 'call 555-0100 now'
/** The request of each client format with a text, a system prompt and an image. */
const requests = {
  completions: {
    path: '/v1/chat/completions',
    body: {
      model: 'gpt-4o',
      max_tokens: 50,
      messages: [
        { role: 'system', content: 'be nice' },
        { role: 'user', content: text },
      ],
    },
  },
  messages: {
    path: '/v1/messages',
    body: { model: 'claude-sonnet-4-5', max_tokens: 50, system: 'be nice', messages: [{ role: 'user', content: [{ type: 'text', text }] }] },
  },
  responses: { path: '/v1/responses', body: { model: 'gpt-4o', instructions: 'be nice', input: text } },
} as const
type Client = keyof typeof requests

/** Texts that a client reads from a stream. */
const streamedText = (client: Client, sse: string): string =>
  sse
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Loose)
    .map((event): unknown => {
      if (client === 'completions') return event['choices']?.[0]?.['delta']?.['content'] ?? ''
      if (client === 'messages') return event['delta']?.['text'] ?? ''
      return (event['type'] as unknown) === 'response.output_text.delta' ? (event['delta'] ?? '') : ''
    })
    .reduce((all: string, piece) => all + (typeof piece === 'string' ? piece : ''), '')

/** Replaces numbers by tokens in requests, and tokens by their numbers in responses, whatever the pieces are. */
const tokens = `
  request(chat, caller) {
    for (const { parts } of chat.messages) for (const part of parts) part.text = part.text.replace(/\\d{3}-\\d{4}/g, (number) => {
      caller.state.number = number
      return '<number-of-the-caller>'
    })
  },
  event(delta, caller) {
    const all = delta.text.replaceAll('<number-of-the-caller>', caller.state.number)
    const from = delta.isLast ? -1 : all.lastIndexOf('<')
    return from === -1 ? { ...delta, text: all } : { ...delta, text: all.slice(0, from), rest: all.slice(from) }
  }`
const answers = `, response(answer, { state }) { for (const part of answer.parts) part.text = part.text.replaceAll('<number-of-the-caller>', state.number) }`

const matrix = (['completions', 'messages', 'responses'] as const).flatMap((client) =>
  (['A', 'C', 'F'] as const).filter((provider) => client !== 'responses' || provider !== 'C').map((provider) => [client, provider] as const),
)

describe('LLM hooks of a plugin', () => {
  test.each(matrix)(
    'change requests, responses and streams of %s clients of provider %s',
    async (client, provider) => {
      const bed = await start([plugin(tokens + answers)], { provider: providers[provider] })
      const { path, body } = requests[client]
      const answer = await bed.post({ path, body })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('echo: call 555-0100 now')])
      expect(answer.text).not.toContain('<number')
      const stream = await bed.post({ path, body: { ...body, stream: true }, headers: { 'x-mock': 'chunk=7' } })
      expect([stream.status, streamedText(client, stream.text)]).toEqual([200, 'echo: call 555-0100 now'])
      expect(stream.text).not.toContain('<number')
      for (const sent of bed.mock.requests.map(sentBy)) {
        expect(sent).toContain('call <number-of-the-caller> now')
        expect(sent).not.toContain('555')
      }
      expect(bed.mock.requests).toHaveLength(2)
    },
    SLOW,
  )

  test(
    'run event on each text of a response that is no stream, and response on a stream that is held back, if the other is missing',
    async () => {
      const upper = await start([plugin(`event: (delta) => ({ ...delta, text: delta.text.toUpperCase() + (delta.isLast ? '!' : '') })`)])
      expect((await upper.post({ body: chat('hi') })).json['choices']?.[0]?.['message']?.['content']).toBe('ECHO: HI!')
      const held = await start([plugin(`response(answer) { answer.parts[0].text = JSON.stringify(answer.parts) }`)])
      const stream = await held.post({ body: chat('hi', { stream: true }) })
      expect(streamedText('completions', stream.text)).toBe('[{"ref":0,"type":"text","text":"echo: hi"}]')
    },
    SLOW,
  )

  test(
    'see the same chat for all formats, and add, remove and move messages',
    async () => {
      const code = `request(chat) {
        const seen = chat.messages.map(({ role, parts }) => role + ':' + parts.map(({ text }) => text).join('|')).join(' ') + ' tools:' + chat.tools.map(({ name }) => name)
        chat.model = 'gpt-4o-mini'
        chat.tools = chat.tools.filter(({ name }) => name !== 'b')
        chat.messages = [...chat.messages.filter(({ role }) => role === 'system'), { role: 'system', parts: [{ type: 'text', text: 'seen ' + seen }] },
          ...chat.messages.filter(({ role }) => role === 'user').slice(-1)]
        chat.temperature = 0.5
        chat.maxTokens = 10
      }`
      const bed = await start([plugin(code)])
      const tool = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
      const turns = [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'three' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ]
      await bed.post({ body: { model: 'gpt-4o', messages: [{ role: 'system', content: 's' }, ...turns], tools: [tool('a'), tool('b')] } })
      const seen = 'seen system:s user:one assistant:two user:three tools:a,b'
      expect(bed.mock.requests[0]?.body).toMatchObject({
        model: 'gpt-4o-mini',
        temperature: 0.5,
        messages: [{ role: 'system', content: 's' }, { role: 'system', content: seen }, turns[2]],
        tools: [tool('a')],
      })
      await bed.post({ path: '/v1/responses', body: { model: 'gpt-4o', instructions: 's', input: 'three', max_output_tokens: 5 } })
      expect(bed.mock.requests[1]?.body).toMatchObject({
        model: 'gpt-4o-mini',
        max_output_tokens: 10,
        instructions: 's',
        input: [
          { type: 'message', role: 'system', content: 'seen system:s user:three tools:' },
          { role: 'user', content: 'three' },
        ],
      })
      const claude = await start([plugin(code)], { provider: providers.C })
      await claude.post({
        path: '/v1/messages',
        body: { model: 'x', max_tokens: 5, system: [{ type: 'text', text: 's' }], messages: [{ role: 'user', content: 'three' }] },
      })
      expect(claude.mock.requests[0]?.body).toMatchObject({
        max_tokens: 10,
        system: [
          { type: 'text', text: 's' },
          { type: 'text', text: 'seen system:s user:three tools:' },
        ],
        messages: [{ role: 'user', content: 'three' }],
      })
    },
    SLOW,
  )

  test(
    'run for embeddings and token counts too',
    async () => {
      const bed = await start(
        [plugin(`request(chat) { for (const { parts } of chat.messages) for (const part of parts) part.text = chat.type + part.text.length }`)],
        {
          provider: providers.A,
        },
      )
      await bed.post({ path: '/v1/embeddings', body: { model: 'e', input: ['aa', 'bbb'] } })
      expect(bed.mock.requests[0]?.body).toMatchObject({ input: ['embeddings2', 'embeddings3'] })
      const claude = await start([plugin(`request(chat) { chat.messages[0].parts[0].text = chat.type }`)], { provider: providers.C })
      await claude.post({ path: '/v1/messages/count_tokens', body: { model: 'm', messages: [{ role: 'user', content: 'secret' }] } })
      expect(claude.mock.requests[0]?.body).toMatchObject({ messages: [{ role: 'user', content: 'count' }] })
    },
    SLOW,
  )

  test(
    'run once for all attempts, in the order of the plugins for requests and in reverse order for responses',
    async () => {
      const mark = (name: string): Plugin =>
        plugin(`request(chat) { chat.messages[0].parts[0].text += ' ${name}' }, response(answer) { answer.parts[0].text += ' ${name}' }`, { name })
      const one = { providerA: {} }
      const bed = await start([mark('a'), mark('b')], {
        groups: [{ first: one }, { second: one }],
        route: { policies: { traffic: { retry: { attempts: 2, codes: [503] } } } } as never,
      })
      const answer = await bed.post({ body: chat('hi'), headers: {} })
      expect(answer.json['choices']?.[0]?.['message']?.['content']).toBe('echo: hi a b b a')
    },
    SLOW,
  )

  test(
    'see what guards let through, and guards see what hooks write',
    async () => {
      const guard = { regex: { matches: ['secret'] } }
      const bed = await start(
        [plugin(`request(chat) { chat.messages[0].parts[0].text += ' secret' }, response(answer) { answer.parts[0].text += ' secret' }`)],
        {
          ai: { promptGuard: { request: [guard], response: [guard] } },
        },
      )
      const answer = await bed.post({ body: chat('hi') })
      expect(sentBy(bed.mock.requests[0])).not.toContain('secret')
      expect(answer.json['choices']?.[0]?.['message']?.['content'] as unknown).toMatch(/^echo: hi \S+ secret$/)
    },
    SLOW,
  )

  test(
    'bypass the cache if they change responses',
    async () => {
      const ai = { cache: { tenant: '"t"' } }
      for (const [hook, count] of [
        ['response: (answer) => answer', 2],
        ['event: (delta) => delta', 2],
        ['request: (chat) => chat', 1],
      ] as const) {
        const bed = await start([plugin(hook)], { ai })
        await bed.post({ body: chat() })
        await bed.post({ body: chat() })
        expect([hook, bed.mock.requests.length]).toEqual([hook, count])
      }
    },
    SLOW,
  )

  test(
    'reject requests and replace responses by a Response',
    async () => {
      const rejecting = await start([plugin(`request: () => new Response('no chats today', { status: 418, headers: { 'x-why': 'holiday' } })`)])
      expect(await rejecting.post({ body: chat() })).toMatchObject({ status: 418, text: 'no chats today', headers: { 'x-why': 'holiday' } })
      expect(rejecting.mock.requests).toHaveLength(0)
      const replacing = await start([
        plugin(`response: () => { throw Object.assign(new Error(), { getResponse: () => new Response('gone', { status: 451 }) }) }`),
      ])
      expect(await replacing.post({ body: chat() })).toMatchObject({ status: 451, text: 'gone' })
      const stream = await replacing.post({ body: chat('hi', { stream: true }) })
      expect(stream.text).toContain('a plugin rejected the response')
      expect(stream.text).not.toContain('echo')
    },
    SLOW,
  )

  test(
    'count for ai.unguardedRoutes',
    async () => {
      const bed = await start([plugin('request: (chat) => chat')], { ai: { unguardedRoutes: 'Reject' } })
      const passed = await bed.post({ path: '/v1/other', body: {} })
      expect([passed.status, passed.text]).toEqual([403, expect.stringContaining('plugins do not cover requests of type Passthrough')])
    },
    SLOW,
  )
})

describe('an LLM hook that fails', () => {
  test.each<[string, string]>([
    ['throws', `request() { throw new Error('broken') }`],
    ['returns another type', `request: () => 'text'`],
    ['returns an unknown message', `request: (chat) => ({ ...chat, messages: [{ ref: 99, role: 'user', parts: [] }] })`],
    ['removes a part', `request: (chat) => ({ ...chat, messages: chat.messages.map((message) => ({ ...message, parts: [] })) })`],
    ['returns JSON that is too long', `request: (chat) => ({ ...chat, more: 'x'.repeat(5000000) })`],
    ['returns JSON with too many members', `request: (chat) => ({ ...chat, more: Array(200000).fill(0) })`],
    ['returns a cycle', `request: (chat) => { chat.self = chat }`],
    ['removes a part of a response', `response: (answer) => ({ ...answer, parts: [] })`],
    ['keeps more state than permitted', `response: (answer, caller) => { caller.state.all = 'x'.repeat(70000) }`],
  ])(
    'rejects the request if it %s; with FailOpen the request continues unchanged',
    async (_, code) => {
      const closed = await start([plugin(code)])
      expect(await closed.post({ body: chat('hi') })).toMatchObject({ status: 500, text: 'plugin failed' })
      const failOpen = await start([plugin(code, { failureMode: 'FailOpen' })])
      expect(await failOpen.post({ body: chat('hi') })).toMatchObject({ status: 200, json: { choices: [{ message: { content: 'echo: hi' } }] } })
    },
    SLOW,
  )

  test(
    'ends a stream with an error event, or passes the rest of it unchanged',
    async () => {
      const code = `event(delta, { state }) { state.count = (state.count ?? 0) + 1; if (state.count > 2) throw new Error('late'); return { ...delta, text: delta.text.slice(0, 2), rest: delta.text.slice(2) } }`
      const headers = { 'x-mock': 'interval=1' }
      const closed = await start([plugin(code)])
      const ended = await closed.post({ body: chat('one two three', { stream: true }), headers })
      expect(ended.text).toContain('"message":"plugin failed"')
      expect(ended.text).not.toContain('three')
      expect(closed.gateway.finished[0]?.error?.code).toBe('PLUGIN')
      const failOpen = await start([plugin(code, { failureMode: 'FailOpen' })])
      const passed = await failOpen.post({ body: chat('one two three', { stream: true }), headers })
      expect(streamedText('completions', passed.text)).toBe('echo: one two three')
    },
    SLOW,
  )

  test(
    'times out with 504, and a loop is ended',
    async () => {
      for (const code of ['request: () => new Promise(() => {})', 'request() { for (;;) {} }']) {
        const bed = await start([plugin(code, { limits: { timeout: '300ms' } })])
        expect(await bed.post({ body: chat() })).toMatchObject({ status: 504, text: 'plugin timeout' })
      }
    },
    SLOW,
  )

  test(
    'cannot pollute prototypes of the gateway',
    async () => {
      const code = `request: (chat) => JSON.parse('{"__proto__":{"polluted":1},"messages":' + JSON.stringify(chat.messages) + ',"constructor":{"prototype":{"polluted":1}}}'),
        response(answer, caller) { caller.state = JSON.parse('{"__proto__":{"polluted":1}}'); Object.prototype.polluted = 1; answer.parts[0].text = String(({}).polluted) }`
      const bed = await start([plugin(code)])
      expect((await bed.post({ body: chat() })).json['choices']?.[0]?.['message']?.['content']).toBe('1')
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
      expect(sentBy(bed.mock.requests[0])).not.toContain('polluted')
    },
    SLOW,
  )
})
