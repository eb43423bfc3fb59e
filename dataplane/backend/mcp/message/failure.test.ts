import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { MCPBackend, Policy } from '#gen/config/types.ts'
import { staticTarget, type McpGateway } from '../testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from '../testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

/** A gateway with a good target `a` and a bad one `b`. */
async function withBad(bad: { readonly port: number }, failureMode: MCPBackend['failureMode'], more: Partial<MCPBackend> = {}): Promise<McpGateway> {
  const one = await bed.upstream('one')
  return bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', bad.port)], ...(failureMode && { failureMode }), ...more } })
}

/** No test server uses port 1. A port that was just closed could be reused by another test. */
const dead = { port: 1 }

describe('failure modes (mcp.md §4.4, row 21)', () => {
  test('FailClosed: an unavailable target fails the session, and the session with the other target is ended', async () => {
    const one = await bed.upstream('one')
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', dead.port)] } })
    const { status, json } = await send(gateway.url, 'POST', MCP_HEADERS, initialize())
    expect([status, json.error?.code]).toEqual([500, -32603])
    await until('the end of the session', () => one.servers.size === 0)
  })

  test('a session that a slow target starts after the failure is ended too', async () => {
    const one = await bed.upstream('one')
    let isLate = false
    const slow = await bed.scripted(({ method }, response, body) => {
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      if (method === 'DELETE') ended.push('slow')
      // The client has its response already.
      const answer = () =>
        response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'late' }).end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
      void until('the failure', () => isLate || method === 'DELETE').then(answer)
    })
    const ended: string[] = []
    const targets = [staticTarget('a', one.port), staticTarget('b', dead.port), staticTarget('c', slow.port)]
    const gateway = await bed.gateway({ mcp: { targets } })
    expect((await send(gateway.url, 'POST', MCP_HEADERS, initialize())).status).toBe(500)
    isLate = true
    await until('the ends of the sessions', () => one.servers.size === 0 && ended.length === 1)
  })

  test.each<[string, (response: ServerResponse) => void]>([
    [
      'with a JSON-RPC error',
      (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'),
    ],
    ['with an HTTP status', (response) => void response.writeHead(400).end('no')],
  ])('a target without announced prompts that rejects prompts/list %s does not fail the list', async (_how, refuse) => {
    const initialized = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    const shy = await bed.answering(({ method }) => (method === 'prompts/list' ? { prompts: [{ name: 'shy' }] } : initialized))
    const bad = await bed.scripted((_, response, { id, method } = {}) => {
      if (method === 'prompts/list') return refuse(response)
      response.writeHead(id === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: initialized }))
    })
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', shy.port), staticTarget('b', bad.port)] } })
    const { post } = await begin(url)
    expect((await post(call('prompts/list'))).json.result?.['prompts']).toEqual([{ name: 'a_shy' }])
  })

  test('FailOpen: an unavailable target is left out of lists and log levels, and calls to it fail', async () => {
    const { url } = await withBad(dead, 'FailOpen')
    const { post } = await begin(url)
    expect((await post(call('tools/list'))).json.result?.['tools']).toHaveLength(3)
    expect((await post(call('ping'))).json.result).toEqual({})
    expect((await post({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' })).status).toBe(202)
    const failed = await post(call('tools/call', { name: 'b_echo' }))
    expect([failed.status, failed.json.error?.code]).toEqual([500, -32603])
  })

  test('FailOpen: a target that responds 404 to initialize is left out', async () => {
    const { port } = await bed.scripted((_, response) => void response.writeHead(404).end('no such page'))
    for (const more of [{}, { sessionRouting: 'Stateless' as const }]) {
      const { url } = await withBad({ port }, 'FailOpen', more)
      const begun = await send(url, 'POST', MCP_HEADERS, initialize())
      const session = begun.headers['mcp-session-id']
      const listed = await send(url, 'POST', { ...MCP_HEADERS, ...(typeof session === 'string' && { 'mcp-session-id': session }) }, call('tools/list'))
      expect(begun.status).toBe(200)
      expect(listed.json.result?.['tools']).toHaveLength(3)
    }
  })

  test('FailOpen, Stateless: requests to all targets are errors if there is no target', async () => {
    const { url } = await bed.gateway({
      mcp: { targets: [{ name: 'none', selector: { targets: [] } }], failureMode: 'FailOpen', sessionRouting: 'Stateless' },
    })
    for (const method of ['tools/list', 'resources/templates/list', 'ping', 'logging/setLevel'])
      expect((await send(url, 'POST', MCP_HEADERS, call(method, { level: 'error' }))).json.error).toEqual({
        code: -32603,
        message: 'no upstreams available',
      })
  })

  test('FailOpen: a session without any available target is an error', async () => {
    const bad = dead
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', bad.port), staticTarget('b', bad.port)], failureMode: 'FailOpen' } })
    expect((await send(gateway.url, 'POST', MCP_HEADERS, initialize())).status).toBe(500)
    gateway.configure({ mcp: { targets: [{ name: 'none', selector: { targets: [] } }], failureMode: 'FailOpen' } })
    expect((await send(gateway.url, 'POST', MCP_HEADERS, initialize())).json.error?.message).toBe('no upstreams available')
  })

  const toolsFail = (answer: object) => bed.answering(({ method, id }) => (method === 'tools/list' ? { jsonrpc: '2.0', id, ...answer } : undefined))
  const broken = () =>
    bed.scripted((_, response, body) => {
      if (body?.method === 'tools/list') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')
      const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
  const paging = () =>
    bed.scripted((_, response, body) => {
      if (body?.method === 'tools/list') return void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
      const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
  const refusing = () =>
    bed.scripted((_, response, body) => {
      if (body?.method === 'tools/list') return void response.writeHead(429, { 'retry-after': '3' }).end('slow down')
      const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })

  test.each<[string, () => Promise<AddressInfo>, number, unknown]>([
    ['a JSON-RPC error', () => toolsFail({ error: { code: -7, message: 'own', data: { a: 1 } } }), 200, { code: -7, message: 'own', data: { a: 1 } }],
    [
      'a result of the wrong type',
      () => toolsFail({ result: { tools: 'none' } }),
      200,
      { code: -32603, message: 'upstream returned a result incompatible with tools/list' },
    ],
    [
      'items without names',
      () => toolsFail({ result: { tools: [{ title: 'x' }] } }),
      200,
      { code: -32603, message: 'upstream returned a result incompatible with tools/list' },
    ],
    [
      'a result that is no object',
      () => toolsFail({ result: null }),
      200,
      { code: -32603, message: 'upstream returned a result incompatible with tools/list' },
    ],
    ['a stream without a response', broken, 200, { code: -32603, message: 'an upstream ended its response without a result' }],
    ['an HTTP status', refusing, 429, undefined],
    ['an HTML page', paging, 500, { code: -32603, message: 'failed to send message: an upstream responded with content type text/html' }],
  ])('a list for which one target returns %s fails with FailClosed and is partial with FailOpen', async (_, bad, status, error) => {
    const closed = await begin((await withBad(await bad(), 'FailClosed')).url)
    const failed = await closed.post(call('tools/list'))
    expect([failed.status, failed.json.error]).toEqual([status, error])
    if (status === 429) expect([failed.text, failed.headers['retry-after']]).toEqual(['slow down', '3'])
    const open = await begin((await withBad(await bad(), 'FailOpen')).url)
    expect((await open.post(call('tools/list'))).json.result?.['tools']).toHaveLength(3)
  })

  test('a target that disconnects during a call is an error of that call', async () => {
    const breaking = await bed.scripted((request, response, body) => {
      if (body?.method === 'tools/call') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
        return void setTimeout(() => request.socket.destroy(), 20)
      }
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
    const { post } = await begin((await withBad(breaking, 'FailOpen')).url)
    const { status, text } = await post(call('tools/call', { name: 'b_x' }))
    expect([status, text]).toEqual([
      200,
      expect.stringMatching(/notifications\/message.*\n\n[^]*"id":1,"error":{"code":-32603,"message":"an upstream broke off its response"/),
    ])
  })

  test('FailOpen: the GET stream stays open although a target failed', async () => {
    const gateway = await withBad(dead, 'FailOpen')
    const { id } = await begin(gateway.url)
    const controller = new AbortController()
    const stream = await fetch(gateway.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })
    expect(stream.status).toBe(200)
    controller.abort()
  })
})

describe('slow and silent targets', () => {
  const silent = (method: string) =>
    bed.scripted((_, response, body) => {
      if (body?.method === method) return
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })

  test('a target without a response fails after the request timeout of the backend', async () => {
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', (await silent('tools/call')).port)] },
      policies: { http: { requestTimeout: '3s' } },
    })
    const { post } = await begin(gateway.url)
    const { status, json } = await post(call('tools/call', { name: 'x' }))
    expect([status, json.error?.message]).toEqual([500, 'failed to send message: timeout'])
  })

  test('the request timeout of the route bounds the time to the response head, not the stream (mcp.md §9)', async () => {
    const { port } = await bed.scripted((_, response, body) => {
      if (body?.method === 'silent') return
      if (body?.method === 'slow') {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        return void setTimeout(() => response.end(`data: {"jsonrpc":"2.0","id":1,"result":{"late":true}}\n\n`), 3500)
      }
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { timeouts: { request: '3s' } } }],
    })
    const { post } = await begin(gateway.url)
    expect((await post(call('slow'))).json.result).toEqual({ late: true })
    expect((await post(call('silent'))).status).toBe(504)
  })

  test('a tool call that the target received is not retried', async () => {
    let calls = 0
    const flaky = await bed.scripted((request, response, body) => {
      if (body?.method === 'tools/call') {
        calls++
        return void request.socket.destroy()
      }
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', flaky.port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { retry: { codes: [503], attempts: 3, backoff: '1ms' } } }],
    })
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/call', { name: 'x' }))).status).toBe(500)
    expect(calls).toBe(1)
  })

  test.each([
    ['tools/call', { name: 'x' }, 1],
    ['vendor/change', {}, 1],
    ['tools/list', {}, 4],
    ['resources/read', { uri: 'file:///x' }, 4],
  ])('only idempotent methods are retried after a status of retry.codes: %s', async (method, params, tries) => {
    let calls = 0
    const busy = await bed.scripted((_, response, body) => {
      if (body?.method === method) return void (++calls && response.writeHead(503).end('busy'))
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', busy.port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic: { retry: { codes: [503], attempts: 3, backoff: '1ms' } } }],
    })
    const { post } = await begin(gateway.url)
    const { status, text } = await post(call(method, params))
    expect([status, text, calls]).toEqual([503, 'busy', tries])
  })

  /** A gateway with one target, which responds 503 to tools/list after `initialize` succeeded. */
  async function withBusyTarget(traffic: NonNullable<Policy['traffic']>): Promise<{ gateway: McpGateway; attempts: (string | undefined)[] }> {
    const attempts: (string | undefined)[] = []
    const { port } = await bed.scripted((request, response, body) => {
      if (body?.method === 'tools/list') {
        attempts.push(request.headers['x-retry-attempt']?.toString())
        return void response.writeHead(503).end('busy')
      }
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response
        .writeHead(body?.id === undefined ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: body?.id, result }))
    })
    const gateway = await bed.gateway({
      mcp: { targets: [staticTarget('a', port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic }],
    })
    return { gateway, attempts }
  }

  test('retries of a call to a target are numbered in x-retry-attempt', async () => {
    const { gateway, attempts } = await withBusyTarget({ retry: { codes: [503], attempts: 2, backoff: '1ms' } })
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/list'))).status).toBe(503)
    expect(attempts).toEqual([undefined, '1', '2'])
  })

  test('the backoff between calls to a target ends at timeouts.request with 504', async () => {
    const { gateway, attempts } = await withBusyTarget({ timeouts: { request: '1s' }, retry: { codes: [503], attempts: 2, backoff: '1h' } })
    const { post } = await begin(gateway.url)
    expect((await post(call('tools/list'))).status).toBe(504)
    expect(attempts).toEqual([undefined])
  })

  test('a client that disconnects during the backoff causes no further call to the target', async () => {
    const { gateway, attempts } = await withBusyTarget({ retry: { codes: [503], attempts: 2, backoff: '1h' } })
    const { id } = await begin(gateway.url)
    const controller = new AbortController()
    const response = fetch(gateway.url, {
      method: 'POST',
      headers: { ...MCP_HEADERS, 'mcp-session-id': id },
      body: JSON.stringify(call('tools/list')),
      signal: controller.signal,
    })
    const settled = Promise.allSettled([response])
    await until('the first attempt', () => attempts.length === 1)
    controller.abort()
    await settled
    await until('the end of the request', () => [...gateway.registry.expose('text')].join('').includes('mcp_requests_total{method="tools/list"'))
    expect(attempts).toEqual([undefined])
  })
})

describe('a target whose event stream has no response within its timeout', () => {
  /** A gateway with a good target `a`, and `b` whose response to the method is a stream in which nothing comes. */
  async function withStalled(method: string, mcp: Partial<MCPBackend> = {}): Promise<URL> {
    const one = await bed.upstream('one')
    const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
    const { port } = await bed.scripted((_, response, body) => {
      if (body?.id === undefined) return void response.writeHead(202).end()
      if (body.method === method) return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    })
    const targets = [staticTarget('a', one.port), staticTarget('b', port, { policies: { http: { requestTimeout: '1s' } } })]
    return (await bed.gateway({ mcp: { targets, ...mcp } })).url
  }
  const list = async (url: URL) => (await (await begin(url)).post(call('tools/list'))).json

  test.each(['initialize', 'tools/list'])('is left out with FailOpen (%s)', async (method) => {
    const tools = ['a_echo', 'a_with_under_score', 'a_link'].map((name): unknown => expect.objectContaining({ name }))
    expect((await list(await withStalled(method, { failureMode: 'FailOpen' }))).result).toEqual({ tools })
  })

  test('does not hold calls of others without prefixes', async () => {
    const { post } = await begin(await withStalled('tools/list', { failureMode: 'FailOpen', prefixMode: 'Never' }))
    expect((await post(call('tools/call', { name: 'echo', arguments: {} }))).json.result).toMatchObject({ content: [{ type: 'text' }] })
  })

  test('fails the list with FailClosed', async () => {
    expect((await list(await withStalled('tools/list'))).error).toEqual({ code: -32603, message: 'an upstream took longer than 1000 ms' })
  })
})
