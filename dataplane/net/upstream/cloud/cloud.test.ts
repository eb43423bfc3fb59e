import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { cacheUntilExpiry } from './cached.ts'
import { CloudCredentials } from './index.ts'
import type { Env } from './source.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: URLSearchParams
  readonly text: string
}

/** The token endpoints of all clouds, on loopback. */
let server: Server
let base: string
let directory: string
let asked: Asked[] = []
let answer: (request: Asked) => { status?: number; body: unknown; delayMs?: number } = () => ({ body: {} })
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cloud-'))
  await writeFile(join(directory, 'token'), 'platform-token\n')
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body: new URLSearchParams(text), text }
      asked.push(seen)
      const { status = 200, body, delayMs = 0 } = answer(seen)
      setTimeout(() => response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body)), delayMs)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(directory, { recursive: true })
})
beforeEach(() => {
  asked = []
})

let now = 1_700_000_000_000
const credentials = (env: Env): CloudCredentials => new CloudCredentials({ env, nowMs: () => now })
const iso = (ms: number): string => new Date(ms).toISOString()
const document = { AccessKeyId: 'AK', SecretAccessKey: 'SK', Token: 'ST' }
const kept = { accessKeyId: 'AK', secretAccessKey: 'SK', sessionToken: 'ST' }

describe('AWS credentials', () => {
  test('come from the environment', async () => {
    expect(await credentials({ AWS_ACCESS_KEY_ID: 'AK', AWS_SECRET_ACCESS_KEY: 'SK', AWS_SESSION_TOKEN: 'ST' }).aws()).toMatchObject(kept)
    expect(asked).toEqual([])
  })

  test('come from web identity: the platform token is exchanged for credentials of a role', async () => {
    const result =
      '<R><Credentials><AccessKeyId>AK</AccessKeyId><SecretAccessKey>SK</SecretAccessKey><SessionToken>ST</SessionToken><Expiration>2030-01-01T00:00:00Z</Expiration></Credentials></R>'
    answer = () => ({ body: result })
    const env = { AWS_WEB_IDENTITY_TOKEN_FILE: join(directory, 'token'), AWS_ROLE_ARN: 'arn:r', AWS_ENDPOINT_URL_STS: base }
    expect(await credentials(env).aws()).toEqual({ ...kept, expiresAtMs: Date.UTC(2030, 0) })
    expect(Object.fromEntries(asked[0]?.body ?? [])).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: 'arn:r',
      WebIdentityToken: 'platform-token',
    })
  })

  test('come from a container endpoint, with its authorization from a file', async () => {
    answer = () => ({ body: { ...document, Expiration: iso(now + 3600_000) } })
    const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/creds`, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(directory, 'token') }
    expect(await credentials(env).aws()).toMatchObject(kept)
    expect([asked[0]?.path, asked[0]?.headers['authorization']]).toEqual(['/creds', 'platform-token'])
  })

  test('are not requested from a plaintext container endpoint on another machine', async () => {
    await expect(credentials({ AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://192.0.2.1/creds' }).aws()).rejects.toThrow('neither https nor of this machine')
  })

  test('come from the metadata service of an instance', async () => {
    answer = ({ method, path }) =>
      method === 'PUT' ? { body: 'imds' } : path.endsWith('/') ? { body: 'my-role\n' } : { body: { ...document, Expiration: iso(now + 3600_000) } }
    expect(await credentials({ AWS_EC2_METADATA_SERVICE_ENDPOINT: base }).aws()).toMatchObject(kept)
    expect(asked.map(({ method, path, headers }) => [method, path, headers['x-aws-ec2-metadata-token']])).toEqual([
      ['PUT', '/latest/api/token', undefined],
      ['GET', '/latest/meta-data/iam/security-credentials/', 'imds'],
      ['GET', '/latest/meta-data/iam/security-credentials/my-role', 'imds'],
    ])
  })

  test('fail with an explanation if there is no source', async () => {
    await expect(credentials({ AWS_EC2_METADATA_DISABLED: 'true' }).aws()).rejects.toThrow('no AWS credentials in the environment')
  })
})

describe('Azure tokens', () => {
  const scope = 'https://cognitiveservices.azure.com/.default'
  const ids = { clientId: 'c', tenantId: 't' }

  test('come from a client secret', async () => {
    answer = () => ({ body: { access_token: 'az', expires_in: 3600 } })
    expect(await credentials({ AZURE_AUTHORITY_HOST: base }).azure({ secret: { ...ids, clientSecret: 's' } }, scope)).toBe('az')
    expect([asked[0]?.path, Object.fromEntries(asked[0]?.body ?? [])]).toEqual([
      '/t/oauth2/v2.0/token',
      { grant_type: 'client_credentials', scope, client_id: 'c', client_secret: 's' },
    ])
  })

  test('come from workload identity', async () => {
    answer = () => ({ body: { access_token: 'az', expires_in: '3600' } })
    const env = { AZURE_AUTHORITY_HOST: base, AZURE_CLIENT_ID: 'c', AZURE_TENANT_ID: 't', AZURE_FEDERATED_TOKEN_FILE: join(directory, 'token') }
    expect(await credentials(env).azure({ ambient: true }, scope)).toBe('az')
    expect(Object.fromEntries(asked[0]?.body ?? [])).toMatchObject({ client_id: 'c', client_assertion: 'platform-token' })
  })

  test('come from a managed identity of an instance', async () => {
    answer = () => ({ body: { access_token: 'az', expires_on: String(Math.floor(now / 1000) + 3600) } })
    const managed = { clientId: 'c', objectId: 'o', resourceId: 'r' }
    expect(await credentials({ AZURE_POD_IDENTITY_AUTHORITY_HOST: base }).azure({ managed }, scope)).toBe('az')
    expect(asked[0]?.path).toBe('/metadata/identity/oauth2/token?resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=c&api-version=2018-02-01')
    expect(asked[0]?.headers['metadata']).toBe('true')
  })

  test('come from an identity of App Service', async () => {
    answer = () => ({ body: { access_token: 'az', expires_on: String(Math.floor(now / 1000) + 3600) } })
    expect(await credentials({ IDENTITY_ENDPOINT: `${base}/msi`, IDENTITY_HEADER: 'h' }).azure({ ambient: true }, scope)).toBe('az')
    expect([asked[0]?.path.split('?')[0], asked[0]?.headers['x-identity-header']]).toEqual(['/msi', 'h'])
  })
})

describe('Google tokens', () => {
  const file = async (content: object): Promise<Env> => {
    const path = join(directory, `adc-${Math.random()}.json`)
    await writeFile(path, JSON.stringify(content))
    return { GOOGLE_APPLICATION_CREDENTIALS: path }
  }
  const account = (): object => ({
    type: 'service_account',
    client_email: 'me@p.iam',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    private_key_id: 'k1',
    token_uri: `${base}/token`,
  })

  test.each([
    ['an access token', { type: 'AccessToken' } as const, { scope: 'https://www.googleapis.com/auth/cloud-platform' }, { access_token: 'g', expires_in: 3600 }],
    ['an id token', { type: 'IdToken', audience: 'https://run' } as const, { target_audience: 'https://run' }, { id_token: 'g' }],
  ])('a key file yields %s for a signed assertion', async (_, kind, claims, body) => {
    answer = () => ({ body })
    expect(await credentials(await file(account())).google(kind)).toBe('g')
    const [head = '', payload = '', signature = ''] = (asked[0]?.body.get('assertion') ?? '').split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ iss: 'me@p.iam', aud: `${base}/token`, ...claims })
    expect(verify('RSA-SHA256', Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
  })

  test('workload identity federation yields a token by impersonation', async () => {
    answer = ({ path }) => ({ body: path === '/sts' ? { access_token: 'federated', expires_in: 3600 } : { accessToken: 'g', expireTime: iso(now + 3600_000) } })
    const env = await file({
      type: 'external_account',
      audience: '//iam/pool',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${base}/sts`,
      credential_source: { file: join(directory, 'token') },
      service_account_impersonation_url: `${base}/sa:generateAccessToken`,
    })
    expect(await credentials(env).google({ type: 'AccessToken' })).toBe('g')
    expect([asked[0]?.body.get('subject_token'), asked[1]?.path, asked[1]?.headers['authorization']]).toEqual([
      'platform-token',
      '/sa:generateAccessToken',
      'Bearer federated',
    ])
  })

  test.each([
    ['an access token', { type: 'AccessToken' } as const, '/token?scopes=', { access_token: 'g', expires_in: 3600 }],
    ['an id token', { type: 'IdToken', audience: 'https://run' } as const, '/identity?audience=https%3A%2F%2Frun&format=full', 'g'],
  ])('the metadata server yields %s', async (_, kind, path, body) => {
    answer = () => ({ body })
    expect(await credentials({ GCE_METADATA_HOST: base.slice('http://'.length) }).google(kind)).toBe('g')
    expect(asked[0]?.path.startsWith(`/computeMetadata/v1/instance/service-accounts/default${path}`)).toBe(true)
    expect(asked[0]?.headers['metadata-flavor']).toBe('Google')
  })

  test('user credentials yield no id tokens', async () => {
    await expect(credentials(await file({ type: 'authorized_user' })).google({ type: 'IdToken', audience: 'x' })).rejects.toThrow(
      'an id token needs a service account',
    )
  })
})

