import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, CreateMessageResultSchema, ElicitResultSchema, ListRootsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { staticTarget, type GatewayOptions } from './testing/gateway.ts'
import { modernCall, modernHeaders } from './testing/modern.ts'
import type { UpstreamOptions } from './testing/server.ts'
import { sendModern, TestBed, until, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const form = { message: 'Who?', requestedSchema: { type: 'object' as const, properties: { who: { type: 'string' as const } } } }
const accepted = (who: string) => ({ action: 'accept', content: { who } })
const textOf = ({ json }: RawAnswer) => (json.result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const errorOf = ({ json }: RawAnswer) => [json.error?.code, json.error?.message]

type Handler = Parameters<Server['setRequestHandler']>[1]
type Extra = Parameters<Handler>[1]
type Ask = (extra: Extra, server: Server, args: Record<string, unknown>) => Promise<unknown>

/** A server whose tools return what the client responds. */
const asking =
  (asked: Ask) =>
  (server: Server): void =>
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      const result = await asked(extra, server, params.arguments ?? {}).catch((error: Error) => error.message)
      return { content: [{ type: 'text', text: typeof result === 'string' ? result : JSON.stringify(result) }] }
    })

const elicits: Ask = (extra) => extra.sendRequest({ method: 'elicitation/create', params: form }, ElicitResultSchema)
const elicitsOnItsOwn: Ask = (_, server) => server.elicitInput(form)

async function withServer(asked: Ask, options: UpstreamOptions = {}, more: Partial<GatewayOptions> = {}, target = {}) {
  const one = await bed.upstream(asking(asked), options)
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port, target)] }, ...more })
  return { one, gateway, url: gateway.url }
}

interface CallOptions {
  readonly capabilities?: object
  readonly name?: string
  readonly headers?: Record<string, string>
  readonly meta?: Record<string, unknown>
}

/** Calls the tool. `retry` adds the members of a retry. */
const callTool = (url: URL, retry: Record<string, unknown> = {}, { capabilities = ALL, name = 'own', headers = {}, meta = {} }: CallOptions = {}) =>
  sendModern(url, 'tools/call', { name, ...retry }, { meta: { [CAPABILITIES]: capabilities, ...meta }, headers })

function required(answer: RawAnswer): { requests: Record<string, { method: string; params?: object }>; requestState: string } {
  expect(answer.json).toMatchObject({ result: { resultType: 'input_required' } })
  const { inputRequests, requestState } = answer.json.result ?? {}
  return { requests: inputRequests as never, requestState: String(requestState) }
}

