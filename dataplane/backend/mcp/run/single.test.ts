import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { logFieldsOf } from '../../../testing/log-fields.ts'
import { staticTarget } from '../testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed, type ScriptedBody } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

type Script = (response: ServerResponse, body: ScriptedBody, request: IncomingMessage) => void

const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
const answerTo = (body: ScriptedBody, value: object = result) => JSON.stringify({ jsonrpc: '2.0', id: body.id, result: value })
const SECRET = 'secret-target'

/** A server that runs `script` for tool calls and responds to the rest with JSON. */
const server = (script: Script) =>
  bed.scripted((request, response, body) => {
    if (body?.method === 'tools/call') return script(response, body, request)
    response.writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(body && answerTo(body))
  })

async function start(script: Script, count = 1) {
  const { port } = await server(script)
  const other = await server((response, body) => void response.writeHead(200, { 'content-type': 'application/json' }).end(answerTo(body, { content: [] })))
  const targets = [staticTarget(SECRET, port), staticTarget('b', other.port)].slice(0, count)
  const gateway = await bed.gateway({ mcp: { targets } })
  return { gateway, name: count === 1 ? 'x' : `${SECRET}_x`, ...(await begin(gateway.url)) }
}
const stream = (response: ServerResponse): ServerResponse => response.writeHead(200, { 'content-type': 'text/event-stream' })
const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'

