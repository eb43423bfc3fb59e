import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { startIdentityProvider, type IdentityProvider } from '../../harness/identity/identity-provider.ts'
import { findFreePort } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'
import { startOAuthEnvironment, type OAuthEnvironment, type McpRoute } from './environment.ts'

// Rows of mcp.md §16, tested with operator and data plane as programs.
const closing: (() => Promise<unknown>)[] = []
let idp: IdentityProvider
let other: IdentityProvider
let environment: OAuthEnvironment
let routes: McpRoute[]

beforeAll(async () => {
  idp = await startIdentityProvider({ name: 'idp', style: 'keycloak' })
  other = await startIdentityProvider({ name: 'other', style: 'keycloak' })
  const deadPort = await findFreePort()
  for (const each of [idp, other]) closing.unshift(() => each.close())
  const jwks = { jwksPath: idp.keysPath, backendRef: { group: 'proxy.dev', kind: 'ProxyBackend', name: 'idp' } }
  const authentication = { issuer: idp.issuer, audiences: ['mcp'], provider: 'IdpKind2', jwks }
  const cors = {
    allowOrigins: ['https://app.example.com'],
    allowMethods: ['GET', 'POST', 'DELETE'],
    allowHeaders: ['content-type', 'authorization', 'mcp-protocol-version', 'mcp-session-id'],
    exposeHeaders: ['mcp-session-id', 'www-authenticate'],
  }
  const provider = { issuer: idp.issuer, audiences: ['mcp'], jwks: { remote: jwks } }
  routes = [
    { name: 'strict', policies: { mcp: { authentication } }, traffic: { cors } },
    { name: 'optional', policies: { mcp: { authentication: { ...authentication, mode: 'Optional' } } } },
    { name: 'permissive', policies: { mcp: { authentication: { ...authentication, mode: 'Permissive' } } } },
    { name: 'twice', policies: { mcp: { authentication } }, traffic: { jwtAuthentication: { providers: [provider] } } },
    { name: 'passed', policies: { mcp: { authentication }, auth: { passthrough: {} } } },
    { name: 'rules', policies: { mcp: { authentication, authorization: allow('jwt.sub == "ann"') } } },
    {
      name: 'described',
      policies: {
        mcp: {
          authentication: {
            ...authentication,
            resourceMetadata: { resource: 'https://mcp.example.com/described', scopesSupported: ['a', 'b'], resource_name: 'D' },
          },
        },
      },
    },
    { name: 'down', policies: { mcp: { authentication: { ...authentication, issuer: `http://127.0.0.1:${deadPort}/realms/shop` } } } },
    { name: 'open' },
    { name: 'limited', traffic: { rateLimit: { local: [{ requests: 5, unit: 'Hours' }] } } },
  ]
  environment = await startOAuthEnvironment(() => routes, [{ name: 'idp', port: idp.port }])
  closing.unshift(() => environment.stop())
  await environment.waitForKeys('/strict', await token())
}, 240_000)
afterAll(async () => {
  for (const close of closing) await close()
})
beforeEach(() => {
  idp.requestLog.splice(0)
  environment.upstream.received.splice(0)
})

const allow = (...matchExpressions: string[]): object => ({ policy: { matchExpressions } })
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds
const token = (change: object = {}, by = idp): Promise<string> => by.sign({ iss: idp.issuer, aud: 'mcp', sub: 'bob', exp: inSeconds(300), ...change })

/** Sends `initialize` to a path, or a request with another method. */
async function call(path: string, { method = 'POST', bearer, headers = {} }: { method?: string; bearer?: string; headers?: Record<string, string> } = {}) {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'e2e', version: '1' } }
  const response = await fetch(`${environment.origin}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...headers,
    },
    ...(method === 'POST' && { body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) }),
  })
  const text = await response.text()
  return { status: response.status, header: (name: string) => response.headers.get(name), text, json: () => JSON.parse(text) as Record<string, unknown> }
}

async function connect(path: string, bearer?: string): Promise<Client> {
  const client = new Client({ name: 'e2e', version: '1' })
  const requestInit = bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${environment.origin}${path}`), { requestInit }))
  return client
}

