import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { MCPAuthentication } from '#gen/config/types.ts'
import { Destinations } from '../../../net/destination/destinations.ts'
import { createConfigStore } from '../../../config/store.ts'
import { Exchange } from '../../../request/exchange/exchange.ts'
import { BufferBody, readBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import { createPolicyState } from '../../../policy/state.ts'
import { testConnection, testRequest } from '../../../testing/exchange.ts'
import { replaceMessages } from '../../../testing/store.ts'
import { makeSigningKey, makeToken } from '../../../testing/tokens.ts'
import { createPool } from '../../../net/upstream/pools.ts'
import { compileMcpAuthentication, type McpAuthentication } from './index.ts'
import { variables, type JwtVariable } from '../../../request/exchange/variables.ts'

const nowSeconds = 1_700_000_000
const key = makeSigningKey('one')

/** An identity provider with scripted responses that records its requests. */
let idp: Server
let issuer: string
const received: { line: string; headers: IncomingMessage['headers']; body: string }[] = []
let documents: Record<string, string | number>
let clockMs: number
let destinations: Destinations

beforeAll(async () => {
  idp = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const line = `${request.method} ${request.url}`
      received.push({ line, headers: request.headers, body })
      const document = documents[line] ?? 404
      if (typeof document === 'number') response.writeHead(document).end()
      else response.writeHead(request.method === 'POST' ? 201 : 200, { 'content-type': 'application/json' }).end(document)
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => idp.once('listening', resolve))
  issuer = `http://127.0.0.1:${(idp.address() as AddressInfo).port}/realms/shop`
})
afterAll(async () => {
  idp.closeAllConnections()
  await new Promise((resolve) => idp.close(resolve))
})
beforeEach(() => {
  received.length = 0
  clockMs = 0
  documents = {}
  destinations = new Destinations((kind, transport) => createPool(kind, transport))
})

const metadataOfKind1 = () => ({
  [`GET /.well-known/oauth-authorization-server/realms/shop`]: JSON.stringify({
    issuer,
    authorization_endpoint: `${issuer}/authorize?tenant=a b`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    unknown_member: [1],
  }),
})
const metadataOfKind2 = (change: object = {}) => ({
  [`GET /realms/shop/.well-known/openid-configuration`]: JSON.stringify({
    issuer,
    registration_endpoint: `${issuer}/clients-registrations/openid-connect`,
    ...change,
  }),
})

function compile(change: Partial<MCPAuthentication> = {}): McpAuthentication {
  const config: MCPAuthentication = { issuer, audiences: ['shop'], jwks: { inline: JSON.stringify({ keys: [key.jwk] }) }, ...change }
  return compileMcpAuthentication(config, destinations, createPolicyState({ epochMs: () => nowSeconds * 1000, monotonicMs: () => clockMs }))
}

interface SentRequest {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly isTls?: boolean
  readonly jwt?: JwtVariable
}

async function send(authentication: McpAuthentication, target: string, { method = 'GET', headers = {}, body, isTls = true, jwt }: SentRequest = {}) {
  const connection = { ...testConnection, tls: isTls ? { sni: undefined, alpn: undefined, protocol: undefined, clientCertificate: undefined } : undefined }
  const request = testRequest({
    method,
    target,
    authority: 'mcp.example',
    headers: HeaderList.from(Object.entries(headers)),
    body: body === undefined ? undefined : new BufferBody(body),
  })
  const exchange = new Exchange(connection, request, 0)
  if (jwt !== undefined) variables.jwt.set(exchange, jwt)
  const response = await authentication.admit(exchange)
  const text = response === undefined ? undefined : (await readBody(response.body, 1e6)).bytes.toString()
  return {
    exchange,
    response,
    text,
    status: response?.status,
    header: (name: string) => response?.headers.get(name),
    json: () => JSON.parse(text ?? '') as Record<string, unknown>,
  }
}

