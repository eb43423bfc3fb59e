import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { staticTarget } from './testing/gateway.ts'
import { MODERN } from './testing/modern.ts'
import { begin, call, sendModern, TestBed, type RawAnswer, type ScriptedBody } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const PREFIX = 'io.modelcontextprotocol/'
type Era = 'old' | 'new'
const eras: readonly Era[] = ['old', 'new']

const message = (members: object): string => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...members })}\n\n`
const result = (id: unknown, text: string): string => message({ id, result: { resultType: 'complete', content: [{ type: 'text', text }] } })
const log = message({ method: 'notifications/message', params: { level: 'error', data: 'a log' } })

interface OddServer {
  readonly port: number
  /** Messages without a method. */
  readonly responses: unknown[]
}

/** A server of an era, whose event stream for tools/call is what `script` returns. It stays open if `isOpen`. */
async function serverOf(era: Era, script: (id: unknown) => string, { isOpen = true, isJson = false } = {}): Promise<OddServer> {
  const responses: unknown[] = []
  const { port } = await bed.scripted((request, response, body) => {
    const json = (status: number, members: object): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, ...members }))
    if (request.method !== 'POST') return void response.writeHead(405).end()
    if (body?.method === undefined) responses.push(body)
    if (body?.id === undefined || body.method === undefined) return void response.writeHead(202).end()
    const unsupported = { error: { code: -32022, message: 'no', data: { supported: [MODERN] } } }
    if (body.method === 'initialize')
      return era === 'new'
        ? json(400, unsupported)
        : json(200, { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } })
    if (body.method === 'server/discover')
      return era === 'new' ? json(200, { result: { supportedVersions: [MODERN], capabilities: { tools: {} } } }) : void response.writeHead(400).end('no')
    if (body.method !== 'tools/call') return json(200, { result: { resultType: 'complete', tools: [] } })
    if (isJson) return void response.writeHead(200, { 'content-type': 'application/json' }).end(script(body.id).slice(script('').indexOf('{')).trim())
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (isOpen) response.write(script(body.id))
    else response.end(script(body.id))
  })
  return { port, responses }
}

/** Calls a tool as a client of an era. */
async function callAs(era: Era, url: URL, name: string, capabilities = {}): Promise<RawAnswer> {
  if (era === 'old') return (await begin(url)).post(call('tools/call', { name }))
  return sendModern(url, 'tools/call', { name }, { meta: { [`${PREFIX}clientCapabilities`]: capabilities, [`${PREFIX}logLevel`]: 'debug' } })
}

const dataOf = ({ text }: RawAnswer): ScriptedBody[] => {
  const lines = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => String(data))
  return lines.map((line) => JSON.parse(line) as ScriptedBody)
}

const pairs = eras.flatMap((client) => eras.flatMap((server) => [1, 2].map((count): [client: Era, server: Era, count: number] => [client, server, count])))

describe.each(pairs)('a client of the %s era of a server of the %s era that is one of %d', (client, era, count) => {
  async function run(script: (id: unknown) => string, options = {}): Promise<{ answer: RawAnswer; server: OddServer }> {
    const [server, other] = [await serverOf(era, script, options), await serverOf(era, script)]
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', other.port)].slice(0, count) } })
    return { answer: await callAs(client, url, count === 1 ? 'x' : 'a_x'), server }
  }

  test.each<[what: string, rest: (id: unknown) => string]>([
    ['stays open', () => ''],
    ['has a second result', (id) => result(id, 'second')],
    ['has the result of another request', () => result('other', 'second')],
    ['has a notification', () => log],
    ['has a request', () => message({ id: 9, method: 'roots/list' })],
  ])('receives one result, and the end of the stream, if that of the server %s after the result', async (_, rest) => {
    const { answer, server } = await run((id) => result(id, 'first') + rest(id))
    expect(dataOf(answer)).toMatchObject([{ id: 1, result: { content: [{ text: 'first' }] } }])
    expect(server.responses).toEqual([])
  })

  test.each<[what: string, id: unknown]>([
    ['another id', 'other'],
    ['no id', undefined],
  ])('does not take a result with %s for its own', async (_, id) => {
    const { answer } = await run((own) => result(id, 'wrong') + result(own, 'right'))
    expect(dataOf(answer)).toMatchObject([{ id: 1, result: { content: [{ text: 'right' }] } }])
    const { answer: alone } = await run(() => result(id, 'wrong'), { isOpen: false })
    expect(dataOf(alone)).toMatchObject([{ id: 1, error: { code: -32603 } }])
  })

  test('a request of a server of the newer era is neither passed nor answered', async () => {
    const { answer, server } = await run((id) => message({ id: 9, method: 'tools/list' }) + result(id, 'done'))
    if (era === 'old') return
    expect(dataOf(answer).filter(({ method }) => method !== undefined)).toHaveLength(0)
    expect(server.responses).toEqual([])
  })
})

test.each([1, 2])('the response to another request in JSON is an error of the call of a client with a session, of %d servers without', async (count) => {
  const { port } = await serverOf('new', () => result('other', 'wrong'), { isJson: true })
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port), staticTarget('b', port)].slice(0, count) } })
  const { post } = await begin(url)
  expect((await post(call('tools/call', { name: count === 1 ? 'x' : 'a_x' }, 5))).json).toMatchObject({ id: 5, error: { code: -32603 } })
})

describe('input that a server of the newer era requires', () => {
  const all = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
  const { elicitation, sampling, roots } = all
  const form = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
  test.each<[request: unknown, capabilities: object, isPassed: boolean]>([
    [{ method: 'elicitation/create', params: form }, { elicitation }, true],
    [{ method: 'elicitation/create', params: form }, { sampling, roots }, false],
    [{ method: 'elicitation/create', params: { mode: 'url', message: 'm', url: 'https://a.example' } }, { elicitation: { form: {} } }, false],
    [{ method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }, { sampling }, true],
    [{ method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }, { elicitation, roots }, false],
    [{ method: 'roots/list' }, { roots }, true],
    [{ method: 'roots/list' }, { elicitation, sampling }, false],
    ...['tools/call', 'tools/list', 'resources/read', 'ping', 'initialize', 'notifications/cancelled', 'x'].map((method): [unknown, object, boolean] => [
      { method, params: { name: 'x' } },
      all,
      false,
    ]),
    [{ method: 7 }, all, false],
    [{ method: 'roots/list', params: 'x' }, all, false],
    [{}, all, false],
    ['roots/list', all, false],
    [null, all, false],
  ])('%j reaches a client with %j: %s', async (request, capabilities, isPassed) => {
    const inputRequests = { ok: { method: 'roots/list' }, it: request }
    const both = { ...capabilities, roots: (capabilities as { roots?: object }).roots ?? (isPassed ? {} : undefined) }
    const required = (id: unknown): string =>
      message({ id, result: { resultType: 'input_required', requestState: 's', inputRequests: isPassed ? { it: request } : inputRequests } })
    const server = await serverOf('new', required, { isOpen: false })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)], prefixMode: 'Always' } })
    const modern = await callAs('new', url, 'a_x', both)
    if (isPassed) expect(modern.json.result?.['inputRequests']).toEqual({ it: request })
    else expect(modern.json.error).toMatchObject({ code: -32603, message: expect.stringMatching(/^an upstream requires input/) as unknown })
  })

  test('that is not elicitation, sampling or roots is an error of the call of a client with a session', async () => {
    const required = (id: unknown): string =>
      message({ id, result: { resultType: 'input_required', inputRequests: { it: { method: 'tools/call', params: { name: 'x' } } } } })
    const server = await serverOf('new', required, { isOpen: false })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] } })
    const answer = await callAs('old', url, 'x')
    expect(dataOf(answer)).toMatchObject([
      { id: 1, error: { code: -32603, message: 'an upstream requires input that the client does not provide: tools/call' } },
    ])
  })
})

test.each<[level: string, isReceived: boolean]>([
  ['debug', true],
  ['error', false],
])('a client of the newer era with level %s receives the log messages of an HTTP+SSE server during its call: %s', async (level, isReceived) => {
  const { port } = await bed.upstream(
    (server) => {
      server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }))
      server.setRequestHandler(CallToolRequestSchema, async () => {
        await server.sendLoggingMessage({ level: 'info', data: 'working' })
        return { content: [] }
      })
    },
    { transport: 'sse' },
  )
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port, { protocol: 'SSE', path: '/sse' })] } })
  const { text } = await sendModern(url, 'tools/call', { name: 'x' }, { meta: { [`${PREFIX}logLevel`]: level } })
  expect(text.includes('working')).toBe(isReceived)
  expect(text).toContain('"content":[]')
})