describe('cached credentials', () => {
  const secret = { secret: { clientId: 'c', tenantId: 't', clientSecret: 's' } }

  test('are fetched once for concurrent callers, renewed before they expire, and kept if the renewal fails', async () => {
    let count = 0
    answer = () => ({ body: { access_token: `az-${++count}`, expires_in: 3600 }, delayMs: 20 })
    const cloud = credentials({ AZURE_AUTHORITY_HOST: base })
    const ask = (): Promise<string> => cloud.azure(secret, 's')
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['az-1', 'az-1', 'az-1'])
    now += 54 * 60_000
    expect(await ask()).toBe('az-1')
    now += 2 * 60_000
    answer = () => ({ status: 500, body: 'secret text' })
    expect(await ask()).toBe('az-1')
    answer = () => ({ body: { access_token: 'az-new', expires_in: 3600 } })
    expect(await ask()).toBe('az-new')
  })

  test('are used while a renewal hangs, and replaced once it completes', async () => {
    let clock = 0
    const fetched: ((token: string) => void)[] = []
    const fetch = async (): Promise<{ token: string; expiresAtMs: number }> => {
      const token = await new Promise<string>((resolve) => fetched.push(resolve))
      return { token, expiresAtMs: clock + 3600_000 }
    }
    const keep = cacheUntilExpiry(fetch, () => clock)
    const first = keep()
    fetched[0]?.('a')
    expect((await first).token).toBe('a')
    clock = 3599_000
    expect((await Promise.all([keep(), keep()])).map(({ token }) => token)).toEqual(['a', 'a'])
    expect(fetched).toHaveLength(2)
    const waiting = keep()
    fetched[1]?.('b')
    expect((await waiting).token).toBe('b')
  })

  test('have errors that name the source, never sent or received data', async () => {
    answer = () => ({ status: 401, body: 'top-secret' })
    const error = await credentials({ AZURE_AUTHORITY_HOST: base })
      .azure(secret, 's')
      .catch((thrown: unknown) => thrown)
    expect(String(error)).toBe("CredentialError: Entra ID's token endpoint answered 401")
  })
})
