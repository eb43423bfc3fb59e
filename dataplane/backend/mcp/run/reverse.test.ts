import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ListRootsResultSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { startGateway, staticTarget } from '../testing/gateway.ts'
import { begin, call, until, TestBed } from '../testing/test-bed.ts'
import { letArrive } from '../../../testing/turns.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const textOf = (value: unknown) => ({ content: [{ type: 'text' as const, text: JSON.stringify(value) }] })
const aborted: string[] = []

/** A server whose tools send requests to the client. */
function asking(name: string): (server: Server) => void {
  return (server) => {
    server.registerCapabilities({ tools: {}, logging: {} })
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification, sendRequest, requestId }) => {
      const token = params['_meta']?.progressToken
      switch (params.name) {
        case 'sample':
          return textOf(
            (await server.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: name } }], maxTokens: 5 }, { relatedRequestId: requestId }))
              .content,
          )
        case 'elicit':
          return textOf(await server.elicitInput({ message: name, requestedSchema: { type: 'object', properties: {} } }, { relatedRequestId: requestId }))
        case 'roots':
          return textOf((await server.listRoots(undefined, { relatedRequestId: requestId })).roots)
        case 'progress':
          for (const progress of [1, 2])
            if (token !== undefined) await sendNotification({ method: 'notifications/progress', params: { progressToken: token, progress, message: name } })
          await sendNotification({ method: 'notifications/message', params: { level: 'info', data: name } })
          return textOf('done')
        case 'impatient': {
          const asked = sendRequest({ method: 'roots/list' }, ListRootsResultSchema, { signal: AbortSignal.timeout(30) })
          return textOf(
            await asked.then(
              () => 'answered',
              () => 'given up',
            ),
          )
        }
        default:
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          aborted.push(name)
          return textOf('aborted')
      }
    })
  }
}

describe.each([
  ['one target', 1],
  ['two targets', 2],
])('with %s', (_, count) => {
  const own = (tool: string): string => (count === 1 ? tool : `b_${tool}`)

  async function connected(transport: 'streamable' | 'sse' = 'streamable') {
    const servers = [await bed.upstream(asking('one'), { transport })]
    if (count === 2) servers.push(await bed.upstream(asking('two'), { transport }))
    const protocol = transport === 'sse' ? 'SSE' : 'StreamableHTTP'
    const gateway = await bed.gateway({ mcp: { targets: servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port, { protocol })) } })
    const logs: unknown[] = []
    const cancelled: unknown[] = []
    const client = await bed.client(gateway, {
      capabilities: { sampling: {}, elicitation: {}, roots: {} },
      prepare: (made) => {
        made.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
          model: 'm',
          role: 'assistant' as const,
          content: { type: 'text' as const, text: `sampled ${JSON.stringify(params.messages[0]?.content)}` },
        }))
        made.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ action: 'accept' as const, content: { said: params.message } }))
        made.setRequestHandler(ListRootsRequestSchema, async (__, { signal }) => {
          if (logs.length > 0 && !signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
          if (logs.length > 0) cancelled.push(true)
          return { roots: [{ uri: 'file:///r' }] }
        })
        made.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params.data))
      },
    })
    return { client, servers, logs, cancelled, gateway }
  }
  const name = count === 1 ? 'one' : 'two'

  test.each(['streamable', 'sse'] as const)(
    'sampling, elicitation and roots requests reach the client and their responses the server, over %s (row 19)',
    async (transport) => {
      const { client } = await connected(transport)
      const ask = async (tool: string) => JSON.parse(((await client.callTool({ name: own(tool) })).content as { text: string }[])[0]?.text ?? '') as unknown
      expect(await ask('sample')).toEqual({ type: 'text', text: `sampled {"type":"text","text":"${name}"}` })
      expect(await ask('elicit')).toEqual({ action: 'accept', content: { said: name } })
      expect(await ask('roots')).toEqual([{ uri: 'file:///r' }])
    },
  )

  test('concurrent requests of two targets may have the same id (row 19)', async () => {
    const { client } = await connected()
    const tools = count === 1 ? ['sample', 'sample'] : ['a_sample', 'b_sample']
    const answers = await Promise.all(tools.map((tool) => client.callTool({ name: tool })))
    expect(answers.map(({ content }) => (content as { text: string }[])[0]?.text.match(/one|two/)?.[0])).toEqual(count === 1 ? ['one', 'one'] : ['one', 'two'])
  })

  test('progress and log messages arrive before the result (row 17)', async () => {
    const { client, logs } = await connected()
    const order: unknown[] = []
    const result = await client.callTool({ name: own('progress') }, undefined, { onprogress: ({ progress, message }) => void order.push([progress, message]) })
    expect([order, logs, result.content]).toEqual([
      [
        [1, name],
        [2, name],
      ],
      [name],
      [{ type: 'text', text: '"done"' }],
    ])
  })

  test('the cancellation of a call reaches its target (row 18)', async () => {
    const { client, servers } = await connected()
    aborted.length = 0
    const controller = new AbortController()
    const calling = client.callTool({ name: own('wait') }, undefined, { signal: controller.signal })
    const outcome = Promise.allSettled([calling])
    await until('the call', () => servers.some(({ log }) => log().includes('tools/call')))
    controller.abort()
    expect(await outcome).toMatchObject([{ status: 'rejected' }])
    await until('the abort', () => aborted.length > 0)
    expect(aborted).toEqual([name])
  })

  test('the cancellation of a server’s request reaches the client’s handler', async () => {
    const { client, servers, logs, cancelled } = await connected()
    await until('the streams of the servers', () => servers.every(({ log }) => log().includes('GET')))
    await letArrive()
    // The SDK's client treats a cancelled id of 0 as missing.
    await client.callTool({ name: own('elicit') })
    logs.push('slow')
    expect((await client.callTool({ name: own('impatient') })).content).toEqual([{ type: 'text', text: '"given up"' }])
    await until('the cancellation', () => cancelled.length === 1)
  })
})

