import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { gzipSync } from 'node:zlib'
import type { Policy } from '#gen/config/types.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { staticTarget, type GatewayConfig, type McpGateway } from './testing/gateway.ts'
import { begin, call, initialize, MCP_HEADERS, send, TestBed, type RawAnswer } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const OLD = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const notification = { jsonrpc: '2.0', method: 'notifications/initialized' }
const gist = ({ status, json, text }: RawAnswer): unknown[] => [status, json.error?.code ?? text]

describe('checks of requests, in order (mcp.md §3.1)', () => {
  let gateway: McpGateway
  let log: () => string[]
  beforeEach(async () => {
    const one = await bed.upstream('one')
    log = one.log
    gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
  })

  test.each<[string, string, Record<string, string>, unknown, unknown[]]>([
    ['another method', 'PUT', MCP_HEADERS, {}, [405, 'method not allowed']],
    [
      'Accept without JSON',
      'POST',
      { ...MCP_HEADERS, accept: 'text/event-stream' },
      initialize(),
      [406, 'Accept must have both application/json and text/event-stream'],
    ],
    [
      'Accept without event streams',
      'POST',
      { ...MCP_HEADERS, accept: 'application/json' },
      initialize(),
      [406, 'Accept must have both application/json and text/event-stream'],
    ],
    ['Accept of */*', 'POST', { ...MCP_HEADERS, accept: '*/*' }, initialize(), [406, 'Accept must have both application/json and text/event-stream']],
    ['another content type', 'POST', { ...MCP_HEADERS, 'content-type': 'text/plain' }, initialize(), [415, 'Content-Type must be application/json']],
    ['a body that is not JSON', 'POST', MCP_HEADERS, '{"jsonrpc"', [400, 'the body is not JSON in UTF-8: send one JSON-RPC 2.0 message']],
    ['a body that is not UTF-8', 'POST', MCP_HEADERS, Buffer.from([0x22, 0xff, 0x22]), [400, 'the body is not JSON in UTF-8: send one JSON-RPC 2.0 message']],
    ['no body', 'POST', MCP_HEADERS, undefined, [400, 'the body is not JSON in UTF-8: send one JSON-RPC 2.0 message']],
    ['a batch', 'POST', MCP_HEADERS, [initialize()], [400, 'JSON-RPC batches are not supported: send each message in a request of its own']],
    [
      'another version of JSON-RPC',
      'POST',
      MCP_HEADERS,
      { ...initialize(), jsonrpc: '1.0' },
      [400, 'the body is not a JSON-RPC 2.0 message: jsonrpc must be "2.0"'],
    ],
    [
      'an id that is an object',
      'POST',
      MCP_HEADERS,
      { ...initialize(), id: {} },
      [400, 'the body is not a JSON-RPC 2.0 message: id must be a string or a number'],
    ],
    [
      'params that are an array',
      'POST',
      MCP_HEADERS,
      { ...initialize(), params: [] },
      [400, 'the body is not a JSON-RPC 2.0 message: params must be an object'],
    ],
    [
      'nothing that is a message',
      'POST',
      MCP_HEADERS,
      { jsonrpc: '2.0', id: 1 },
      [400, 'the body is not a JSON-RPC 2.0 message: it has neither method, nor result, nor error'],
    ],
    [
      'very many members',
      'POST',
      MCP_HEADERS,
      `[${'1,'.repeat(140_000)}1]`,
      [400, 'the body is too complex: it has more than 100000 members and elements (frontend.http.maxJsonMembers)'],
    ],
    [
      'very deep nesting',
      'POST',
      MCP_HEADERS,
      '['.repeat(100_000),
      [400, 'the body is too complex: it nests deeper than 512 levels (frontend.http.maxJsonDepth)'],
    ],
    ['a body of 3 MiB', 'POST', MCP_HEADERS, 'x'.repeat(3 * 1024 * 1024), [413, 'request body too large']],
    ['an unsupported revision', 'POST', { ...MCP_HEADERS, 'mcp-protocol-version': '2027-01-01' }, call('tools/list'), [400, -32022]],
    ['an unknown revision at initialize', 'POST', { ...MCP_HEADERS, 'mcp-protocol-version': '1999-01-01' }, initialize(), [400, -32022]],
    [
      'GET under a revision that does not exist',
      'GET',
      { ...MCP_HEADERS, 'mcp-protocol-version': '2027-01-01', 'mcp-session-id': 'x' },
      undefined,
      [400, -32022],
    ],
    ['DELETE with an unknown revision', 'DELETE', { 'mcp-protocol-version': '1', 'mcp-session-id': 'x' }, undefined, [400, -32022]],
    [
      'header and _meta that differ',
      'POST',
      { ...MCP_HEADERS, 'mcp-protocol-version': '2025-03-26' },
      call('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }),
      [400, -32020],
    ],
    ['different revisions in header and body', 'POST', { ...MCP_HEADERS, 'mcp-protocol-version': '2025-03-26' }, initialize('2025-06-18'), [400, -32020]],
    [
      'a request without session (row 22)',
      'POST',
      MCP_HEADERS,
      call('tools/list'),
      [400, 'session header is required: send Mcp-Session-Id, or initialize first'],
    ],
    [
      'a notification without session (row 22)',
      'POST',
      MCP_HEADERS,
      notification,
      [400, 'session header is required: send Mcp-Session-Id, or initialize first'],
    ],
    [
      'a response without session (row 22)',
      'POST',
      MCP_HEADERS,
      { jsonrpc: '2.0', id: 1, result: {} },
      [400, 'session header is required: send Mcp-Session-Id, or initialize first'],
    ],
    ['an unknown session (D2)', 'POST', { ...MCP_HEADERS, 'mcp-session-id': 'made-up' }, call('tools/list'), [404, 'session not found']],
    ['GET without event streams', 'GET', { accept: 'application/json', 'mcp-session-id': 'x' }, undefined, [406, 'Accept must have text/event-stream']],
    ['GET without session', 'GET', { accept: 'text/event-stream' }, undefined, [400, 'session ID is required: send Mcp-Session-Id']],
    ['GET of an unknown session', 'GET', { accept: 'text/event-stream', 'mcp-session-id': 'made-up' }, undefined, [404, 'session not found']],
    ['DELETE without session', 'DELETE', {}, undefined, [400, 'session ID is required: send Mcp-Session-Id']],
    ['DELETE of an unknown session', 'DELETE', { 'mcp-session-id': 'made-up' }, undefined, [404, 'session not found']],
    ['a request method without id', 'POST', MCP_HEADERS, { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo' } }, [400, -32600]],
    ['initialize without id', 'POST', MCP_HEADERS, { ...initialize(), id: undefined }, [400, -32600]],
    ['a doubled method', 'POST', MCP_HEADERS, '{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list","params":{"name":"echo"}}', [400, -32600]],
    [
      'a doubled method with an escape',
      'POST',
      MCP_HEADERS,
      '{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools/call","method":"tools/list","params":{"name":"echo"}}',
      [400, -32600],
    ],
  ])('reject %s', async (_, method, headers, body, expected) => {
    expect(gist(await send(gateway.url, method, headers, body))).toEqual(expected)
    expect(log()).toEqual([])
  })

  test.each([1, 2])('request methods without id reach none of %i targets, notifications reach all', async (count) => {
    const servers = [await bed.upstream('one'), await bed.upstream('two')].slice(0, count)
    const { url } = await bed.gateway({ mcp: { targets: servers.map(({ port }, index) => staticTarget(['a', 'b'][index] ?? '', port)) } })
    const { post } = await begin(url)
    const before = servers.map((server) => server.log())
    for (const method of ['tools/call', 'tools/list', 'resources/read', 'ping', 'unknown', 'notificationsx'])
      expect(gist(await post({ jsonrpc: '2.0', method, params: { name: 'echo' } }))).toEqual([400, -32600])
    expect(servers.map((server) => server.log())).toEqual(before)
    expect((await post({ jsonrpc: '2.0', method: 'notifications/custom' })).status).toBe(202)
    expect(servers.map((server) => server.log())).toEqual(before.map((methods) => [...methods, 'notifications/custom']))
  })

  test.each<[string, object, Record<string, string>]>([
    ['in the body of initialize', initialize('2026-07-28'), {}],
    ['in the header too', initialize('2026-07-28'), { 'mcp-protocol-version': '2026-07-28' }],
  ])('initialize with the revision that has no initialize gets those that have one: %s (D9)', async (_, body, headers) => {
    const { status, json } = await send(gateway.url, 'POST', { ...MCP_HEADERS, ...headers }, body)
    expect([status, json.error]).toEqual([400, { code: -32022, message: expect.any(String), data: { supported: OLD, requested: '2026-07-28' } }])
    const unknown = await send(gateway.url, 'POST', { ...MCP_HEADERS, 'mcp-protocol-version': '1999-01-01' }, initialize('1999-01-01'))
    expect(unknown.json.error).toEqual({ code: -32022, message: expect.any(String) })
  })

  test('405 names the allowed methods: fewer without sessions and for HTTP+SSE', async () => {
    const allowOf = async (path?: string) => (await send(gateway.url, 'PUT', {}, undefined, path)).headers.allow
    expect([await allowOf(), await allowOf('/sse')]).toEqual(['GET, POST, DELETE', 'GET, POST'])
    gateway.configure({ mcp: { targets: [staticTarget('a', 1)], sessionRouting: 'Stateless' } })
    expect([await allowOf(), (await send(gateway.url, 'GET')).headers.allow]).toEqual(['POST', 'POST'])
  })

  test.each([...OLD, undefined])('protocol revision %s is supported', async (version) => {
    const { post } = await begin(gateway.url)
    expect((await post(call('ping'), version === undefined ? {} : { 'mcp-protocol-version': version })).status).toBe(200)
  })
})

describe('forms of responses (mcp.md §3.3)', () => {
  test('requests get an event stream or JSON like the response of a single target, and a stream with several', async () => {
    const [streaming, plain] = [await bed.upstream('one'), await bed.upstream('two', { isJson: true })]
    const typeOf = async (...ports: number[]) => {
      const { url } = await bed.gateway({ mcp: { targets: ports.map((port, index) => staticTarget(`t${index}`, port)) } })
      const { headers, text } = await (await begin(url)).post(call('ping'))
      return [headers['content-type'], headers['cache-control'], text]
    }
    expect(await typeOf(streaming.port)).toEqual(['text/event-stream', 'no-cache', expect.stringMatching(/^event: message\ndata: {.*}\n\n$/)])
    expect(await typeOf(plain.port)).toEqual(['application/json', undefined, '{"result":{},"jsonrpc":"2.0","id":1}'])
    expect(await typeOf(plain.port, plain.port)).toEqual(['text/event-stream', 'no-cache', 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'])
  })

  test('notifications and responses get 202 without body, DELETE gets 204', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { post, id } = await begin(url)
    const answers = [await post(notification), await post({ jsonrpc: '2.0', id: 9, result: {} }), await send(url, 'DELETE', { 'mcp-session-id': id })]
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [202, ''],
      [202, ''],
      [204, ''],
    ])
  })

  test.each([1, 2])('a 200 of a target for a notification counts as accepted: %s target(s)', async (count) => {
    const { port } = await bed.scripted((_, response, body) => {
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(body?.id === undefined ? 'null' : JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    })
    const { url } = await bed.gateway({ mcp: { targets: ['a', 'b'].slice(0, count).map((name) => staticTarget(name, port)) } })
    const { status, text } = await (await begin(url)).post(notification)
    expect([status, text]).toEqual([202, ''])
  })

  test.each(['mcp', '/mcp'])('a target path works with and without a leading slash: %s', async (path) => {
    const one = await bed.upstream('one')
    await begin((await bed.gateway({ mcp: { targets: [staticTarget('a', one.port, { path })] } })).url)
    expect(one.received[0]?.path).toBe('/mcp')
  })

  test('an HTTP error of a target is passed on without its session id (row 50)', async () => {
    const port = (
      await bed.scripted((_, response) => {
        response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="https://a/b"', 'x-own': '1', 'mcp-session-id': 'secret' }).end('go away')
      })
    ).port
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
    const { status, headers, text } = await send(url, 'POST', MCP_HEADERS, initialize())
    expect([status, headers['www-authenticate'], headers['x-own'], headers['mcp-session-id'], text]).toEqual([
      401,
      'Bearer resource_metadata="https://a/b"',
      '1',
      undefined,
      'go away',
    ])
  })

  test('an unreachable target is a 500 with a JSON-RPC error (mcp.md §3.2)', async () => {
    // No server listens on port 1.
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', 1)] } })
    const { status, json } = await send(url, 'POST', MCP_HEADERS, initialize())
    expect([status, json.id, json.error?.code, json.error?.message]).toEqual([500, 'init', -32603, expect.stringContaining('failed to send message: ')])
  })

  test('compressed responses are decoded although requests do not accept them', async () => {
    const port = (
      await bed.scripted((request, response, body) => {
        const message = JSON.stringify({ jsonrpc: '2.0', id: body?.id, result: { from: request.headers['accept-encoding'] } })
        const events = body?.method === 'ping'
        response.writeHead(200, { 'content-type': events ? 'text/event-stream' : 'application/json', 'content-encoding': 'gzip' })
        response.end(gzipSync(events ? `data: ${message}\n\n` : message))
      })
    ).port
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port)], sessionRouting: 'Stateful' } })
    const init = await send(url, 'POST', { ...MCP_HEADERS, 'accept-encoding': 'gzip' }, { ...initialize(), method: 'initialize' })
    expect(init.json.error?.message).toContain('incompatible')
    expect(init.headers['content-encoding']).toBeUndefined()
  })
})

