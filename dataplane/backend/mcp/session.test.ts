import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { staticTarget, testKey, type GatewayConfig } from './testing/gateway.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { begin, call, initialize, MCP_HEADERS, send, until, TestBed } from './testing/test-bed.ts'

let bed: TestBed
beforeEach(() => void (bed = new TestBed()))
afterEach(() => bed.close())

const echo = call('tools/call', { name: 'echo', arguments: { text: 'x' } })
const withSession = (id: string) => ({ ...MCP_HEADERS, 'mcp-session-id': id })

describe('replicas', () => {
  test('resume each other’s sessions for POST, GET and DELETE (row 23)', async () => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } }
    const [first, second] = [await bed.gateway(config), await bed.gateway(config)]
    const { id } = await begin(first.url)
    expect((await send(second.url, 'POST', withSession(id), call('tools/call', { name: 'b_echo', arguments: { text: 'x' } }))).json.result).toMatchObject({
      content: [{ text: 'two: x' }],
    })
    const controller = new AbortController()
    const stream = await fetch(second.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    controller.abort()
    expect((await send(second.url, 'DELETE', { 'mcp-session-id': id })).status).toBe(204)
    await until('the ends of the sessions', () => one.servers.size + two.servers.size === 0)
    expect((await send(second.url, 'POST', withSession(id), echo)).status).toBe(404)
    // On another replica, only the targets know that the session ended.
    expect((await send(first.url, 'POST', withSession(id), call('ping'))).status).toBe(404)
  })

  test('serve all requests of a session in round robin', async () => {
    const one = await bed.upstream('one')
    const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port)] } }
    const urls = (await Promise.all([bed.gateway(config), bed.gateway(config), bed.gateway(config)])).map(({ url }) => url)
    const [first] = urls as [URL]
    const { id } = await begin(first)
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => send(urls[index % 3] ?? first, 'POST', withSession(id), { ...echo, id: index })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(one.servers.size).toBe(1)
  })

  test('accept sessions of their current and previous key only', async () => {
    const one = await bed.upstream('one')
    const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port)] } }
    const { id } = await begin((await bed.gateway(config)).url)
    const next = Buffer.alloc(32, 9)
    const statuses = []
    for (const keys of [[next], [next, testKey]])
      statuses.push((await send((await bed.gateway({ ...config, keys })).url, 'POST', withSession(id), echo)).status)
    expect(statuses).toEqual([404, 200])
  })

  test('reject the session id of another backend with the same targets (row 23)', async () => {
    const one = await bed.upstream('one')
    const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port)] } }
    const { id } = await begin((await bed.gateway(config)).url)
    for (const keys of [[testKey], []]) {
      const own = await begin((await bed.gateway({ ...config, keys })).url)
      const other = await bed.gateway({ ...config, keys, backendKey: 'ns/other' })
      expect((await send(other.url, 'POST', withSession(own.id), echo)).status).toBe(404)
    }
    expect((await send((await bed.gateway({ ...config, backendKey: 'ns/other' })).url, 'POST', withSession(id), echo)).status).toBe(404)
  })

  test('reject a session if the targets changed (row 24)', async () => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
    const { id } = await begin(gateway.url)
    const targets = {
      before: [staticTarget('a', one.port)],
      renamed: [staticTarget('c', one.port)],
      more: [staticTarget('a', one.port), staticTarget('b', two.port)],
    }
    const statuses = []
    for (const now of [targets.renamed, targets.more, targets.before]) {
      gateway.configure({ mcp: { targets: now } })
      statuses.push((await send(gateway.url, 'POST', withSession(id), echo)).status)
    }
    expect(statuses).toEqual([404, 404, 200])
  })
})