describe('authentication (rows 37, 38)', () => {
  test.each<[string, () => Promise<string> | undefined]>([
    ['no token', () => undefined],
    ['a token that another key signed', () => token({}, other)],
    ['a token for another audience', () => token({ aud: 'shop' })],
    ['a token of another issuer', () => token({ iss: other.issuer })],
    ['an expired token', () => token({ exp: inSeconds(-300) })],
    ['a token without expiration', () => token({ exp: undefined })],
    ['a malformed token', () => Promise.resolve('nonsense')],
  ])('%s gets 401 with a challenge that contains the metadata URL', async (_, make) => {
    const bearer = await make()
    const { status, header, json } = await call('/strict/deeper?q=1', { ...(bearer !== undefined && { bearer }), headers: { 'x-forwarded-proto': 'https' } })
    const at = `${environment.origin.replace('http:', 'https:')}/.well-known/oauth-protected-resource/strict/deeper`
    expect([status, header('www-authenticate')]).toEqual([401, `Bearer resource_metadata="${at}"`])
    expect(json()).toEqual({ error: 'unauthorized', error_description: 'JWT token required' })
    expect(environment.upstream.received).toEqual([])
  })

  test.each<[string, string | undefined, number]>([
    ['strict', 'good', 200],
    ['optional', undefined, 200],
    ['optional', 'bad', 401],
    ['optional', 'good', 200],
    ['permissive', undefined, 200],
    ['permissive', 'bad', 200],
    ['twice', 'good', 401],
  ])('route %s with token %s returns status %i', async (name, kind, expected) => {
    const bearer = kind === undefined ? undefined : await token(kind === 'good' ? {} : { aud: 'shop' })
    expect((await call(`/${name}`, bearer === undefined ? {} : { bearer })).status).toBe(expected)
  })

  test('the log contains the reason and the subject', async () => {
    expect((await call('/strict', { bearer: await token({ aud: 'shop' }) })).status).toBe(401)
    await environment.dataplane.program.waitForLine(/http\.path=\/strict.*http\.status=401.*InvalidAudience/)
    await call('/strict', { bearer: await token() })
    await environment.dataplane.program.waitForLine(/http\.path=\/strict.*jwt\.sub=bob/)
  })
})

describe('the MCP server (row 47)', () => {
  test.each<[string, boolean]>([
    ['strict', false],
    ['optional', false],
    ['passed', true],
  ])('on route %s receives the token: %s', async (name, isPassed) => {
    const bearer = await token()
    expect((await call(`/${name}`, { bearer })).status).toBe(200)
    expect(environment.upstream.received.map(({ headers }) => headers.authorization)).toEqual([isPassed ? `Bearer ${bearer}` : undefined])
  })
})

describe('authorization rules (row 36)', () => {
  test('use the claims of the token, and a changed rule applies to existing sessions', async () => {
    const [ann, bob] = [await connect('/rules', await token({ sub: 'ann' })), await connect('/rules', await token())]
    const namesOf = async (client: Client): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name)
    expect([await namesOf(ann), await namesOf(bob)]).toEqual([['search', 'delete'], []])
    await expect(bob.callTool({ name: 'search' })).rejects.toMatchObject({ code: -32602, message: expect.stringContaining('Unknown tool: search') })
    const authorization = allow('jwt.sub == "bob" && mcp.tool.name == "search"')
    await environment.apply(
      routes.map((route) => (route.name === 'rules' ? { ...route, policies: { mcp: { ...(route.policies as { mcp: object }).mcp, authorization } } } : route)),
    )
    await waitUntil('the new rule', async () => (await namesOf(bob)).join() === 'search')
    expect([await namesOf(ann), (await bob.callTool({ name: 'search' })).content]).toMatchObject([[], [{ text: 'search in documents: ""' }]])
    await expect(bob.callTool({ name: 'delete' })).rejects.toMatchObject({ code: -32602 })
    await Promise.all([ann.close(), bob.close()])
  })
})