describe('a request of a server with sessions to a client without (mcp.md §13.2)', () => {
  test('becomes a result that requires input, and the retry has the result of the tool', async () => {
    const { url, one } = await withServer(elicits)
    const { requests, requestState } = required(await callTool(url))
    expect(requests).toEqual({ input_1: { method: 'elicitation/create', params: form } })
    const answer = await callTool(url, { requestState, inputResponses: { input_1: accepted('me'), unknown: {} } })
    expect([textOf(answer), answer.json.result?.['resultType']]).toEqual([JSON.stringify(accepted('me')), 'complete'])
    expect(one.log().filter((method) => method === 'tools/call')).toHaveLength(1)
    expect(one.received.find(({ body }) => body?.method === 'initialize')?.body?.params?.['capabilities']).toEqual(ALL)
  })

  test.each<[string, Ask, UpstreamOptions]>([
    ['the stream of the call', elicits, {}],
    ['a stream of its own', elicitsOnItsOwn, {}],
    ['a stream of its own while its response is JSON', elicitsOnItsOwn, { isJson: true }],
    ['the stream of the older transport', elicitsOnItsOwn, { transport: 'sse' }],
  ])('is passed to the client from %s', async (_, asked, options) => {
    const target = options.transport === 'sse' ? { protocol: 'SSE', path: '/sse' } : {}
    const { url } = await withServer(asked, options, {}, target)
    const { requests, requestState } = required(await callTool(url))
    expect(requests).toEqual({ input_1: { method: 'elicitation/create', params: expect.objectContaining(form) } })
    expect(textOf(await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } }))).toBe(JSON.stringify(accepted('me')))
  })

  test.each(['authorization', 'cookie', 'x-api-key', 'access-token'])(
    'waits for the %s of the first request, if the gateway does not authenticate clients',
    async (name) => {
      const { url } = await withServer(elicits)
      const own = { headers: { [name]: 'Bearer alice' } }
      const { requestState } = required(await callTool(url, {}, own))
      const retry = { requestState, inputResponses: { input_1: accepted('me') } }
      for (const headers of [{ [name]: 'Bearer mallory' }, {}])
        expect(errorOf(await callTool(url, retry, { headers }))).toEqual([-32602, 'params.requestState is not that of a call of this client with this name'])
      expect(textOf(await callTool(url, retry, own))).toBe(JSON.stringify(accepted('me')))
    },
  )

  test('may follow another one, and several at once are one round', async () => {
    const { url } = await withServer(async (extra) => {
      const first = await Promise.all([
        extra.sendRequest({ method: 'roots/list' }, ListRootsResultSchema),
        extra.sendRequest(
          { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 5 } },
          CreateMessageResultSchema,
        ),
      ])
      return [...first, await elicits(extra, undefined as never, {})]
    })
    const sampled = { role: 'assistant', content: { type: 'text', text: 'y' }, model: 'm' }
    const first = required(await callTool(url))
    const inputs: Record<string, object> = { 'roots/list': { roots: [] }, 'sampling/createMessage': sampled, 'elicitation/create': accepted('z') }
    let { requests, requestState } = first
    const methods: string[] = []
    let answer: RawAnswer | undefined
    // The requests are in two events, which the network may separate.
    for (let round = 0; round < 3 && answer?.json.result?.['resultType'] !== 'complete'; round++) {
      methods.push(...Object.values(requests).map(({ method }) => method))
      const inputResponses = Object.fromEntries(Object.entries(requests).map(([key, { method }]) => [key, inputs[method]]))
      answer = await callTool(url, { requestState, inputResponses })
      if (answer.json.result?.['resultType'] === 'input_required') ({ requests, requestState } = required(answer))
    }
    expect(methods).toEqual(['roots/list', 'sampling/createMessage', 'elicitation/create'])
    expect(JSON.parse(textOf(answer as RawAnswer) ?? '')).toEqual([{ roots: [] }, sampled, accepted('z')])
  })

  test('is required again if the retry lacks its response', async () => {
    const { url } = await withServer(elicits)
    const first = required(await callTool(url))
    const second = required(await callTool(url, { requestState: first.requestState }))
    expect(Object.values(second.requests)).toEqual(Object.values(first.requests))
    const inputResponses = Object.fromEntries(Object.keys(second.requests).map((key) => [key, { action: 'decline' }]))
    expect(textOf(await callTool(url, { requestState: second.requestState, inputResponses }))).toBe('{"action":"decline"}')
  })

  test.each<[string, object]>([
    ['no capabilities', {}],
    ['other capabilities', { sampling: {} }],
    ['elicitation by URL only', { elicitation: { url: {} } }],
  ])('is rejected if the client has %s', async (_, capabilities) => {
    const { url } = await withServer((extra) => extra.sendRequest({ method: 'elicitation/create', params: form }, ElicitResultSchema))
    const answer = await callTool(url, {}, { capabilities })
    expect([answer.json.result?.['resultType'], textOf(answer)]).toEqual(['complete', expect.stringMatching(/-32601|not support/)])
  })

  test('by URL loses the id that the revision does not have', async () => {
    const { url } = await withServer((extra) =>
      extra.sendRequest(
        { method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example/', message: 'Log in', elicitationId: 'e1' } },
        ElicitResultSchema,
      ),
    )
    const { requests } = required(await callTool(url))
    expect(requests['input_1']?.params).toEqual({ mode: 'url', url: 'https://a.example/', message: 'Log in' })
  })

  test('is rejected with sessionRouting Stateless', async () => {
    const { url, one } = await withServer(elicits, {}, {})
    const stateless = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)], sessionRouting: 'Stateless' } })
    expect(textOf(await callTool(stateless.url))).toMatch(/-32601|not support/)
    expect(errorOf(await callTool(stateless.url, { requestState: 'x' }))[0]).toBe(-32602)
    expect(url).toBeDefined()
  })

  test('reaches the client of a federation, beside a server of the revision', async () => {
    const one = await bed.upstream(asking(elicits))
    const two = await bed.modern('two')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
    const old = required(await callTool(url, {}, { name: 'a_own' }))
    const answer = await callTool(url, { requestState: old.requestState, inputResponses: { input_1: accepted('me') } }, { name: 'a_own' })
    expect(textOf(answer)).toBe(JSON.stringify(accepted('me')))
    const modern = required(await callTool(url, {}, { name: 'b_ask' }))
    expect(modern.requestState).toBe('asked')
    const other = await callTool(url, { requestState: 'asked', inputResponses: { who: accepted('you') } }, { name: 'b_ask' })
    expect(textOf(other)).toBe(JSON.stringify({ who: accepted('you') }))
  })

  test('that comes between calls reaches the client with the next one', async () => {
    const { url, one } = await withServer(() => Promise.resolve('done'))
    expect(textOf(await callTool(url))).toBe('done')
    const [server] = one.servers.values()
    const listed = server?.listRoots()
    await until('the request', () => one.received.some(({ method }) => method === 'GET'))
    const { requests, requestState } = required(await callTool(url))
    expect(Object.values(requests)).toEqual([{ method: 'roots/list' }])
    expect(textOf(await callTool(url, { requestState, inputResponses: { input_1: { roots: [] } } }))).toBe('done')
    expect(await listed).toEqual({ roots: [] })
  })

  test('passes guards of tools, which check the result of the retry', async () => {
    const toolGuards = { output: [{ regex: { builtins: ['Email' as const] } }] }
    const { url } = await withServer(elicits, {}, { policies: { mcp: { toolGuards } } })
    const { requestState } = required(await callTool(url))
    const answer = await callTool(url, { requestState, inputResponses: { input_1: accepted('ada@example.org') } })
    expect(textOf(answer)).toBe(JSON.stringify(accepted('<EMAIL_ADDRESS>')))
  })

  test('does not disturb progress, which has the token of the retry', async () => {
    const { url } = await withServer(async (extra, server, args) => {
      const result = await elicits(extra, server, args)
      const { _meta: meta } = extra
      const progressToken = meta?.progressToken
      if (progressToken !== undefined) await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
      return result
    })
    const { requestState } = required(await callTool(url, {}, { meta: { progressToken: 'first' } }))
    const answer = await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } }, { meta: { progressToken: 'second' } })
    expect(answer.text).toContain('"progressToken":"second"')
  })
})