describe('request headers to targets (mcp.md §3.4)', () => {
  test('are those of the client, overridden by the gateway’s, without its session id (row 47)', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { post, id } = await begin(url)
    await post(call('tools/call', { name: 'echo', arguments: { text: 'x' } }), {
      'x-own': '1',
      'mcp-method': 'forged',
      'mcp-name': 'forged',
      'mcp-protocol-version': '2025-06-18',
      'last-event-id': '7',
      authorization: 'Bearer t',
      connection: 'x-hop',
      'x-hop': '1',
    })
    const headers = one.received.at(-1)?.headers ?? {}
    expect(headers).toMatchObject({
      'x-own': '1',
      'mcp-method': 'tools/call',
      'mcp-name': 'echo',
      'mcp-protocol-version': '2025-06-18',
      authorization: 'Bearer t',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    })
    expect([headers['mcp-session-id'] === id, one.servers.has(String(headers['mcp-session-id'])), headers['last-event-id'], headers['x-hop']]).toEqual([
      false,
      true,
      undefined,
      undefined,
    ])
  })

  test.each([
    ['line ends', 'a\r\nx-injected: 1'],
    ['characters beyond ASCII', 'wetter_köln'],
    ['spaces at its edges', ' a '],
    ['no characters', ''],
    ['the marks of an encoded name', '=?base64?YQ==?='],
    ['a NUL', 'a\0b'],
  ])('encode a tool name with %s', async (_, name) => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    await (await begin(url)).post(call('tools/call', { name }))
    const { headers, body } = one.received.at(-1) ?? {}
    expect([headers?.['mcp-name'], headers?.['x-injected'], body?.params?.['name']]).toEqual([
      `=?base64?${Buffer.from(name).toString('base64')}?=`,
      undefined,
      name,
    ])
  })

  test('have the credentials of the target in place of the client’s', async () => {
    const one = await bed.upstream('one')
    const traffic: Policy['traffic'] = { headerModifiers: { request: { remove: ['authorization'] } } }
    const { url } = await bed.gateway({
      mcp: { targets: [staticTarget('a', one.port)] },
      attached: [{ target: { kind: 'Gateway', namespace: 'ns', name: 'gw' }, traffic }],
      policies: { auth: { key: 'own-key' } },
    })
    await send(url, 'POST', { ...MCP_HEADERS, authorization: 'Bearer client' }, initialize())
    expect(one.received[0]?.headers.authorization).toBe('Bearer own-key')
  })
})