const claims = { iss: '', aud: 'shop', sub: 'bob', exp: nowSeconds + 300 }
const bearer = (change: object = {}): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${makeToken(key, { ...claims, iss: issuer, ...change })}` },
})

describe('a token at the MCP endpoint', () => {
  test('is removed if it is valid, and its claims are passed on', async () => {
    const { exchange, response } = await send(compile(), '/mcp', bearer())
    expect(response).toBeUndefined()
    expect(variables.jwt.get(exchange)).toMatchObject({ sub: 'bob' })
    expect(exchange.request.headers.has('authorization')).toBe(false)
  })

  test.each<[string, () => SentRequest]>([
    ['is missing', () => ({})],
    ['has another audience', () => bearer({ aud: 'x' })],
    ['has another issuer', () => bearer({ iss: 'https://elsewhere' })],
    ['is expired', () => bearer({ exp: nowSeconds - 120 })],
    ['is garbage', () => ({ headers: { authorization: 'Bearer garbage' } })],
    ['is empty', () => ({ headers: { authorization: 'Bearer ' } })],
  ])('that %s is rejected with 401 and a challenge that names the metadata', async (_, request) => {
    const { status, header, json, exchange } = await send(compile(), '/mcp?x=1', request())
    expect(status).toBe(401)
    expect(header('content-type')).toBe('application/json')
    expect(json()).toEqual({ error: 'unauthorized', error_description: 'JWT token required' })
    expect(header('www-authenticate')).toBe('Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"')
    expect([exchange.error?.row.reason, variables.jwt.get(exchange)]).toEqual(['JwtAuth', undefined])
  })

  test.each<[NonNullable<MCPAuthentication['mode']>, string, () => SentRequest, boolean]>([
    ['Optional', 'no token', () => ({}), true],
    ['Optional', 'a bad token', () => bearer({ aud: 'x' }), false],
    ['Permissive', 'no token', () => ({}), true],
    ['Permissive', 'a bad token', () => bearer({ aud: 'x' }), true],
  ])('in mode %s: %s is handled as the mode says', async (mode, _, request, isAdmitted) => {
    const { response, exchange } = await send(compile({ mode }), '/mcp', request())
    expect([response === undefined, variables.jwt.get(exchange)]).toEqual([isAdmitted, undefined])
    // A token that was not accepted stays in the header.
    if (isAdmitted) expect(exchange.request.headers.has('authorization')).toBe(request().headers !== undefined)
  })

  test('of any issuer is accepted if no issuer is configured', async () => {
    const { issuer: _, ...rest } = { issuer: '', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
    const authentication = compileMcpAuthentication(rest, destinations, createPolicyState({ epochMs: () => nowSeconds * 1000 }))
    expect((await send(authentication, '/mcp', bearer({ iss: 'https://any' }))).response).toBeUndefined()
  })

  test.each(['Strict', 'Optional', 'Permissive'] as const)(
    'is rejected with 401 in mode %s if a JWT policy of the route removed it (mcp.md §8.2)',
    async (mode) => {
      expect((await send(compile({ mode }), '/mcp', { jwt: { sub: 'bob' } })).status).toBe(401)
    },
  )

  test('a challenge names the configured scopes that are valid', async () => {
    const { header } = await send(compile({ resourceMetadata: { scopesSupported: ['read', 'write:all', 'a"b', 'c d', 1] as never } }), '/mcp')
    expect(header('www-authenticate')).toBe('Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", scope="read write:all"')
  })

  test('is rejected if there are no usable keys', async () => {
    expect((await send(compile({ jwks: { invalid: 'not fetched yet' } }), '/mcp', bearer())).status).toBe(401)
  })

  test('a challenge names the origin of a configured resource and the scheme of X-Forwarded-Proto', async () => {
    const configured = await send(compile({ resourceMetadata: { resource: 'https://public.example/any?x' } }), '/mcp')
    expect(configured.header('www-authenticate')).toBe('Bearer resource_metadata="https://public.example/.well-known/oauth-protected-resource/mcp"')
    const forwarded = await send(compile(), '/mcp', { isTls: false, headers: { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' } })
    expect(forwarded.header('www-authenticate')).toContain('"https://mcp.example/')
    const odd = await send(compile(), '/mcp', { isTls: false, headers: { 'x-forwarded-proto': 'javascript' } })
    expect(odd.header('www-authenticate')).toContain('"http://mcp.example/')
  })
})

describe('protected resource metadata', () => {
  test('has computed members, overridden by configured ones in snake case', async () => {
    const { status, json, header } = await send(
      compile({ resourceMetadata: { scopesSupported: ['read'] as never, resourceDocumentation: 'https://docs', resource_type: 'other' } }),
      '/.well-known/oauth-protected-resource/mcp?x=1',
    )
    expect(status).toBe(200)
    expect(json()).toEqual({
      resource: 'https://mcp.example/mcp',
      authorization_servers: [issuer],
      mcp_protocol_version: '2025-06-18',
      resource_type: 'other',
      scopes_supported: ['read'],
      resource_documentation: 'https://docs',
    })
    expect([header('access-control-allow-origin'), header('access-control-allow-methods'), header('access-control-allow-headers')]).toEqual([
      '*',
      'GET, OPTIONS',
      'content-type',
    ])
  })

  test.each([
    ['/.well-known/oauth-protected-resource', 'https://mcp.example'],
    ['/.well-known/oauth-protected-resource/a/b', 'https://mcp.example/a/b'],
  ])('at %s describes %s', async (path, resource) => {
    const { json } = await send(compile({ provider: 'IdpKind2' }), path)
    // The gateway is the authorization server in place of an adapted provider.
    expect(json()).toMatchObject({ resource, authorization_servers: [resource] })
  })

  test('is not served at a path that only starts like a well-known one', async () => {
    expect((await send(compile(), '/.well-known/oauth-protected-resources')).status).toBe(401)
  })

  test('responds to a preflight with 204 and to other methods with 405', async () => {
    const preflight = await send(compile(), '/.well-known/oauth-protected-resource', { method: 'OPTIONS' })
    expect([preflight.status, preflight.text, preflight.header('access-control-allow-origin')]).toEqual([204, '', '*'])
    const post = await send(compile(), '/.well-known/oauth-protected-resource', { method: 'POST' })
    expect([post.status, post.header('allow')]).toEqual([405, 'GET, OPTIONS'])
  })
})

describe('authorization server metadata', () => {
  const path = '/.well-known/oauth-authorization-server/mcp'

  test('of a provider that follows the standards is unchanged', async () => {
    documents = metadataOfKind1()
    const { status, json } = await send(compile(), path)
    expect([status, json()]).toEqual([200, JSON.parse(Object.values(documents)[0] as string)])
  })

  test('of IdpKind1 has the gateway as issuer, and login and registration through the gateway', async () => {
    documents = metadataOfKind1()
    const { json } = await send(compile({ provider: 'IdpKind1', audiences: ['the shop', 'other'] }), `${path}?x=1`)
    expect(json()).toEqual({
      issuer: 'https://mcp.example/mcp',
      authorization_endpoint: 'https://mcp.example/.well-known/oauth-authorization-server/mcp/client-authorization',
      token_endpoint: `${issuer}/token`,
      registration_endpoint: 'https://mcp.example/.well-known/oauth-authorization-server/mcp/client-registration',
      unknown_member: [1],
    })
  })

  test('of IdpKind1 without audiences names the login of the provider', async () => {
    documents = metadataOfKind1()
    const { json } = await send(compile({ provider: 'IdpKind1', audiences: [] }), path)
    expect(json()['authorization_endpoint']).toBe(`${issuer}/authorize?tenant=a b`)
  })

  test('of IdpKind2 is read from its OpenID configuration', async () => {
    // The provider's redirects name its own issuer, not the one that clients see (RFC 9207).
    documents = metadataOfKind2({ scopes_supported: ['openid'], authorization_response_iss_parameter_supported: true })
    const { json } = await send(compile({ provider: 'IdpKind2', issuer: `${issuer}/` }), path)
    expect(json()).toEqual({
      issuer: 'https://mcp.example/mcp',
      registration_endpoint: 'https://mcp.example/.well-known/oauth-authorization-server/mcp/client-registration',
      scopes_supported: ['openid'],
    })
  })

  test.each([
    ['IdpKind1', '/.well-known/oauth-authorization-server/realms/shop'],
    ['IdpKind2', '/realms/shop/.well-known/openid-configuration'],
    [undefined, '/.well-known/oauth-authorization-server/realms/shop'],
  ] as const)('of %s announces Client ID Metadata Documents if the provider does, with or without registration', async (provider, document) => {
    const members = { issuer, authorization_endpoint: `${issuer}/authorize`, client_id_metadata_document_supported: true }
    for (const registration of [{}, { registration_endpoint: `${issuer}/register` }]) {
      documents = { [`GET ${document}`]: JSON.stringify({ ...members, ...registration }) }
      const { status, json } = await send(compile({ ...(provider && { provider }) }), path)
      expect([status, json()['client_id_metadata_document_supported'], 'registration_endpoint' in json()]).toEqual([
        200,
        true,
        'registration_endpoint' in registration,
      ])
    }
  })

  test('of a provider that follows the standards announces the issuer in redirects, which is its own', async () => {
    documents = { 'GET /.well-known/oauth-authorization-server/realms/shop': JSON.stringify({ issuer, authorization_response_iss_parameter_supported: true }) }
    const [metadata, resource] = [await send(compile(), path), await send(compile(), '/.well-known/oauth-protected-resource/mcp')]
    expect([metadata.json(), resource.json()['authorization_servers']]).toEqual([{ issuer, authorization_response_iss_parameter_supported: true }, [issuer]])
  })

  test('is also served at the path of the resource', async () => {
    documents = metadataOfKind2()
    const { json } = await send(compile({ provider: 'IdpKind2' }), '/mcp/.well-known/oauth-authorization-server')
    expect(json()).toEqual({
      issuer: 'https://mcp.example/mcp',
      registration_endpoint: 'https://mcp.example/mcp/.well-known/oauth-authorization-server/client-registration',
    })
  })

  test('is fetched from the port of the issuer if the keys are at another port of the host', async () => {
    const keys = { backend: 'ns/keys' }
    const store = createConfigStore()
    store.subscribe((snapshot) => destinations.update(snapshot, new Map()))
    const policies = { tls: { insecureSkipVerify: 'All' as const } }
    replaceMessages(store, [{ kind: 'backend', message: { key: keys.backend, static: { host: '127.0.0.1', port: 1 }, policies } }])
    documents = metadataOfKind2()
    const authentication = compile({ provider: 'IdpKind2', jwks: { inline: JSON.stringify({ keys: [key.jwk] }), from: keys } })
    expect((await send(authentication, path)).status).toBe(200)
    // An https issuer URL uses the TLS settings of that backend.
    const tlsOf = (isTls: boolean) => destinations.forOtherPort(keys, '127.0.0.1', 2, isTls).settings.tls?.verify
    expect([tlsOf(true), tlsOf(false)]).toEqual(['none', undefined])
  })

  test('is cached for a minute, but failures are not', async () => {
    documents = {}
    const authentication = compile({ provider: 'IdpKind2' })
    expect((await send(authentication, path)).status).toBe(500)
    documents = metadataOfKind2()
    await send(authentication, path)
    await send(authentication, path)
    expect(received).toHaveLength(2)
    clockMs = 60_001
    await send(authentication, path)
    expect(received).toHaveLength(3)
  })

  test.each<[string, Partial<MCPAuthentication>, () => Record<string, string | number>]>([
    ['the provider responds with an error', { provider: 'IdpKind2' }, () => ({})],
    [
      'the provider responds with something other than JSON',
      { provider: 'IdpKind2' },
      () => ({ 'GET /realms/shop/.well-known/openid-configuration': '<html>' }),
    ],
    ['the provider responds with a JSON array', { provider: 'IdpKind2' }, () => ({ 'GET /realms/shop/.well-known/openid-configuration': '[]' })],
    ['a member that is rewritten is missing', { provider: 'IdpKind2' }, () => metadataOfKind2({ registration_endpoint: undefined })],
    ['the provider is unreachable', { provider: 'IdpKind2', issuer: 'http://127.0.0.1:1' }, () => ({})],
    ['the issuer is not a URL', { issuer: 'shop' }, () => ({})],
  ])('is a 500 without body and with a logged reason if %s', async (_, change, answers) => {
    documents = answers()
    const { status, text, exchange } = await send(compile(change), path)
    expect([status, text, exchange.error?.code]).toEqual([500, '', 'MCP_IDENTITY_PROVIDER'])
    expect(exchange.error?.detail).not.toBe('')
  })
})

describe('client registration', () => {
  const path = '/.well-known/oauth-authorization-server/mcp/client-registration'
  const body = '{"redirect_uris":["http://localhost/cb"]}'

  test('is sent once to the endpoint of the provider, without credentials of the client', async () => {
    documents = { ...metadataOfKind2({ registration_endpoint: `${issuer}/own?x=1` }), 'POST /realms/shop/own?x=1': '{"client_id":"c1"}' }
    const result = await send(compile({ provider: 'IdpKind2' }), path, { method: 'POST', body, headers: { authorization: 'Bearer mine', cookie: 'a=b' } })
    expect([result.status, result.json(), result.header('access-control-allow-origin'), result.header('access-control-allow-methods')]).toEqual([
      201,
      { client_id: 'c1' },
      '*',
      'POST, OPTIONS',
    ])
    const registrations = received.filter(({ line }) => line.startsWith('POST'))
    expect(registrations).toHaveLength(1)
    expect(registrations[0]).toMatchObject({ body, headers: { 'content-type': 'application/json' } })
    expect(registrations[0]?.headers).not.toHaveProperty('authorization')
    expect(registrations[0]?.headers).not.toHaveProperty('cookie')
  })

  test("is sent to Keycloak's path by default, and the provider's error is passed on", async () => {
    documents = { 'POST /realms/shop/clients-registrations/openid-connect': 403 }
    expect((await send(compile({ provider: 'IdpKind2' }), path, { method: 'POST', body })).status).toBe(403)
  })

  test('responds to a preflight itself and to other methods with 405', async () => {
    expect((await send(compile({ provider: 'IdpKind2' }), path, { method: 'OPTIONS' })).status).toBe(204)
    expect((await send(compile({ provider: 'IdpKind2' }), path)).status).toBe(405)
    expect(received).toEqual([])
  })

  test('is rejected with 413 if the body is too large', async () => {
    expect((await send(compile({ provider: 'IdpKind2' }), path, { method: 'POST', body: 'x'.repeat(70_000) })).status).toBe(413)
  })

  test('is a 500 if the provider is unreachable', async () => {
    expect((await send(compile({ provider: 'IdpKind2', issuer: 'http://127.0.0.1:1' }), path, { method: 'POST', body })).status).toBe(500)
  })

  test.each([
    'http://127.0.0.1:15000/quitquitquit',
    'https://127.0.0.1/x',
    'http://other.example.com/register',
    'http://[::ffff:127.0.0.1]:1/x',
    'ftp://127.0.0.1/x',
    'none',
  ])('is not sent to an endpoint that is not at the origin of the issuer: %s', async (endpoint) => {
    documents = metadataOfKind2({ registration_endpoint: endpoint })
    const result = await send(compile({ provider: 'IdpKind2' }), path, { method: 'POST', body })
    expect([result.status, received.filter(({ line }) => line.startsWith('POST'))]).toEqual([500, []])
  })

  test('is not sent if clients register at the provider itself', async () => {
    expect((await send(compile(), path, { method: 'POST', body })).status).toBe(405)
    expect(received).toEqual([])
  })

  test('is 429 for more than 60 clients in a minute', async () => {
    documents = { ...metadataOfKind2(), 'POST /realms/shop/clients-registrations/openid-connect': '{}' }
    const authentication = compile({ provider: 'IdpKind2' })
    const register = () => send(authentication, path, { method: 'POST', body })
    for (let client = 0; client < 60; client++) expect((await register()).status).toBe(201)
    const rejected = await register()
    expect([rejected.status, rejected.header('retry-after')]).toEqual([429, '60'])
    clockMs += 60_000
    expect((await register()).status).toBe(201)
  })
})

describe('the login of IdpKind1', () => {
  const path = '/.well-known/oauth-authorization-server/mcp/client-authorization'
  const kind1 = (change: object = {}) => compile({ provider: 'IdpKind1', audiences: ['the shop', 'other'], ...change })

  test.each([
    ['the query of the client', '?response_type=code&state=a%2Fb+c&x=', 'tenant=a%20b&response_type=code&state=a%2Fb+c&x=&audience=the+shop'],
    ['no query', '', 'tenant=a%20b&audience=the+shop'],
    ['an empty query', '?', 'tenant=a%20b&audience=the+shop'],
    ['an audience of the client', '?audience=mine', 'tenant=a%20b&audience=mine'],
  ])('redirects to the provider with %s and the audience', async (_, query, expected) => {
    documents = metadataOfKind1()
    for (const form of [path, '/mcp/.well-known/oauth-authorization-server/client-authorization']) {
      const { status, header, text } = await send(kind1(), `${form}${query}`)
      expect([status, header('location'), header('cache-control'), text]).toEqual([302, `${issuer}/authorize?${expected}`, 'no-store', ''])
    }
  })

  test('is 405 for POST and 500 without the metadata of the provider', async () => {
    expect((await send(kind1(), path, { method: 'POST' })).status).toBe(405)
    expect((await send(kind1(), path)).status).toBe(500)
    documents = { [Object.keys(metadataOfKind1())[0] ?? '']: JSON.stringify({ authorization_endpoint: 'javascript:alert(1)' }) }
    expect((await send(kind1(), path)).status).toBe(500)
    documents = { [Object.keys(metadataOfKind1())[0] ?? '']: JSON.stringify({ authorization_endpoint: 'https://evil.example.com/login' }) }
    clockMs += 60_000
    expect((await send(kind1(), path)).status).toBe(500)
  })

  test('exists for no other provider and no other path', async () => {
    documents = { ...metadataOfKind1(), ...metadataOfKind2() }
    for (const authentication of [compile(), kind1({ provider: 'IdpKind2' }), kind1({ audiences: [] })])
      expect((await send(authentication, path)).status).toBe(200)
    expect((await send(kind1(), '/mcp/client-authorization')).status).toBe(401)
  })
})
