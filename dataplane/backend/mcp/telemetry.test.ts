import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ServerResponse } from 'node:http'
import { evalHost } from '#api/cel/index.ts'
import { compileExpression } from '../../request/expression/program.ts'
import { logFieldsOf } from '../../testing/log-fields.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { protocolOf, reasonOf } from '../../observe/telemetry/outcome.ts'
import { traceOf } from '../../observe/telemetry/trace.ts'
import { testGateway } from '../../testing/messages.ts'
import { logIdOf } from './session/sessions.ts'
import { staticTarget, type McpGateway } from './testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

async function start(more: object = {}) {
  const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] }, ...more })
  const session = await begin(gateway.url)
  const fields = async (count: number) => {
    await until('the end of the requests', () => gateway.server.finished.length >= count)
    return gateway.server.finished.at(-1)
  }
  return { gateway, ...session, last: fields, one }
}

describe('the access log (mcp.md §10, row 46)', () => {
  test.each<[string, object, object]>([
    [
      'a tool',
      call('tools/call', { name: 'b_echo', arguments: { text: 'x' } }),
      { 'mcp.method.name': 'tools/call', 'mcp.target': 'b', 'mcp.resource.type': 'tool', 'gen_ai.tool.name': 'echo' },
    ],
    [
      'a prompt',
      call('prompts/get', { name: 'a_greet', arguments: { who: 'x' } }),
      { 'mcp.target': 'a', 'mcp.resource.type': 'prompt', 'gen_ai.prompt.name': 'greet' },
    ],
    ['a resource', call('resources/read', { uri: 'a+memo:x' }), { 'mcp.resource.type': 'resource', 'mcp.resource.uri': 'memo:x' }],
    ['an unknown tool', call('tools/call', { name: 'z_x' }), { 'mcp.error.code': -32602, 'mcp.error.message': 'Unknown tool: z_x' }],
  ])('has the fields of %s', async (_, body, expected) => {
    const { post, id, last } = await start()
    await post(body)
    const exchange = await last(3)
    expect(logFieldsOf(exchange)).toMatchObject({ ...expected, 'mcp.session.id': logIdOf(id) })
    expect(exchange && [protocolOf(exchange), exchange.backend]).toEqual(['mcp', 'ns/mcp'])
  })

  test('has a digest of the session id for streams and the end of a session too', async () => {
    const { gateway, id, last } = await start()
    await send(gateway.url, 'DELETE', { 'mcp-session-id': id })
    expect(logFieldsOf(await last(3))).toEqual({ 'mcp.session.id': logIdOf(id) })
  })

  test('has the reason of a failure', async () => {
    const { gateway, last } = await start()
    await send(gateway.url, 'POST', MCP_HEADERS, call('ping'))
    const exchange = await last(3)
    expect(exchange && [reasonOf(exchange), exchange.error?.message]).toEqual(['MCP', expect.stringContaining('session header is required')])
  })

  test('provides method, item, arguments and result to expressions', async () => {
    const { post, last } = await start({ policies: { mcp: { authorization: { policy: { matchExpressions: ['true'] } } } } })
    await post(call('tools/call', { name: 'a_echo', arguments: { text: 'x' } }))
    const exchange = await last(3)
    const see = (text: string) => exchange && evalHost(compileExpression(text, 'log'), new ExchangeView(exchange))
    expect([
      see('mcp.methodName'),
      see('mcp.tool.target'),
      see('mcp.tool.name'),
      see('mcp.tool.arguments.text'),
      see('mcp.tool.result.content[0].text'),
    ]).toEqual(['tools/call', 'a', 'echo', 'x', 'one: x'])
  })
})