test('OAuth documents of a single target are passed through (row 43)', async () => {
  const port = (
    await bed.scripted(
      (request, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'access-control-allow-origin': '*' })
          .end(JSON.stringify({ path: request.url, method: request.method })),
    )
  ).port
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
  const path = '/.well-known/oauth-protected-resource/mcp?x=1'
  for (const method of ['GET', 'OPTIONS']) {
    const { status, text, headers } = await send(url, method, {}, undefined, path)
    expect([status, JSON.parse(text), headers['access-control-allow-origin']]).toEqual([200, { path, method }, '*'])
  }
  const several = await bed.gateway({ mcp: { targets: [staticTarget('a', port), staticTarget('b', port)] } })
  expect((await send(several.url, 'GET', {}, undefined, path)).status).toBe(406)
})

test('a FailClosed backend without targets responds 503', async () => {
  const { url } = await bed.gateway({ mcp: { targets: [{ name: 'none', selector: { targets: [] } }] } })
  expect(gist(await send(url, 'POST', MCP_HEADERS, initialize()))).toEqual([503, 'no backends configured'])
})

describe('a config that cannot be enforced', () => {
  const authentication = { jwks: { inline: '{"keys":[]}' } }
  test.each<[string, (port: number) => GatewayConfig, number]>([
    ['authentication of one target', (port) => ({ mcp: { targets: [staticTarget('a', port, { policies: { mcp: { authentication } } })] } }), 500],
    ['a target name with a separator', (port) => ({ mcp: { targets: [staticTarget('a_b', port)] } }), 500],
    ['two targets with one name', (port) => ({ mcp: { targets: [staticTarget('a', port), staticTarget('a', port)] } }), 500],
    ['missing keys', (port) => ({ mcp: { targets: [staticTarget('a', port)] }, policies: { mcp: { authentication } } }), 401],
  ])('rejects all requests: %s', async (_, configOf, status) => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway(configOf(one.port))
    const answer = await send(url, 'POST', MCP_HEADERS, initialize())
    expect(answer.status).toBe(status)
    if (status === 500) expect(answer.text).toBe('failed to apply filters')
    expect(one.log()).toEqual([])
  })
})

test('a valid token is admitted, and rules can read its claims (row 36)', async () => {
  const one = await bed.upstream('one')
  const key = makeSigningKey('k')
  const authentication = { issuer: 'https://idp.example', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
  const authorization = { policy: { matchExpressions: ['jwt.sub == "ann" && mcp.tool.name == "echo"'] } }
  const { url } = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, policies: { mcp: { authentication, authorization } } })
  const listed = async (sub: string) => {
    const bearer = { ...MCP_HEADERS, authorization: `Bearer ${makeToken(key, { iss: 'https://idp.example', sub, exp: Math.floor(Date.now() / 1000) + 60 })}` }
    const { headers } = await send(url, 'POST', bearer, initialize())
    const { json } = await send(url, 'POST', { ...bearer, 'mcp-session-id': String(headers['mcp-session-id']) }, call('tools/list'))
    return ((json.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
  }
  expect([await listed('ann'), await listed('bob')]).toEqual([['echo'], []])
  expect(one.received.every(({ headers }) => headers.authorization === undefined)).toBe(true)
})
