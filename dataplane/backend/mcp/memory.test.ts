import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { staticTarget, type GatewayOptions } from './testing/gateway.ts'
import { notify, type ModernServerOptions } from './testing/modern-server.ts'
import { modernCall, modernHeaders } from './testing/modern.ts'
import { begin, call, sendModern, TestBed, until } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const located = { name: 'located', inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } }
const text = (value: string) => [{ type: 'text', text: value }]

async function withServer(options: ModernServerOptions, more: Partial<GatewayOptions> = {}) {
  const one = await bed.modern('one', options)
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, ...more })
  return { one, url }
}

/** A federation, so that messages are converted. */
async function withTwo(options: ModernServerOptions, more: object = {}) {
  const [one, two] = [await bed.modern('one', options), await bed.modern('two', options)]
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)], ...more } })
  return { one, two, url }
}

describe('arguments that servers require in headers (mcp.md §13.6)', () => {
  const args = { region: 'us-west1', text: 'x' }

  test('are added for a client with a session, without another rejection of the same tool', async () => {
    const { one, url } = await withServer({ tools: [located] })
    const { post } = await begin(url)
    const answer = await post(call('tools/call', { name: 'located', arguments: args }))
    expect(answer.json.result?.['content']).toEqual(text('one: x'))
    const before = one.log().length
    expect((await post(call('tools/call', { name: 'located', arguments: { region: 'ünï' } }))).json.result?.['content']).toEqual(text('one: '))
    expect(one.log().slice(before)).toEqual(['tools/call'])
    expect(one.received.at(-1)?.headers['mcp-param-region']).toBe('=?base64?w7xuw68=?=')
    expect((await post(call('tools/call', { name: 'located' }))).json.result?.['content']).toEqual(text('one: '))
  })

  test('of a tool on a later page are found', async () => {
    const handle: ModernServerOptions['handle'] = ({ method, params }) => {
      if (method !== 'tools/list') return undefined
      return params?.['cursor'] === undefined ? { tools: [], nextCursor: '2' } : { tools: [located] }
    }
    const { url } = await withServer({ tools: [located], handle })
    const { post } = await begin(url)
    expect((await post(call('tools/call', { name: 'located', arguments: args }))).json.result?.['content']).toEqual(text('one: x'))
  })

  test('are learned again when the server changes them', async () => {
    const options = { tools: [located] }
    const { url } = await withServer(options)
    const { post } = await begin(url)
    await post(call('tools/call', { name: 'located', arguments: args }))
    options.tools = [{ name: 'located', inputSchema: { type: 'object', properties: { text: { type: 'string', 'x-mcp-header': 'Other' } } } }] as never
    expect((await post(call('tools/call', { name: 'located', arguments: args }))).json.result?.['content']).toEqual(text('one: x'))
  })

  test('are those that the gateway sets, in a federation', async () => {
    const one = await bed.modern('one', { tools: [located] })
    const two = await bed.modern('two')
    const hidden = { overrides: [{ name: 'located', arguments: { region: 'eu-1' } }] }
    const { url } = await bed.gateway({ mcp: { targets: [{ ...staticTarget('a', one.port), tools: hidden }, staticTarget('b', two.port)] } })
    const headers = { 'mcp-param-region': 'forged' }
    const { json } = await sendModern(url, 'tools/call', { name: 'a_located', arguments: { text: 'x' } }, { headers })
    expect(json.result?.['content']).toEqual(text('one: x'))
    expect(one.received.at(-1)?.headers['mcp-param-region']).toBe('eu-1')
  })

  test('that no schema explains stay an error, and so do those that are too long', async () => {
    const invalid = { name: 'located', inputSchema: { type: 'object', properties: { region: { type: 'number', 'x-mcp-header': 'Region' } } } }
    const { url } = await withServer({ tools: [invalid] })
    const { post } = await begin(url)
    expect((await post(call('tools/call', { name: 'located', arguments: { region: 1 } }))).json.error?.code).toBe(-32603)
    const other = await withServer({ tools: [located] })
    const session = await begin(other.url)
    const long = await session.post(call('tools/call', { name: 'located', arguments: { region: 'x'.repeat(20_000) } }))
    expect([long.json.error?.code, long.json.error?.message]).toEqual([-32602, 'arguments that are sent in headers have more than 16384 characters'])
  })

  test('hide tools whose schemas break the rules from clients with sessions', async () => {
    const invalid = { name: 'invalid', inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } } }
    const { url } = await withServer({ tools: [located, invalid] })
    const { post } = await begin(url)
    const tools = (await post(call('tools/list'))).json.result?.['tools'] as { name: string }[]
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'ask', 'located'])
  })
})