describe('endpoints of a Service', () => {
  const targets = [{ name: 'found', selector: { targets: [{ name: 'svc', service: 'ns/svc', port: 80, protocol: 'StreamableHTTP' as const }] } }]

  test('keep their sessions, and new sessions are spread over them (row 25)', async () => {
    const pods = await Promise.all(['p1', 'p2', 'p3'].map((name) => bed.upstream(name)))
    let draws = 0
    // The balancer takes the better of two drawn endpoints. Each is drawn twice in a row, so that all are used, however fast they are.
    const random = (): number => Math.floor((draws++ % 6) / 2) / 3
    const gateway = await bed.gateway({ mcp: { targets }, services: { 'ns/svc': pods.map(({ address }) => address) }, random })
    for (let count = 0; count < 12; count++) {
      const { post } = await begin(gateway.url)
      const texts = []
      for (let request = 0; request < 5; request++) texts.push((await post(echo)).text.match(/p\d/)?.[0])
      expect(new Set(texts).size).toBe(1)
    }
    expect(pods.filter(({ servers }) => servers.size > 0).length).toBeGreaterThan(1)
  })

  test('that were removed or are down lead to 404, so that clients start a new session', async () => {
    // An address that no other test uses: after it is closed, its port cannot be reused.
    const [pod, next] = [await bed.upstream('p1', { host: '127.77.0.1' }), await bed.upstream('p2')]
    const gateway = await bed.gateway({ mcp: { targets }, services: { 'ns/svc': [pod.address] } })
    const { id } = await begin(gateway.url)
    gateway.configure({ services: { 'ns/svc': [next.address] } })
    const gone = await send(gateway.url, 'POST', withSession(id), echo)
    gateway.configure({ services: { 'ns/svc': [pod.address, next.address] } })
    await pod.close()
    const dead = await send(gateway.url, 'POST', withSession(id), echo)
    expect([gone.status, dead.status]).toEqual([404, 404])
  })

  test.each([
    ['Stateful', 'StreamableHTTP'],
    ['Stateless', 'StreamableHTTP'],
    ['Stateful', 'SSE'],
  ] as const)('that refuse connections are skipped when a session starts: %s, %s', async (sessionRouting, protocol) => {
    const pod = await bed.upstream('p1', { transport: protocol === 'SSE' ? 'sse' : 'streamable' })
    // Nothing listens on port 1.
    const dead = ['127.77.0.2', '127.77.0.3', '127.77.0.4'].map((address) => ({ ...pod.address, address, port: 1 }))
    const found = [{ name: 'found', selector: { targets: [{ name: 'svc', service: 'ns/svc', port: 80, protocol }] } }]
    // Draws the first endpoint of those left, so that each session tries all that refuse connections.
    const gateway = await bed.gateway({ mcp: { targets: found, sessionRouting }, services: { 'ns/svc': [...dead, pod.address] }, random: () => 0 })
    for (let count = 0; count < 8; count++) expect((await send(gateway.url, 'POST', MCP_HEADERS, initialize())).status).toBe(200)
  })

  test('that lost their sessions lead to 404, also with several targets', async () => {
    const [one, two] = [await bed.upstream('one'), await bed.upstream('two')]
    const forwarder = await bed.forwarder(two.port)
    const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', forwarder.port)], failureMode: 'FailOpen' } })
    const { post } = await begin(gateway.url)
    await two.close()
    forwarder.to = (await bed.upstream('two')).port
    expect([(await post(call('tools/list'))).status, (await post(call('tools/call', { name: 'b_echo' }))).status]).toEqual([404, 404])
    const client = await bed.client(gateway)
    expect((await client.listTools()).tools).toHaveLength(6)
  })
})

test('DELETE ends the sessions of the targets and invalidates the id (row 26)', async () => {
  const [one, two] = [await bed.upstream('one'), await bed.upstream('two', { transport: 'sessionless' })]
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port), staticTarget('b', two.port)] } })
  const { id, post } = await begin(gateway.url)
  expect((await send(gateway.url, 'DELETE', { 'mcp-session-id': id })).status).toBe(204)
  expect([(await post(call('ping'))).status, (await send(gateway.url, 'DELETE', { 'mcp-session-id': id })).status]).toEqual([404, 404])
  expect([one.log().at(-1), two.log().includes('DELETE')]).toEqual(['DELETE', false])
})

test('200 sessions leave no sessions at the targets after their end (row 52)', async () => {
  const one = await bed.upstream('one')
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] } })
  await Promise.all(
    Array.from({ length: 200 }, async () => {
      const { id, post } = await begin(gateway.url)
      expect((await post(echo)).status).toBe(200)
      expect((await send(gateway.url, 'DELETE', { 'mcp-session-id': id })).status).toBe(204)
    }),
  )
  await until('all connections are closed', () => gateway.server.connections.size === 0)
  await until('the ends of the sessions', () => one.servers.size === 0)
})

test('the stream of a single target with event ids can be resumed (D5)', async () => {
  const seen: unknown[] = []
  const { port } = await bed.scripted((request, response, body) => {
    if (request.method === 'GET') {
      seen.push(request.headers['last-event-id'])
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end('retry: 50\nid: e7\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
    } else if (body?.method === 'initialize') {
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } }
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' }).end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
    } else response.writeHead(202).end()
  })
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
  const { id } = await begin(gateway.url)
  const { text } = await send(gateway.url, 'GET', { accept: 'text/event-stream', 'mcp-session-id': id, 'last-event-id': 'e6' })
  expect([text, seen]).toEqual(['id: e7\nretry: 50\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n', ['e6']])
})