describe('metadata documents (rows 39 to 41)', () => {
  test('the protected resource metadata has computed and configured members', async () => {
    const plain = await call('/.well-known/oauth-protected-resource/strict', { method: 'GET' })
    expect([plain.status, plain.header('content-type'), plain.header('access-control-allow-origin')]).toEqual([200, 'application/json', '*'])
    expect(plain.json()).toEqual({
      resource: `${environment.origin}/strict`,
      authorization_servers: [`${environment.origin}/strict`],
      mcp_protocol_version: '2025-06-18',
      resource_type: 'mcp-server',
    })
    expect((await call('/.well-known/oauth-protected-resource/described', { method: 'GET' })).json()).toMatchObject({
      resource: 'https://mcp.example.com/described',
      scopes_supported: ['a', 'b'],
      resource_name: 'D',
    })
    expect((await call('/described')).header('www-authenticate')).toContain('"https://mcp.example.com/.well-known/oauth-protected-resource/described"')
  })

  test('the authorization server metadata has the gateway as issuer and registration endpoint', async () => {
    const { status, header, json } = await call('/.well-known/oauth-authorization-server/strict', { method: 'GET' })
    expect([status, header('access-control-allow-origin')]).toEqual([200, '*'])
    expect(json()).toMatchObject({
      issuer: `${environment.origin}/strict`,
      authorization_endpoint: `${idp.issuer}/protocol/openid-connect/auth`,
      registration_endpoint: `${environment.origin}/.well-known/oauth-authorization-server/strict/client-registration`,
    })
  })

  test('an unreachable provider returns 500 and is named in the log', async () => {
    const { status, text } = await call('/.well-known/oauth-authorization-server/down', { method: 'GET' })
    expect([status, text]).toEqual([500, ''])
    await environment.dataplane.program.waitForLine(/http\.path=\/\.well-known\/oauth-authorization-server\/down.*http\.status=500/)
  })

  test('registrations reach the provider once, and their preflights do not', async () => {
    const path = '/.well-known/oauth-authorization-server/rules/client-registration'
    const preflight = await call(path, { method: 'OPTIONS', headers: { origin: 'https://page.example', 'access-control-request-method': 'POST' } })
    expect([preflight.status, preflight.header('access-control-allow-origin'), preflight.header('access-control-allow-methods')]).toEqual([
      204,
      '*',
      'POST, OPTIONS',
    ])
    const registrations = (): string[] => idp.requestLog.filter((line) => line.includes('clients-registrations'))
    expect(registrations()).toEqual([])
    const { status, header, text } = await call(path, { headers: { origin: 'https://page.example' } })
    // This response comes from the provider: an `initialize` is not a registration.
    expect([status, header('access-control-allow-origin')]).toEqual([400, '*'])
    expect(JSON.parse(text)).toMatchObject({ error: 'invalid_redirect_uri' })
    expect(registrations()).toHaveLength(1)
  })

  test('without authentication in the gateway, metadata requests reach the server (row 43)', async () => {
    await call('/.well-known/oauth-protected-resource/open', { method: 'GET' })
    expect(environment.upstream.received.map(({ line }) => line)).toEqual(['GET /.well-known/oauth-protected-resource/open'])
  })
})

describe('policies of the route', () => {
  test('cors allows preflights without a token, and pages can read a 401 (row 44)', async () => {
    const origin = 'https://app.example.com'
    const preflight = await call('/strict', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type,mcp-protocol-version' },
    })
    expect([preflight.status < 300, preflight.header('access-control-allow-origin')]).toEqual([true, origin])
    const refused = await call('/strict', { headers: { origin } })
    expect([refused.status, refused.header('access-control-allow-origin')]).toEqual([401, origin])
    expect(refused.header('access-control-expose-headers')).toContain('www-authenticate')
  })

  test('cors of the route replaces the default CORS headers of metadata documents', async () => {
    const read = async (origin: string) =>
      (await call('/.well-known/oauth-protected-resource/strict', { method: 'GET', headers: { origin } })).header('access-control-allow-origin')
    expect([await read('https://app.example.com'), await read('https://page.example')]).toEqual(['https://app.example.com', '*'])
  })

  test('rateLimit counts HTTP requests, of which a handshake has three (row 45)', async () => {
    const client = await connect('/limited')
    await waitUntil('the stream of notifications', () => environment.upstream.received.some(({ line }) => line.startsWith('GET')))
    for (const text of ['1', '2']) expect(await client.callTool({ name: 'search', arguments: { text } })).toHaveProperty('content')
    await expect(client.callTool({ name: 'search' })).rejects.toMatchObject({ code: 429 })
    await client.close()
  })
})