describe('lists of servers without sessions (mcp.md §13.6)', () => {
  const fresh = { ttlMs: 60_000, cacheScope: 'public' } as const

  test.each([true, false])('that are public are requested once while they are fresh, as JSON: %p', async (isJson) => {
    let nowMs = 0
    const { one, url } = await withServer({ ...fresh, isJson }, { monotonicMs: () => nowMs })
    const first = await sendModern(url, 'tools/list')
    nowMs = 20_000
    const second = await sendModern(url, 'tools/list', {}, { id: 'other', headers: { authorization: 'Bearer other' } })
    expect([second.json.id, second.json.result]).toEqual(['other', { ...first.json.result, ttlMs: 40_000 }])
    expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(1)
    nowMs = 60_000
    expect((await sendModern(url, 'tools/list')).json.result?.['ttlMs']).toBe(60_000)
    expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(2)
  })

  test('are shared by clients of all revisions, and merged with the time that is left', async () => {
    const { one, two, url } = await withTwo(fresh)
    await sendModern(url, 'tools/list')
    const { post } = await begin(url)
    // The capabilities of both clients are the same.
    const { json } = await post(call('tools/list'))
    expect(json.result?.['tools']).toHaveLength(4)
    const again = await sendModern(url, 'tools/list')
    expect([again.json.result?.['cacheScope'], again.json.result?.['tools']]).toEqual(['public', json.result?.['tools']])
    expect([one, two].map(({ log }) => log().filter((method) => method === 'tools/list').length)).toEqual([1, 1])
  })

  test.each<[string, ModernServerOptions, string, Record<string, unknown>, Record<string, unknown>]>([
    ['are private', { ttlMs: 60_000, cacheScope: 'private' }, 'tools/list', {}, {}],
    ['hold for no time', { ttlMs: 0, cacheScope: 'public' }, 'tools/list', {}, {}],
    ['have another cursor', fresh, 'tools/list', { cursor: '1' }, {}],
    ['are for other capabilities', fresh, 'tools/list', {}, { 'io.modelcontextprotocol/clientCapabilities': { sampling: {} } }],
    ['are contents of a resource', fresh, 'resources/read', { uri: 'memo:x' }, {}],
  ])('are requested again if they %s', async (_, options, method, params, meta) => {
    const { one, url } = await withServer(options)
    await sendModern(url, method, 'cursor' in params ? {} : params)
    await sendModern(url, method, params, { meta })
    expect(one.log().filter((received) => received === method)).toHaveLength(2)
  })

  test('are requested again after the server reported a change, on any stream', async () => {
    const { one, url } = await withServer(fresh)
    const lists = () => one.log().filter((method) => method.endsWith('/list'))
    for (const method of ['tools/list', 'prompts/list']) await sendModern(url, method)
    const controller = new AbortController()
    const params = { notifications: { toolsListChanged: true } }
    const init = { method: 'POST', headers: modernHeaders('subscriptions/listen'), body: JSON.stringify(modernCall('subscriptions/listen', params)) }
    const stream = await fetch(url, { ...init, signal: controller.signal })
    const reader = stream.body?.getReader()
    await reader?.read()
    notify(one, 'notifications/tools/list_changed')
    await reader?.read()
    for (const method of ['tools/list', 'prompts/list']) await sendModern(url, method)
    expect(lists()).toEqual(['tools/list', 'prompts/list', 'tools/list'])
    controller.abort()
    await until('the end of the stream', () => one.streams.size === 0)
  })

  test('with rules, are filtered for each user, and private', async () => {
    const policies = { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "echo" && request.headers["x-user"] == "ann"'] } } } }
    const { one, url } = await withServer(fresh, { policies })
    const toolsFor = async (user: string) => (await sendModern(url, 'tools/list', {}, { headers: { 'x-user': user } })).json.result
    expect([await toolsFor('ann'), await toolsFor('bob')]).toMatchObject([{ tools: [{ name: 'echo' }], cacheScope: 'private' }, { tools: [] }])
    expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(1)
  })

  test('that are large pass, and are not kept', async () => {
    const description = 'x'.repeat(1_200_000)
    const { one, url } = await withServer({ ...fresh, tools: [{ ...located, description } as never] })
    for (const _ of [1, 2]) expect((await sendModern(url, 'tools/list')).json.result?.['tools']).toHaveLength(3)
    expect(one.log().filter((method) => method === 'tools/list')).toHaveLength(2)
  })
})

test.each([
  ['missing', {}],
  ['another value', { 'mcp-param-region': 'eu-1' }],
])('a federation does not mend a header of an argument that is %s, so that the server rejects the call', async (_title, headers) => {
  const { one, url } = await withTwo({ tools: [located] })
  const { status, json } = await sendModern(url, 'tools/call', { name: 'a_located', arguments: { region: 'x' } }, { headers })
  expect([status, json.error?.code, one.log()]).toEqual([400, -32020, ['server/discover', 'tools/call']])
})

test('call_tool adds headers of arguments, because its clients do not have the schema', async () => {
  const { one, url } = await withTwo({ tools: [located] }, { toolSearch: 'Enabled' })
  const params = { name: 'call_tool', arguments: { name: 'a_located', arguments: { region: 'x', text: 'y' } } }
  expect((await sendModern(url, 'tools/call', params)).json.result?.['content']).toEqual(text('one: y'))
  expect(one.received.at(-1)?.headers['mcp-param-region']).toBe('x')
})

test('the rejection of a call that passes unchanged reaches the client, which has the schema', async () => {
  const { one, url } = await withServer({ tools: [located] })
  const { status, json } = await sendModern(url, 'tools/call', { name: 'located', arguments: { region: 'x' } })
  expect([status, json.error?.code, one.log()]).toEqual([400, -32020, ['server/discover', 'tools/call']])
})