test.each([
  ['one target', 1, 'ask', 'proxy_b_n_0'],
  ['two targets', 2, 'b_ask', 'proxy_b_n_0'],
])('a request of a server and its cancellation have an id that names the target: %s (mcp.md §4.3)', async (_, count, name, shown) => {
  const answers: unknown[] = []
  const { port } = await bed.scripted((request, response, body) => {
    if (body?.method === 'tools/call') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"jsonrpc":"2.0","id":0,"method":"roots/list"}\n\n')
      response.write('data: {"jsonrpc":"2.0","id":"x_y","method":"ping"}\n\n')
      response.write('data: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}\n\n')
      return void response.end(`data: {"jsonrpc":"2.0","id":1,"result":{"content":[],"method":"\\"method\\""}}\n\n`)
    }
    if (body !== undefined && body.method === undefined) answers.push(body)
    if (body?.method !== 'initialize') return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
    const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
  })
  const { url } = await bed.gateway({ mcp: { targets: ['b', 'c'].slice(0, count).map((target) => staticTarget(target, port)) } })
  const { post } = await begin(url)
  const messages = [...(await post(call('tools/call', { name }))).text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as object)
  expect(messages).toEqual([
    { jsonrpc: '2.0', id: shown, method: 'roots/list' },
    { jsonrpc: '2.0', id: 'proxy_b_s_x_y', method: 'ping' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: shown } },
    { jsonrpc: '2.0', id: 1, result: { content: [], method: '"method"' } },
  ])
  for (const id of [shown, 'proxy_b_s_x_y']) await post({ jsonrpc: '2.0', id, result: {} })
  expect(answers).toEqual([
    { jsonrpc: '2.0', id: 0, result: {} },
    { jsonrpc: '2.0', id: 'x_y', result: {} },
  ])
})

describe('responses with an unknown id (row 20)', () => {
  const foreign = ['7', 7, 'proxy_c_n_0', 'proxy_a_x_0', 'proxy_a_n_{}', 'a_0', '', 'proxy_a_n_1e']

  test('are rejected if there are several targets', async () => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
    const { post } = await begin(url)
    const statuses = []
    for (const id of foreign) statuses.push((await post({ jsonrpc: '2.0', id, result: {} })).status)
    expect(statuses).toEqual(foreign.map(() => 400))
    expect((await post({ jsonrpc: '2.0', id: null, error: { code: 1, message: 'm' } })).status).toBe(202)
    expect([...one.log(), ...two.log()]).not.toContain('response')
  })

  test('are passed to a single target', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    expect((await (await begin(url)).post({ jsonrpc: '2.0', id: 'foreign', result: {} })).status).toBe(202)
    expect(one.log()).toContain('response')
  })
})

test('a client that disconnects aborts its calls (row 52)', async () => {
  let isClosed = false
  const port = (
    await bed.scripted((_, response, body) => {
      if (body?.method !== 'tools/call') {
        const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
        return void response
          .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
      }
      response.on('close', () => (isClosed = true))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': here\n\n')
    })
  ).port
  const gateway = await startGateway({ mcp: { targets: [staticTarget('a', port)] } })
  const { id } = await begin(gateway.url)
  const controller = new AbortController()
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json', 'mcp-session-id': id }
  const response = await fetch(gateway.url, { method: 'POST', headers, body: JSON.stringify(call('tools/call', { name: 't' })), signal: controller.signal })
  expect(response.status).toBe(200)
  controller.abort()
  await until('the upstream call is closed', () => isClosed)
  await gateway.close()
})
