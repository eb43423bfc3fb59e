import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { staticTarget } from './testing/gateway.ts'
import { MODERN, modernCall, modernHeaders } from './testing/modern.ts'
import { holdingTargets, type ModernServerOptions } from './testing/modern-server.ts'
import { sendAndLeave, sendModern, TestBed, until, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const SERVER = 'io.modelcontextprotocol/serverInfo'
const gist = ({ status, json, text }: RawAnswer): unknown[] => [status, json.error?.code ?? text]
const text = (value: string) => [{ type: 'text', text: value }]
const own = { resultType: 'complete', _meta: { [SERVER]: { name: 'new', version: '2' } } }
const federated = { resultType: 'complete', _meta: { [SERVER]: { name: 'proxy', version: '1.2.3' } } }

async function withNew(options: ModernServerOptions = {}, more: object = {}) {
  const server = await bed.modern('new', options)
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port)] }, ...more })
  return { server, gateway, url: gateway.url }
}

/** A federation of a server of the revision and one with sessions. */
async function withBoth(options: ModernServerOptions = {}, more: object = {}) {
  const [server, old] = [await bed.modern('new', options), await bed.upstream('old')]
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', old.port)], ...more } })
  return { server, old, url }
}

const rules = { policies: { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "echo"'] } } } } }

describe('a client and a server without sessions (mcp.md §13.3)', () => {
  test('a request passes with _meta and headers, and its response unchanged', async () => {
    const { url, server } = await withNew()
    const params = { name: 'echo', arguments: { text: 'x' } }
    const options = { id: 'mine', meta: { progressToken: 'p', own: 1 }, headers: { 'mcp-param-region': 'eu', 'mcp-session-id': 'x' } }
    const answer = await sendModern(url, 'tools/call', params, options)
    const data = [...answer.text.matchAll(/^data: (.*)$/gm)].map(([, line]) => JSON.parse(line ?? '') as object)
    expect(data).toEqual([
      { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } },
      { jsonrpc: '2.0', id: 'mine', result: { ...own, content: text('new: x') } },
    ])
    const { headers, body } = server.received[1] ?? {}
    expect(body).toEqual(modernCall('tools/call', params, options))
    expect([
      headers?.['mcp-protocol-version'],
      headers?.['mcp-method'],
      headers?.['mcp-name'],
      headers?.['mcp-param-region'],
      headers?.['mcp-session-id'],
    ]).toEqual([MODERN, 'tools/call', 'echo', 'eu', undefined])
  })

  test('the revision of a server is discovered once', async () => {
    const { url, server } = await withNew()
    for (const method of ['tools/list', 'prompts/list', 'resources/list']) await sendModern(url, method)
    expect(server.log()).toEqual(['server/discover', 'tools/list', 'prompts/list', 'resources/list'])
  })

  test('server/discover and lists keep what the server says about caching', async () => {
    const { url } = await withNew({ ttlMs: 5000, cacheScope: 'public' })
    const { result } = (await sendModern(url, 'server/discover')).json
    expect(result).toMatchObject({
      supportedVersions: [MODERN, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
      capabilities: { tools: { listChanged: true } },
      instructions: 'Use new.',
      ttlMs: 5000,
      cacheScope: 'public',
    })
    expect((await sendModern(url, 'tools/list')).json.result).toMatchObject({ ttlMs: 5000, cacheScope: 'public' })
  })

  test('an input_required result and its retry pass through', async () => {
    const { url } = await withNew()
    const asked = (await sendModern(url, 'tools/call', { name: 'ask' })).json.result
    expect(asked).toMatchObject({ resultType: 'input_required', requestState: 'asked', inputRequests: { who: { method: 'elicitation/create' } } })
    const inputResponses = { who: { action: 'accept', content: { who: 'me' } } }
    const { json } = await sendModern(url, 'tools/call', { name: 'ask', inputResponses, requestState: asked?.['requestState'] })
    expect(json.result?.['content']).toEqual(text(JSON.stringify(inputResponses)))
  })

  test.each(holdingTargets)('a call%s ends at the server when the client disconnects', async (_, others, options) => {
    const { server, gateway, url, tool } = await bed.federation(options, others)
    const params = { name: tool }
    const leave = sendAndLeave(url, modernHeaders('tools/call', params), modernCall('tools/call', params))
    await until('the call', () => server.open.length === 1)
    leave()
    await until('the end of the call', () => server.open.length === 0)
    await until('the end of the request', () => gateway.server.finished.some(({ cutBy }) => cutBy === 'client'))
    expect(server.log().filter((method) => method === 'tools/call')).toHaveLength(1)
  })

  test.each<[string, number, number]>([
    ['own/method', 404, -32601],
    ['tasks/get', 404, -32601],
    ['ping', 404, -32601],
  ])('the status of an error for %s is that of the server', async (method, status, code) => {
    expect(gist(await sendModern((await withNew()).url, method))).toEqual([status, code])
  })

  test.each([401, 403, 429])('status %i of discovery reaches the client, and the revision is discovered again', async (status) => {
    const server = await bed.modern('new')
    let isLocked = true
    const lock = await bed.relay(
      () => (isLocked ? undefined : server.port),
      (response) => void response.writeHead(status, { 'www-authenticate': 'Bearer x' }).end('own text'),
    )
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', lock.port)] } })
    const denied = await sendModern(url, 'tools/list')
    expect([denied.status, denied.headers['www-authenticate'], denied.text]).toEqual([status, 'Bearer x', 'own text'])
    isLocked = false
    expect((await sendModern(url, 'tools/list')).json.result?.['tools']).toHaveLength(2)
  })

  test('rules apply: lists are private, and denied tools are unknown', async () => {
    const { url, server } = await withNew({ ttlMs: 5000, cacheScope: 'public' }, rules)
    expect((await sendModern(url, 'tools/list')).json.result).toEqual({
      ...own,
      tools: [{ name: 'echo', inputSchema: { type: 'object' } }],
      ttlMs: 5000,
      cacheScope: 'private',
    })
    expect(gist(await sendModern(url, 'tools/call', { name: 'ask' }))).toEqual([200, -32602])
    expect((await sendModern(url, 'tools/call', { name: 'echo', arguments: { text: 'y' } }, { id: 9 })).json).toEqual({
      jsonrpc: '2.0',
      id: 9,
      result: { ...own, content: text('new: y') },
    })
    expect(server.log()).not.toContain('initialize')
  })

  test('a server that is replaced by one of another revision is used with that one', async () => {
    const [server, old] = [await bed.modern('new'), await bed.upstream('old')]
    let port = server.port
    const relay = await bed.relay(() => port)
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', relay.port)] } })
    const echo = async () => (await sendModern(url, 'tools/call', { name: 'echo' })).json.result?.['content']
    expect(await echo()).toEqual(text('new: '))
    port = old.port
    expect([await echo(), await echo()]).toEqual([text('old: '), text('old: ')])
    port = server.port
    expect([await echo(), await echo()]).toEqual([text('new: '), text('new: ')])
    expect(server.log()).toEqual(['server/discover', 'tools/call', 'tools/call', 'server/discover', 'tools/call', 'tools/call'])
  })
})

describe('a federation of servers with and without sessions (mcp.md §13.3)', () => {
  test('lists are the union, and the caching is that of the strictest', async () => {
    const { url } = await withBoth({ ttlMs: 5000, cacheScope: 'public' })
    const { result } = (await sendModern(url, 'tools/list')).json
    const names = ['a_echo', 'a_ask', 'b_echo', 'b_with_under_score', 'b_link']
    expect(result).toEqual({ ...federated, tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })), ttlMs: 0, cacheScope: 'private' })
  })

  test.each<[string, ModernServerOptions, ModernServerOptions, object]>([
    ['the least time', { ttlMs: 5000, cacheScope: 'public' }, { ttlMs: 3000, cacheScope: 'public' }, { ttlMs: 3000, cacheScope: 'public' }],
    ['private if one is', { ttlMs: 5000, cacheScope: 'private' }, { ttlMs: 3000, cacheScope: 'public' }, { ttlMs: 3000, cacheScope: 'private' }],
  ])('a merged list may be cached for %s', async (_, a, b, expected) => {
    const [one, two] = [await bed.modern('one', a), await bed.modern('two', b)]
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
    for (const method of ['tools/list', 'server/discover']) expect((await sendModern(url, method)).json.result).toMatchObject(expected)
  })

  test.each<[string, Record<string, unknown>, object]>([
    ['tools/call', { name: 'a_echo', arguments: { text: 'x' } }, { content: text('new: x') }],
    ['tools/call', { name: 'b_echo', arguments: { text: 'x' } }, { content: text('old: x') }],
    ['prompts/get', { name: 'a_greet' }, { messages: [{ role: 'user', content: { type: 'text', text: 'new greets' } }] }],
    ['resources/read', { uri: 'a+memo:x' }, { contents: [{ uri: 'a+memo:x', text: 'new memo:x' }], ttlMs: 5000, cacheScope: 'public' }],
    ['resources/read', { uri: 'b+memo:x' }, { contents: [{ uri: 'b+memo:x', text: 'old memo:x' }], ttlMs: 0, cacheScope: 'private' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'a_greet' }, argument: { name: 'who', value: '' } }, { completion: { values: ['new'] } }],
  ])('%s of %j reaches its server', async (method, params, expected) => {
    const { url } = await withBoth({ ttlMs: 5000, cacheScope: 'public' })
    const { result } = (await sendModern(url, method, params)).json
    expect(result).toMatchObject({ resultType: 'complete', ...expected })
  })

  test('an input_required result and its retry pass through', async () => {
    const { url } = await withBoth()
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
    expect((await sendModern(url, 'tools/call', { name: 'a_ask' }, { meta })).json.result).toMatchObject({
      resultType: 'input_required',
      requestState: 'asked',
    })
    expect((await sendModern(url, 'tools/call', { name: 'a_ask', requestState: 'asked', inputResponses: { who: {} } })).json.result?.['content']).toEqual(
      text('{"who":{}}'),
    )
  })

  test('a server without prompts does not fail the list, as its error is that of the revision', async () => {
    const bare = await bed.modern('bare', {
      handle: ({ method }) => (method === 'server/discover' ? { supportedVersions: [MODERN], capabilities: {} } : undefined),
    })
    const none = await bed.modern('none')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', bare.port), staticTarget('b', none.port)] } })
    expect((await sendModern(url, 'prompts/list')).json.result?.['prompts']).toEqual([{ name: 'a_greet' }, { name: 'b_greet' }])
    expect(gist(await sendModern(url, 'tasks/get', { taskId: '1' }))).toEqual([200, -32602])
  })

  test('without prefixes, a name is looked up in lists of both', async () => {
    const { url } = await withBoth({}, { prefixMode: 'Never' })
    expect((await sendModern(url, 'tools/call', { name: 'ask', requestState: 'asked' })).status).toBe(200)
    expect((await sendModern(url, 'tools/call', { name: 'with_under_score' })).json.result?.['content']).toEqual(text('old with_under_score'))
    expect((await sendModern(url, 'tools/call', { name: 'echo' })).json.error?.message).toBe('tool echo is served by multiple targets')
  })

  test('the official client of the revision uses both', async () => {
    const { url } = await withBoth()
    const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    await client.connect(new StreamableHTTPClientTransport(url))
    bed.onClose(() => client.close())
    expect((await client.listTools()).tools).toHaveLength(5)
    expect((await client.callTool({ name: 'a_echo', arguments: { text: 'x' } })).content).toEqual(text('new: x'))
    expect((await client.callTool({ name: 'b_echo', arguments: { text: 'x' } })).content).toEqual(text('old: x'))
  })
})

describe('the official server of the revision', () => {
  test.each([true, false])('is used by the official client, alone and in a federation (only this revision: %s)', async (isStrict) => {
    const [server, old] = [await bed.sdk('sdk', { isStrict }), await bed.upstream('old')]
    for (const targets of [[staticTarget('a', server.port)], [staticTarget('a', server.port), staticTarget('b', old.port)]]) {
      const { url } = await bed.gateway({ mcp: { targets } })
      const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' } })
      await client.connect(new StreamableHTTPClientTransport(url))
      bed.onClose(() => client.close())
      const name = targets.length === 1 ? 'hello' : 'a_hello'
      expect(client.getNegotiatedProtocolVersion()).toBe(MODERN)
      expect((await client.listTools()).tools[0]).toMatchObject({ name, description: 'Greets.' })
      expect((await client.callTool({ name })).content).toEqual(text('sdk says hello'))
      await expect(client.callTool({ name: `${name}_gone` })).rejects.toMatchObject({ code: -32602 })
    }
    expect(server.log).not.toContain('initialize')
  })
})