describe('a call that waits for input', () => {
  test('has its response for the retry also if the server does not wait', async () => {
    let finish: (text: string) => void = () => undefined
    const { url } = await withServer(async (extra) => {
      elicits(extra, undefined as never, {}).catch(() => undefined)
      return new Promise((resolve) => (finish = resolve))
    })
    const { requestState } = required(await callTool(url))
    finish('too late')
    expect(textOf(await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } }))).toBe('too late')
  })

  test('ends when the client of the retry disconnects', async () => {
    const { url, one } = await withServer(async (extra, server, args) => {
      await elicits(extra, server, args)
      await extra.sendNotification({ method: 'notifications/own' })
      return new Promise((resolve) => extra.signal.addEventListener('abort', resolve))
    })
    const { requestState } = required(await callTool(url))
    const params = { name: 'own', requestState, inputResponses: { input_1: accepted('me') } }
    const controller = new AbortController()
    const body = JSON.stringify(modernCall('tools/call', params, { meta: { [CAPABILITIES]: ALL } }))
    const response = await fetch(url, { method: 'POST', headers: modernHeaders('tools/call', params), body, signal: controller.signal })
    await response.body?.getReader().read()
    controller.abort()
    await until('the cancellation', () => one.log().includes('notifications/cancelled'))
    expect(one.log().filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test('is cancelled at the server when no retry comes in time', async () => {
    const { url, one } = await withServer(elicits, {}, { waitingLimits: { count: 5, perClient: 5, waitMs: 1 } })
    const { requestState } = required(await callTool(url))
    await until('the cancellation', () => one.log().includes('notifications/cancelled'))
    expect(errorOf(await callTool(url, { requestState, inputResponses: {} }))).toEqual([-32603, expect.stringMatching(/has ended/)])
  })

  test('is rejected if the client has too many of them', async () => {
    const { url } = await withServer(elicits, {}, { waitingLimits: { count: 5, perClient: 1, waitMs: 600_000 } })
    required(await callTool(url))
    expect(errorOf(await callTool(url))).toEqual([-32603, 'too many calls wait for input of clients: try again later'])
  })

  test('that lost its server reports that to the retry', async () => {
    const { url, one } = await withServer(elicits)
    const { requestState } = required(await callTool(url))
    await one.close()
    const { json, status } = await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } })
    expect([status === 200 || status >= 500, json.error?.code]).toEqual([true, -32603])
  })
})

