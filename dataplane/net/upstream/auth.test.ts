import { describe, expect, test } from '@jest/globals'
import type { BackendAuth, JWTProvider, Policy, Secret, Traffic } from '#gen/config/types.ts'
import { createConfigStore, type ConfigMessage } from '../../config/store.ts'
import { Gateway } from '../../gateway/gateway.ts'
import { BufferBody, readBody } from '../../http/body.ts'
import { HeaderList } from '../../http/headers.ts'
import { Exchange } from '../../request/exchange/exchange.ts'
import { testConnection, testRequest } from '../../testing/exchange.ts'
import { makeSigningKey, makeToken } from '../../testing/tokens.ts'
import { testGateway, testListener, testRoute } from '../../testing/messages.ts'
import { replaceMessages } from '../../testing/store.ts'

const key = makeSigningKey('one')
const token = makeToken(key, { iss: 'https://issuer', exp: 4_000_000_000 })
const provider: JWTProvider = { issuer: 'https://issuer', jwks: { inline: JSON.stringify({ keys: [key.jwk] }) } }
const jwt: Traffic = { jwtAuthentication: { providers: [provider] } }
const apiKeys: Traffic = { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/keys' } } }

const secret = (name: string, data: Secret['data']): ConfigMessage => ({
  kind: 'secret',
  message: { key: `opaque/ns/${name}`, type: 'opaque', ...(data && { data }) },
})
const attached = (name: string, target: Policy['target'], sections: Pick<Policy, 'traffic' | 'backend'>): ConfigMessage => ({
  kind: 'policy',
  message: { key: `p/ns/${name}`, policy: { kind: 'ProxyPolicy', namespace: 'ns', name }, target, ...sections },
})
const onGateway = (traffic: Traffic): ConfigMessage => attached('clients', testGateway, { traffic })
const onBackend = (auth: BackendAuth): ConfigMessage => attached('upstream', { kind: 'Backend', namespace: 'ns', name: 'api' }, { backend: { auth } })
const secrets = [secret('keys', { bob: 'bobs-key' }), secret('token', { Authorization: ' Bearer t0ken\n' }), secret('bare', { Authorization: 't0ken' })]

const exchangeAt = { grantType: 'TokenExchange', tokenEndpoint: { backendRef: { backend: 'ns/idp' }, path: '/token' } } as const
const idp: ConfigMessage = { kind: 'backend', message: { key: 'ns/idp', static: { host: 'idp', port: 80 } } }
const clientOfIdp = secret('client', { clientID: 'c', clientSecret: 's' })
const withClient = { oauth: { ...exchangeAt, secretRef: { secret: 'opaque/ns/client' } } }

const aws = secret('aws', { accessKey: 'AK', secretKey: 'SK' })

/** Sends a request through a gateway to a backend with an inline auth section, and to its mirror, which has its own. */
async function send(inline: BackendAuth | undefined, lines: string[] = [], more: ConfigMessage[] = []) {
  const seen: Record<string, string[]> = {}
  const gateway = new Gateway({
    createPool: (_, { host }) => ({
      size: 0,
      close: () => {},
      call: ({ headers }) => {
        seen[host] = headers.getAll('authorization')
        const body = host === 'idp' ? new BufferBody('{"access_token":"of-idp"}') : undefined
        return { response: Promise.resolve({ status: 200, headers: new HeaderList(), body, upgraded: undefined }), cancel: () => {} }
      },
    }),
  })
  const store = createConfigStore()
  store.subscribe((snapshot) => gateway.update(snapshot))
  const mirror = { kind: 'backend', message: { key: 'ns/mirror', static: { host: 'mirror', port: 80 }, policies: { auth: { key: 'of-mirror' } } } } as const
  replaceMessages(store, [
    ...testListener,
    testRoute({ backend: 'ns/api' }, { filters: { mirrors: [{ backend: { backend: 'ns/mirror' } }] } }),
    { kind: 'backend', message: { key: 'ns/api', static: { host: 'api', port: 80 }, ...(inline && { policies: { auth: inline } }) } },
    mirror,
    ...secrets,
    ...more,
  ])
  const exchange = new Exchange(testConnection, testRequest(), performance.now())
  for (const line of lines) exchange.request.headers.append('authorization', line)
  await gateway.handle(exchange)
  const { response, error } = exchange
  return { status: response?.status, text: String((await readBody(response?.body, 1000)).bytes), reason: error?.row.reason, seen }
}

describe('backend auth', () => {
  test.each<[string, BackendAuth | undefined, string[], ConfigMessage[], string[]]>([
    ['key is sent as a bearer token', { key: 'k' }, [], [], ['Bearer k']],
    ['key replaces whatever the client sent', { key: 'k' }, ['Bearer client', 'Basic eDp5'], [], ['Bearer k']],
    ['secretRef is trimmed and loses one leading Bearer', { secretRef: { secret: 'opaque/ns/token' } }, [], [], ['Bearer t0ken']],
    ['secretRef without a scheme is sent as it is', { secretRef: { secret: 'opaque/ns/bare' } }, [], [], ['Bearer t0ken']],
    ['an attached policy applies without an inline policy', undefined, [], [onBackend({ key: 'attached' })], ['Bearer attached']],
    ['an inline policy takes precedence over an attached policy', { key: 'inline' }, [], [onBackend({ key: 'attached' })], ['Bearer inline']],
    ['without auth a validated token is not forwarded', undefined, [`Bearer ${token}`], [onGateway(jwt)], []],
    ['passthrough adds a validated token back', { passthrough: {} }, [`Bearer ${token}`], [onGateway(jwt)], [`Bearer ${token}`]],
    [
      'passthrough adds back a token validated before routing',
      { passthrough: {} },
      [`Bearer ${token}`],
      [onGateway({ ...jwt, phase: 'PreRouting' })],
      [`Bearer ${token}`],
    ],
    ['passthrough adds a validated API key back', { passthrough: {} }, ['bearer bobs-key'], [onGateway(apiKeys)], ['Bearer bobs-key']],
    ['passthrough does nothing without client authentication', { passthrough: {} }, ['Bearer client'], [], ['Bearer client']],
  ])('%s', async (_, auth, lines, more, expected) => expect((await send(auth, lines, more)).seen['api']).toEqual(expected))

  test.each<[string, BackendAuth, ConfigMessage[], string]>([
    ['a Secret that is not there', { secretRef: { secret: 'opaque/ns/gone' } }, [], 'the Secret of secretRef does not resolve'],
    ['a reference that the operator refused', { secretRef: { invalid: 'no such secret' } }, [], 'the Secret of secretRef does not resolve'],
    ['a Secret without the entry', { secretRef: { secret: 'opaque/ns/keys' } }, [], 'the Secret of secretRef has no entry Authorization'],
    ['an empty entry', { secretRef: { secret: 'opaque/ns/e' } }, [secret('e', { Authorization: 'Bearer \n' })], 'the credential of secretRef is empty'],
    ['a second header line', { key: 'a\r\nx: y' }, [], 'the credential of key is not printable ASCII'],
    ['no section', {}, [], 'auth is empty: set one of key, secretRef, passthrough, aws, azure, gcp, oauth, jwtSign'],
    [
      'jwtSign without its Secret',
      { jwtSign: { issuer: 'i', audiences: ['a'], secretRef: { secret: 'opaque/ns/gone' } } },
      [],
      'the Secret of jwtSign does not resolve, or has no entry key',
    ],
    [
      'jwtSign with a key that cannot sign',
      { jwtSign: { issuer: 'i', audiences: ['a'], secretRef: { secret: 'opaque/ns/x' } } },
      [secret('x', { key: 'x' })],
      'the entry key of jwtSign holds no unencrypted private key in PEM',
    ],
    ['oauth without its Secret', { oauth: { ...exchangeAt, secretRef: { secret: 'opaque/ns/gone' } } }, [], 'the Secret of oauth does not resolve'],
    [
      'oauth with half a Secret',
      { oauth: { ...exchangeAt, secretRef: { secret: 'opaque/ns/keys' } } },
      [],
      'the Secret of oauth needs the entries clientId and clientSecret',
    ],
    ['oauth of the gateway without a client', { oauth: { ...exchangeAt, grantType: 'ClientCredentials' } }, [], 'oauth needs secretRef with ClientCredentials'],
    ['cloudA without its Secret', { cloudA: { secretRef: { secret: 'opaque/ns/gone' } } }, [], 'the Secret of aws does not resolve'],
    ['cloudA with half a Secret', { cloudA: { secretRef: { secret: 'opaque/ns/keys' } } }, [], 'the Secret of aws needs the entries accessKey and secretKey'],
    [
      'cloudA for a host that is not of AWS',
      { cloudA: { secretRef: { secret: 'opaque/ns/aws' } } },
      [aws],
      'the host does not name the AWS service and region to sign for: use <service>.<region>.amazonaws.com',
    ],
    [
      'cloudB with half a Secret',
      { cloudB: { secretRef: { secret: 'opaque/ns/keys' } } },
      [],
      'the Secret of azure needs the entries clientId, tenantId and clientSecret',
    ],
  ])('auth with %s fails closed', async (_, auth, more, detail) => {
    const { status, text, reason, seen } = await send(auth, ['Bearer client'], more)
    expect([status, text, reason, seen['api']]).toEqual([500, `backend authentication failed: ${detail}`, 'Internal', undefined])
  })

  test('oauth replaces the token of the client by one for the backend', async () => {
    const { status, seen } = await send(withClient, [`Bearer ${token}`], [idp, clientOfIdp, onGateway(jwt)])
    expect([status, seen]).toEqual([200, { idp: [`Basic ${Buffer.from('c:s').toString('base64')}`], api: ['Bearer of-idp'], mirror: ['Bearer of-mirror'] }])
  })

  test.each([
    ['a request without a token', withClient, [idp], 401, 'the request has no token', 'JwtAuth'],
    ['a token endpoint that does not exist', withClient, [], 502, 'no token could be obtained', 'UpstreamFailure'],
  ])('oauth with %s fails closed', async (_, auth, more, expected, detail, why) => {
    const { status, text, reason, seen } = await send(auth, expected === 401 ? [] : ['Bearer client'], [...more, clientOfIdp])
    expect([status, text, reason, seen['api']]).toEqual([expected, `backend authentication failed: ${detail}`, why, undefined])
  })

  test('a mirror receives its own credentials, never those of the backend', async () => {
    expect((await send({ key: 'k' }, ['Bearer client'])).seen).toEqual({ mirror: ['Bearer of-mirror'], api: ['Bearer k'] })
  })
})