describe('GET for targets without a stream (row 30)', () => {
  test('returns 405 of a single target, the stream of the other one of two, 405 if neither has one', async () => {
    const without = await bed.answering(() => undefined)
    const one = await bed.upstream('one')
    const statusOf = async (...ports: number[]): Promise<number> => {
      const gateway = await bed.gateway({ mcp: { targets: ports.map((port, index) => staticTarget(`t${index}`, port)) } })
      const { id } = await begin(gateway.url)
      const controller = new AbortController()
      const { status } = await fetch(gateway.url, { headers: { accept: 'text/event-stream', 'mcp-session-id': id }, signal: controller.signal })
      controller.abort()
      return status
    }
    expect([await statusOf(without.port), await statusOf(without.port, one.port), await statusOf(without.port, without.port)]).toEqual([405, 200, 405])
  })
})

test('a session id of a target that is too long or not ASCII is ignored', async () => {
  const { port } = await bed.answering(() => undefined, { sessionId: 'x'.repeat(5000) })
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', port)] } })
  const { headers } = await send(gateway.url, 'POST', MCP_HEADERS, initialize())
  expect(String(headers['mcp-session-id']).length).toBeLessThan(300)
})

describe('a session of a user (mcp.md §5.1)', () => {
  const key = makeSigningKey('k')
  const provider = { issuer: 'https://idp.example', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
  const tokenOf = (sub: string) => ({
    authorization: `Bearer ${makeToken(key, { iss: 'https://idp.example', sub, exp: Math.floor(Date.now() / 1000) + 60 })}`,
  })
  const [ann, bob, nobody] = [tokenOf('ann'), tokenOf('bob'), {}]

  test.each<[string, Partial<GatewayConfig>]>([
    ['mcp.authentication', { policies: { mcp: { authentication: { ...provider, mode: 'Optional' } } } }],
    [
      'a JWT policy of the route',
      {
        attached: [
          {
            target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
            traffic: { jwtAuthentication: { mode: 'Optional', providers: [{ issuer: provider.issuer, jwks: provider.jwks }] } },
          },
        ],
      },
    ],
  ])('is closed to other users and to requests without token: %s', async (_, policies) => {
    const one = await bed.upstream('one')
    const config: GatewayConfig = { mcp: { targets: [staticTarget('a', one.port)] }, ...policies }
    const replicas = [await bed.gateway(config), await bed.gateway(config)] as const
    const begun = await send(replicas[0].url, 'POST', { ...MCP_HEADERS, ...ann }, initialize())
    const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
    for (const { url } of replicas) {
      for (const user of [bob, nobody]) {
        expect((await send(url, 'POST', { ...MCP_HEADERS, ...session, ...user }, echo)).status).toBe(404)
        expect((await send(url, 'GET', { ...MCP_HEADERS, ...session, ...user })).status).toBe(404)
        expect((await send(url, 'DELETE', { ...session, ...user })).status).toBe(404)
      }
      expect((await send(url, 'POST', { ...MCP_HEADERS, ...session, ...tokenOf('ann') }, echo)).status).toBe(200)
    }
    expect((await send(replicas[0].url, 'DELETE', { ...session, ...ann })).status).toBe(204)
  })

  test('is closed to other users on /sse too', async () => {
    const one = await bed.upstream('one')
    const { url } = await bed.gateway({
      mcp: { targets: [staticTarget('a', one.port)] },
      policies: { mcp: { authentication: { ...provider, mode: 'Optional' } } },
    })
    const controller = new AbortController()
    bed.onClose(async () => controller.abort())
    const stream = await fetch(new URL('/sse', url), { headers: ann, signal: controller.signal })
    const first = new TextDecoder().decode((await stream.body?.getReader().read())?.value)
    const path = /^data: (.*)$/m.exec(first)?.[1] ?? ''
    for (const user of [bob, nobody]) expect((await send(url, 'POST', { ...MCP_HEADERS, ...user }, initialize(), path)).status).toBe(404)
    expect((await send(url, 'POST', { ...MCP_HEADERS, ...ann }, initialize(), path)).status).toBe(202)
  })
})

test('a forged session id with a line break in the session id of the target is 404', async () => {
  const one = await bed.upstream('one')
  const gateway = await bed.gateway({ mcp: { targets: [staticTarget('a', one.port)] }, keys: [] })
  const { id } = await begin(gateway.url)
  const [version, ...compressed] = Buffer.from(id, 'base64url')
  const content = JSON.parse(inflateRawSync(Buffer.from(compressed)).toString()) as [string[][]]
  for (const state of content[0]) state[1] = 'x\r\nx-injected: 1'
  const forged = Buffer.concat([Buffer.of(version ?? 0), deflateRawSync(JSON.stringify(content))]).toString('base64url')
  for (const method of ['POST', 'GET', 'DELETE'])
    expect((await send(gateway.url, method, withSession(forged), method === 'POST' ? echo : undefined)).status).toBe(404)
})
