import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { staticTarget } from '../testing/gateway.ts'
import { modernCall, modernHeaders } from '../testing/modern.ts'
import { notify } from '../testing/modern-server.ts'
import { defineBasics } from '../testing/tools.ts'
import { sendModern, TestBed, until } from '../testing/test-bed.ts'
import { letArrive } from '../../../testing/turns.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const METHOD = 'subscriptions/listen'

/** A server with sessions that announces changes of its tools. */
const announcing = (name: string) =>
  bed.upstream((server: Server) => {
    server.registerCapabilities({ tools: { listChanged: true } })
    defineBasics(name)(server)
  })

/** Opens a subscription. `messages` grows as they arrive. */
async function open(url: URL, notifications: object, id = 'sub') {
  const controller = new AbortController()
  const init = {
    method: 'POST',
    headers: modernHeaders(METHOD),
    body: JSON.stringify(modernCall(METHOD, { notifications }, { id })),
    signal: controller.signal,
  }
  const response = await fetch(url, init)
  const messages: unknown[] = []
  const reading = (async () => {
    let text = ''
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      const events = text.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data !== undefined) messages.push(JSON.parse(data))
      }
    }
  })().catch(() => undefined)
  const close = async (): Promise<void> => {
    controller.abort()
    await reading
  }
  bed.onClose(close)
  await until('the acknowledgement', () => messages.length > 0)
  return { response, messages, close }
}

const tagged = (method: string, params: object = {}, id = 'sub') => ({ jsonrpc: '2.0', method, params: { ...params, _meta: { [SUBSCRIPTION]: id } } })
const acknowledged = (notifications: object) => tagged('notifications/subscriptions/acknowledged', { notifications })