describe('the event stream of a call', () => {
  test.each<[string, (response: ServerResponse, request: IncomingMessage) => void]>([
    ['breaks off', (response, { socket }) => void stream(response).write(`data: ${notice}\n\n`, () => socket.destroy())],
    ['breaks off within an event', (response, { socket }) => void stream(response).write(`data: ${notice}\n\ndata: {"id`, () => socket.destroy())],
    ['ends', (response) => void stream(response).end(`data: ${notice}\n\n`)],
  ])('that %s without the result ends with an error (mcp.md §4.4)', async (_, script) => {
    const { post, gateway } = await start((response, __, request) => script(response, request))
    const { status, text } = await post(call('tools/call', { name: 'x' }))
    expect([status, text]).toEqual([
      200,
      expect.stringMatching(/notifications\/message[^]*"id":1,"error":\{"code":-32603,"message":"an upstream [^"]*"\}\}\n\n$/),
    ])
    expect(text).not.toContain(SECRET)
    await until('the log line', () => gateway.server.finished.length >= 3)
    expect(logFieldsOf(gateway.server.finished.at(-1))).toMatchObject({ 'mcp.error.code': -32603, 'mcp.error.message': expect.stringContaining(SECRET) })
  })

  test('that breaks off within a large event ends with an error that can be read', async () => {
    const { post } = await start((response, body, { socket }) => {
      const text = answerTo(body, { content: [{ type: 'text', text: 'x'.repeat(1_000_000) }] })
      stream(response).write(`data: ${text.slice(0, 900_000)}`, () => socket.destroy())
    })
    const { text } = await post(call('tools/call', { name: 'x' }))
    expect(text.split('\n\n').at(-2)).toMatch(/^event: message\ndata: \{"jsonrpc":"2.0","id":1,"error":\{"code":-32603,/)
  })

  test('that breaks off after an event id is cut, so that the client resumes it', async () => {
    const { post } = await start((response, _, { socket }) => void stream(response).write('id: 1\ndata: \n\n', () => socket.destroy()))
    await expect(post(call('tools/call', { name: 'x' }))).rejects.toThrow()
  })

  test('that ends after an event id or with nothing in it ends for the client too, which polls', async () => {
    for (const content of ['id: 1\ndata: \n\n', undefined]) {
      const { post } = await start((response) => void stream(response).end(content))
      const { status, headers, text } = await post(call('tools/call', { name: 'x' }))
      expect([status, headers['content-type'], text]).toEqual([200, 'text/event-stream', content ?? ''])
    }
  })

  test('that is empty by its length ends for the client too', async () => {
    const { post } = await start((response) => void response.writeHead(200, { 'content-type': 'text/event-stream', 'content-length': 0 }).end())
    const { status, text } = await post(call('tools/call', { name: 'x' }))
    expect([status, text]).toEqual([200, ''])
  })

  test('keeps the names of events', async () => {
    const { post } = await start((response) => void stream(response).end('event: close\nretry: 10\ndata: \n\n'))
    expect((await post(call('tools/call', { name: 'x' }))).text).toContain('event: close\ndata: \n\n')
  })
})

describe('a result of 20,000,000 characters', () => {
  const large = 'x'.repeat(20_000_000)
  const content = { content: [{ type: 'text', text: large }] }
  const sizeOf = ({ result: got }: { result?: Record<string, unknown> }) => (got?.['content'] as { text: string }[] | undefined)?.[0]?.text.length
  const forms: [string, Script][] = [
    ['an event', (response, body) => void stream(response).end(`event: message\ndata: ${answerTo(body, content)}\n\n`)],
    [
      'an event with the id last',
      (response, body) => void stream(response).end(`data: ${notice}\n\ndata: ${JSON.stringify({ result: content, jsonrpc: '2.0', id: body.id })}\n\n`),
    ],
    ['JSON', (response, body) => void response.writeHead(200, { 'content-type': 'application/json' }).end(answerTo(body, content))],
  ]

  test.each(forms)('passes if there is one target: as %s', async (_, script) => {
    const { post } = await start(script)
    const { text, json } = await post(call('tools/call', { name: 'x' }))
    const message = JSON.parse(/^data: (\{"(?:jsonrpc":"2.0","id"|result).*)$/m.exec(text)?.[1] ?? text) as typeof json
    expect(sizeOf(message)).toBe(large.length)
    expect(message.id).toBe(1)
  })

  test.each(forms)('fails its call only if there are two targets: as %s', async (_, script) => {
    const { post, name } = await start(script, 2)
    const { status, text } = await post(call('tools/call', { name }))
    expect([status, text]).toEqual([200, expect.stringMatching(/"id":1,"error":\{"code":-32603,"message":"[^"]*(upstream)[^"]*larger than 16777216/)])
    expect(text).not.toContain(SECRET)
    expect((await post(call('tools/call', { name: 'b_x' }))).json.result).toEqual({ content: [] })
  })

  test('passes with two targets if maxBufferSize allows it', async () => {
    const [one, two] = [await server(forms[0]?.[1] ?? (() => undefined)), await server(() => undefined)]
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, frontend: { http: { maxBufferSize: 33_554_432 } } }],
    })
    const { post } = await begin(gateway.url)
    const { json } = await post(call('tools/call', { name: 'a_x' }))
    expect(sizeOf(json)).toBe(large.length)
  })

  test('fails its call only if the target speaks SSE, and the session lives on', async () => {
    let write: (text: string) => void = () => undefined
    const { port } = await bed.scripted((request, response, body) => {
      if (request.method === 'GET') {
        write = (text) => void response.write(text)
        stream(response)
        return write('event: endpoint\ndata: /messages\n\n')
      }
      response.writeHead(202).end()
      if (body?.id !== undefined) write(`data: ${answerTo(body, body.method === 'tools/call' && body.params?.['name'] === 'big' ? content : result)}\n\n`)
    })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget(SECRET, port, { protocol: 'SSE' })] } })
    const { post } = await begin(url)
    expect((await post(call('tools/call', { name: 'big' }, 7))).json).toMatchObject({
      id: 7,
      error: { code: -32603, message: expect.stringContaining('larger than') },
    })
    expect((await post(call('tools/call', { name: 'small' }))).json.result).toEqual(result)
    const begun = await send(url, 'POST', MCP_HEADERS, initialize())
    expect(begun.status).toBe(200)
  })
})

test('a batch in the event stream of a list is dropped if rules apply, and the request fails (mcp.md §7)', async () => {
  const { port } = await bed.scripted((_, response, body) => {
    if (body?.method === 'tools/list') return void stream(response).end(`data: [${answerTo(body, { tools: [{ name: 'rm', inputSchema: {} }] })}]\n\n`)
    response.writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(body && answerTo(body))
  })
  const policies = { mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.name == "safe"'] } } } }
  const { post } = await begin((await bed.gateway({ mcp: { targets: [staticTarget('a', port)] }, policies })).url)
  const { text } = await post(call('tools/list'))
  expect(text).toContain('"code":-32603')
  expect(text).not.toContain('rm')
})