describe('a requestState', () => {
  test.each<[string, (state: string) => unknown]>([
    ['of nobody', () => 'x'],
    ['that was changed', (state) => `${state.slice(0, 20)}${state[20] === 'A' ? 'B' : 'A'}${state.slice(21)}`],
    ['in another spelling', (state) => state.replace(/=*$/, '')],
    ['of the form without key', () => Buffer.from('00000000-0000-4000-8000-000000000000').toString('base64url')],
    ['that is long', () => 'A'.repeat(100_000)],
    ['that is no string', () => 5],
  ])('%s is rejected, and the call waits on', async (_, change) => {
    const { url } = await withServer(elicits)
    const { requestState } = required(await callTool(url))
    const changed = change(requestState)
    // Base64 of 76 bytes ends with padding; without any, the other spelling is longer.
    const sent = changed === requestState ? `${requestState}=` : changed
    expect(errorOf(await callTool(url, { requestState: sent, inputResponses: {} }))[0]).toBe(-32602)
    expect(textOf(await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } }))).toBe(JSON.stringify(accepted('me')))
  })

  test.each([[[]], ['x'], [{ input_1: 'accept' }], [{ input_1: null }]])(
    'with inputResponses %j is rejected, and the call waits on',
    async (inputResponses) => {
      const { url } = await withServer(elicits)
      const { requestState } = required(await callTool(url))
      expect(errorOf(await callTool(url, { requestState, inputResponses }))[0]).toBe(-32602)
      expect(textOf(await callTool(url, { requestState, inputResponses: { input_1: accepted('me') } }))).toBe(JSON.stringify(accepted('me')))
    },
  )

  test('is accepted once', async () => {
    const { url } = await withServer(elicits)
    const { requestState } = required(await callTool(url))
    const retry = { requestState, inputResponses: { input_1: accepted('me') } }
    expect(textOf(await callTool(url, retry))).toBe(JSON.stringify(accepted('me')))
    expect(errorOf(await callTool(url, retry))).toEqual([-32603, expect.stringMatching(/has ended/)])
  })

  test('of another tool, or of a replica that has no port for others, is not accepted', async () => {
    const { url, one } = await withServer(elicits)
    const replica = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { requestState } = required(await callTool(url))
    const retry = { requestState, inputResponses: { input_1: accepted('me') } }
    expect(errorOf(await callTool(url, retry, { name: 'other' }))[0]).toBe(-32602)
    expect(errorOf(await callTool(replica.url, retry))).toEqual([-32603, expect.stringMatching(/has ended, or/)])
    expect(textOf(await callTool(url, retry))).toBe(JSON.stringify(accepted('me')))
  })

  test('of another user is rejected, and accepted with another token of the user', async () => {
    const key = makeSigningKey('k')
    const issuer = 'https://idp.example'
    const providers = [{ issuer, jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }]
    const attached: GatewayOptions['attached'] = [
      { target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { jwtAuthentication: { mode: 'Strict', providers } } },
    ]
    const { url } = await withServer(elicits, {}, { attached })
    const as = (sub: string, jti: string) => ({
      headers: { authorization: `Bearer ${makeToken(key, { iss: issuer, sub, jti, exp: Math.floor(Date.now() / 1000) + 600 })}` },
    })
    const { requestState } = required(await callTool(url, {}, as('ann', '1')))
    const retry = { requestState, inputResponses: { input_1: accepted('me') } }
    expect(errorOf(await callTool(url, retry, as('bob', '1')))[0]).toBe(-32602)
    expect(textOf(await callTool(url, retry, as('ann', '2')))).toBe(JSON.stringify(accepted('me')))
  })
})

test('the official client of the revision responds to an elicitation of a server with sessions', async () => {
  const { url } = await withServer(elicitsOnItsOwn)
  const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: {} } })
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { who: 'sdk' } }))
  await client.connect(new StreamableHTTPClientTransport(url))
  bed.onClose(() => client.close())
  expect((await client.callTool({ name: 'own' })).content).toEqual([{ type: 'text', text: JSON.stringify(accepted('sdk')) }])
})