describe('results of tools are recorded if expressions read them, also for a single target (mcp.md §10)', () => {
  const result = { content: [{ type: 'text', text: 'given' }] }
  const answers = {
    'as JSON': (response: ServerResponse, text: string) => response.writeHead(200, { 'content-type': 'application/json' }).end(text),
    'as events': (response: ServerResponse, text: string) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${text}\n\n`),
  }
  test.each(
    Object.entries(answers).flatMap(([how, answer]) =>
      [
        { expression: 'mcp.tool.result.content[0].text', expected: 'given' },
        { expression: 'toJson(mcp.tool)', expected: 'given' },
        { expression: 'mcp.tool.name', expected: undefined },
      ].map((row) => ({ how, answer, ...row })),
    ),
  )('$how, with $expression in the log', async ({ answer, expression, expected }) => {
    const hello = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    const target = await bed.scripted((_, response, body) => {
      if (body?.id === undefined) return void response.writeHead(202).end()
      answer(response, JSON.stringify({ jsonrpc: '2.0', id: body.id, result: body.method === 'initialize' ? hello : result }))
    })
    const frontend = { accessLog: { attributes: { add: [{ name: 'x', expression }] } } }
    const gateway = await bed.gateway({
      mcp: { sessionRouting: 'Stateless', targets: [staticTarget('a', target.port)] },
      attached: [{ target: testGateway, frontend }],
    })
    const { status } = await send(gateway.url, 'POST', MCP_HEADERS, call('tools/call', { name: 'echo' }))
    await until('the end of the request', () => gateway.server.finished.length > 0)
    const exchange = gateway.server.finished.at(-1)
    const text = exchange && evalHost(compileExpression('mcp.tool.result.content[0].text', 'log'), new ExchangeView(exchange))
    expect([status, text]).toEqual([200, expected])
  })
})

test('each call of a target has a span with its name (mcp.md §10)', async () => {
  const tracing = { backendRef: { backend: 'ns/none' }, randomSampling: 'true' }
  const { gateway, post, id, last } = await start({ attached: [{ target: testGateway, frontend: { tracing } }] })
  const long = 'x'.repeat(1000)
  for (const [method, params] of [
    ['tools/call', { name: 'a_echo', arguments: { text: 'x' } }],
    ['prompts/get', { name: 'b_greet' }],
    ['resources/read', { uri: 'a+memo:x' }],
    ['tools/list', {}],
    ['tools/call', { name: `a_${long}` }],
  ] as const)
    await post(call(method, params))
  await send(gateway.url, 'DELETE', { 'mcp-session-id': id })
  await last(8)
  const calls = gateway.server.finished.flatMap((exchange) => traceOf(exchange)?.calls ?? [])
  const handshake = ['initialize', 'notifications/initialized'].flatMap((method) => [`${method} a`, `${method} b`])
  const asked = ['tools/call a_echo', 'prompts/get b_greet', 'resources/read a', 'tools/list a', 'tools/list b', `tools/call a_${long}`.slice(0, 256)]
  expect(new Set(calls.map(({ name }) => name))).toEqual(new Set([...handshake, ...asked, 'DELETE a', 'DELETE b']))
  expect(calls.find(({ name }) => name === 'tools/call a_echo')?.fields).toEqual({
    'mcp.target': 'a',
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'echo',
  })
})

describe('names in the metric (mcp.md §10)', () => {
  /** The labels `resource` of counted tool calls, with their counts. */
  const counts = (gateway: McpGateway): Record<string, number> =>
    Object.fromEntries(
      [...[...gateway.registry.expose('text')].join('').matchAll(/^proxy_mcp_requests_total\{method="tools\/call".*resource="([^"]*)".*\} (\d+)$/gm)].map(
        ([, name = '', count]) => [name, Number(count)],
      ),
    )
  const texts: Record<string, (name: string) => object> = {
    'a JSON-RPC error': () => ({ error: { code: -32602, message: 'Unknown tool' } }),
    'a result that is an error': (name) => ({ result: { isError: true, content: [{ type: 'text', text: `no tool ${name}` }] } }),
  }
  const result = { content: [{ type: 'text', text: 'ok' }] }
  const forms: [string, number, 'json' | 'sse', string][] = [1, 2].flatMap((count) =>
    (['json', 'sse'] as const).flatMap((form) =>
      Object.keys(texts).map((failure): [string, number, 'json' | 'sse', string] => [`${form}, ${failure}`, count, form, failure]),
    ),
  )

  test.each(forms)('are those of tools that were called with success, not invented ones: %s, %i target(s)', async (_, count, form, failure) => {
    const server = await bed.scripted((request, response, body) => {
      if (body?.id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
      const name = String(body.params?.['name'])
      const isReal = body.method !== 'tools/call' || name === 'real' || name === 'large'
      const content = name === 'large' ? { content: [{ type: 'text', text: 'x'.repeat(400_000) }] } : result
      const init = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      const answer = isReal ? { result: body.method === 'tools/call' ? content : init } : texts[failure]?.(name)
      const text = JSON.stringify({ jsonrpc: '2.0', id: body.id, ...answer })
      response.writeHead(200, { 'content-type': form === 'json' ? 'application/json' : 'text/event-stream' })
      response.end(form === 'json' ? text : `data: ${text}\n\n`)
    })
    const other = await bed.upstream('other')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', other.port)].slice(0, count) } })
    const { post } = await begin(gateway.url)
    const prefix = count === 1 ? '' : 'a_'
    for (let index = 0; index < 5; index++) await post(call('tools/call', { name: `${prefix}invented${index}` }))
    for (const name of ['real', 'large', 'real']) await post(call('tools/call', { name: `${prefix}${name}` }))
    expect(counts(gateway)).toEqual({ unknown: 5, real: 2, large: 1 })
  })

  test('are those of lists too, also of tools whose calls fail', async () => {
    const server = await bed.answering(({ method, id }) => {
      if (method === 'tools/list') return { tools: [{ name: 'listed' }] }
      return method === 'tools/call' ? { jsonrpc: '2.0', id, error: { code: -1, message: 'no' } } : undefined
    })
    const other = await bed.upstream('other')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', server.port), staticTarget('b', other.port)] } })
    const { post } = await begin(gateway.url)
    await post(call('tools/call', { name: 'a_listed' }))
    await post(call('tools/list'))
    await post(call('tools/call', { name: 'a_listed' }))
    expect(counts(gateway)).toEqual({ unknown: 1, listed: 1 })
  })
})

test('messages are counted, but not GET and DELETE (row 46)', async () => {
  const { gateway, post, id } = await start()
  await post(call('tools/call', { name: 'a_echo' }))
  await post(call('tools/call', { name: 'z_echo' }))
  await post(call('resources/read', { uri: 'b+memo:x' }))
  await post(call('made/up'))
  await send(gateway.url, 'DELETE', { 'mcp-session-id': id })
  const lines = [...[...gateway.registry.expose('text')].join('').matchAll(/^proxy_mcp_requests_total\{(.*)\} (\d+)$/gm)].map(([, labels = '', count]) => {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? ''
    return `${label('method')} ${label('resource_type')} ${label('server')} ${label('resource')} ${label('route')} ${count}`
  })
  expect(lines.toSorted()).toEqual([
    'initialize unknown unknown unknown ns/r 1',
    'notifications/initialized unknown unknown unknown ns/r 1',
    'other unknown unknown unknown ns/r 1',
    'resources/read resource b memo:x ns/r 1',
    'tools/call tool a echo ns/r 1',
    'tools/call unknown unknown unknown ns/r 1',
  ])
})

test('the trace context of a request is sent to the target in headers and `_meta` (row 47)', async () => {
  const { post, one } = await start()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await post(call('tools/call', { name: 'a_echo', arguments: { text: 'x' }, _meta: { own: 1 } }), { traceparent, tracestate: 'a=1' })
  const { headers, body } = one.received.at(-1) ?? {}
  expect(headers).toMatchObject({ traceparent, tracestate: 'a=1' })
  expect(body?.params?.['_meta']).toEqual({ own: 1, traceparent, tracestate: 'a=1' })
})

describe('messages of HTTP+SSE clients', () => {
  async function connect() {
    const one = await bed.upstream('one')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const controller = new AbortController()
    bed.onClose(async () => controller.abort())
    const stream = await fetch(new URL('/sse', gateway.url), { signal: controller.signal })
    const first = new TextDecoder().decode((await stream.body?.getReader().read())?.value)
    const path = /^data: (.*)$/m.exec(first)?.[1] ?? ''
    return { one, gateway, path, post: (body: object, headers = {}) => send(gateway.url, 'POST', { ...MCP_HEADERS, ...headers }, body, path) }
  }

  test.each([
    ['traceparent only', { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }],
    ['baggage only', { baggage: 'a=1' }],
  ])('have the trace context in `_meta` too: %s', async (_, headers) => {
    const { one, post } = await connect()
    expect((await post(initialize(), headers)).status).toBe(202)
    await until('the message', () => one.received.length > 0)
    expect(one.received[0]?.body?.params?.['_meta']).toEqual(headers)
  })

  test('are logged and counted like others', async () => {
    const { gateway, path, post } = await connect()
    await post(initialize())
    await post(call('tools/call', { name: 'echo', arguments: { text: 'x' } }))
    await until('the end of the requests', () => gateway.server.finished.length >= 2)
    const exchange = gateway.server.finished.at(-1)
    expect(logFieldsOf(exchange)).toEqual({
      'mcp.method.name': 'tools/call',
      'mcp.session.id': logIdOf(new URL(path, gateway.url).searchParams.get('sessionId') ?? ''),
      'mcp.target': 'a',
      'mcp.resource.type': 'tool',
      'gen_ai.tool.name': 'echo',
    })
    const text = exchange && evalHost(compileExpression('mcp.tool.arguments.text', 'log'), new ExchangeView(exchange))
    expect(text).toBe('x')
    await until('the count', () =>
      /mcp_requests_total\{method="tools\/call",resource_type="tool",server="a",resource="echo"/.test([...gateway.registry.expose('text')].join('')),
    )
  })
})