describe('subscriptions/listen of servers with sessions (mcp.md §13.5)', () => {
  test('is acknowledged first, and has the changes that the client requested, tagged with its id', async () => {
    const one = await announcing('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { messages, response } = await open(url, { toolsListChanged: true, promptsListChanged: true })
    expect([response.status, response.headers.get('content-type'), response.headers.get('x-accel-buffering')]).toEqual([200, 'text/event-stream', 'no'])
    const [server] = one.servers.values()
    await server?.notification({ method: 'notifications/prompts/list_changed' })
    await server?.notification({ method: 'notifications/message', params: { level: 'error', data: 'x' } })
    await server?.notification({ method: 'notifications/tools/list_changed' })
    await until('the change', () => messages.length > 1)
    expect(messages).toEqual([acknowledged({ toolsListChanged: true }), tagged('notifications/tools/list_changed')])
  })

  test('has the updates of the requested resources', async () => {
    const one = await announcing('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { messages } = await open(url, { resourceSubscriptions: ['memo:x', 'memo:x'] })
    expect(one.received.filter(({ body }) => body?.method === 'resources/subscribe').map(({ body }) => body?.params)).toEqual([{ uri: 'memo:x' }])
    const [server] = one.servers.values()
    for (const uri of ['memo:y', 'memo:x']) await server?.notification({ method: 'notifications/resources/updated', params: { uri } })
    await until('the update', () => messages.length > 1)
    expect(messages).toEqual([acknowledged({ resourceSubscriptions: ['memo:x'] }), tagged('notifications/resources/updated', { uri: 'memo:x' })])
  })

  test('has a session of its own, which ends with it', async () => {
    const one = await announcing('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    await sendModern(url, 'tools/list')
    const streams = [await open(url, { toolsListChanged: true }), await open(url, { toolsListChanged: true })]
    expect(one.servers.size).toBe(3)
    for (const { close } of streams) await close()
    await until('the end of the sessions', () => one.servers.size === 1)
  })

  test('is silent if the servers have no such stream', async () => {
    const bare = await bed.answering(() => undefined)
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', bare.port)] } })
    expect((await open(url, { toolsListChanged: true })).messages).toEqual([acknowledged({})])
  })

  test.each<[string, unknown]>([
    ['no filter', undefined],
    ['a URI that is no string', { resourceSubscriptions: [1] }],
    ['too many URIs', { resourceSubscriptions: Array.from({ length: 1001 }, (_, n) => `memo:${n}`) }],
  ])('with %s is an error', async (_, notifications) => {
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', (await announcing('one')).port)] } })
    expect((await sendModern(url, METHOD, { notifications })).json.error?.code).toBe(-32602)
  })
})

describe('subscriptions/listen of a federation (mcp.md §13.5)', () => {
  test('joins servers of all revisions, with prefixes', async () => {
    const [server, old] = [await bed.modern('new'), await announcing('old')]
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', old.port)] } })
    const uris = ['a+memo:x', 'b+memo:x', 'z+memo:x']
    const { messages } = await open(url, { toolsListChanged: true, resourceSubscriptions: uris })
    expect(messages).toEqual([acknowledged({ toolsListChanged: true, resourceSubscriptions: uris.slice(0, 2) })])
    notify(server, 'notifications/resources/updated', { uri: 'memo:x' })
    await until('the update', () => messages.length === 2)
    const [session] = old.servers.values()
    await session?.notification({ method: 'notifications/resources/updated', params: { uri: 'memo:x' } })
    await until('the update', () => messages.length === 3)
    await session?.notification({ method: 'notifications/tools/list_changed' })
    await until('the change', () => messages.length === 4)
    expect(messages.slice(1)).toEqual([
      tagged('notifications/resources/updated', { uri: 'a+memo:x' }),
      tagged('notifications/resources/updated', { uri: 'b+memo:x' }),
      tagged('notifications/tools/list_changed'),
    ])
  })

  test('goes on when a server with sessions restarts, and has a new session with it', async () => {
    const [old, next, other] = [await announcing('old'), await announcing('next'), await announcing('other')]
    const forwarder = await bed.forwarder(old.port)
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', forwarder.port), staticTarget('b', other.port)] } })
    const { messages, close } = await open(url, { toolsListChanged: true, resourceSubscriptions: ['a+memo:x'] })
    forwarder.to = next.port
    await old.close()
    await until('the next stream', () => next.log().filter((method) => method === 'GET').length === 2)
    const retried = ['server/discover', 'initialize', 'notifications/initialized', 'resources/subscribe', 'GET']
    expect(next.log()).toEqual(['resources/subscribe', 'GET', ...retried])
    await letArrive()
    await [...other.servers.values()][0]?.notification({ method: 'notifications/tools/list_changed' })
    await [...next.servers.values()][0]?.notification({ method: 'notifications/resources/updated', params: { uri: 'memo:x' } })
    await until('both messages', () => messages.length === 3)
    expect(messages).toEqual(
      expect.arrayContaining([tagged('notifications/tools/list_changed'), tagged('notifications/resources/updated', { uri: 'a+memo:x' })]),
    )
    await close()
    await until('the end of the sessions', () => next.servers.size + other.servers.size === 0)
  })

  test('leaves out resources that rules deny', async () => {
    const [server, old] = [await bed.modern('new'), await announcing('old')]
    const policies = { mcp: { authorization: { policy: { matchExpressions: ['mcp.resource.target == "b"'] } } } }
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', old.port)] }, policies })
    const { messages } = await open(url, { resourceSubscriptions: ['a+memo:x', 'b+memo:x'] })
    expect(messages).toEqual([acknowledged({ resourceSubscriptions: ['b+memo:x'] })])
    expect(JSON.stringify(server.received)).not.toContain('memo:x')
  })

  test('informs the official client of the revision of changes', async () => {
    const [server, old] = [await bed.modern('new'), await announcing('old')]
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', old.port)] } })
    const client = new Client({ name: 'sdk', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    let changes = 0
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
    await client.connect(new StreamableHTTPClientTransport(url))
    bed.onClose(() => client.close())
    const { honoredFilter } = await client.listen({ toolsListChanged: true })
    expect(honoredFilter).toEqual({ toolsListChanged: true })
    notify(server, 'notifications/tools/list_changed')
    await until('the change', () => changes === 1)
  })
})
