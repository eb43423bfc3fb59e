import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { startFakeInternet, type FakeInternet } from '../../harness/llm/fake-internet.ts'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { startBackends, type Backends } from './gateway.ts'

/** The host, server name and path of providers without `host`, over verified TLS (llm.md §4.1). All calls go through a tunnel on this machine. */

const vertex = (region: string): object => ({ providerE: { projectId: 'p', region } })
const chats: Readonly<Record<string, { readonly config: object; readonly model: string; readonly host: string; readonly path: string }>> = {
  A: { config: { providerA: {} }, model: 'gpt-4o', host: 'api.openai.com', path: '/v1/chat/completions' },
  B: {
    config: { providerB: { endpoint: 'https://mine.openai.azure.com/', deploymentName: 'chat' } },
    model: 'chat',
    host: 'mine.openai.azure.com',
    path: '/openai/v1/chat/completions',
  },
  C: { config: { providerC: {} }, model: 'claude-next', host: 'api.anthropic.com', path: '/v1/messages' },
  D: { config: { providerD: {} }, model: 'gemini-2.5-pro', host: 'generativelanguage.googleapis.com', path: '/v1beta/openai/chat/completions' },
  E: {
    config: vertex('us-central1'),
    model: 'google/gemini-2.5-pro',
    host: 'us-central1-aiplatform.googleapis.com',
    path: '/v1/projects/p/locations/us-central1/endpoints/openapi/chat/completions',
  },
  'E, global': {
    config: vertex('global'),
    model: 'claude-next',
    host: 'aiplatform.googleapis.com',
    path: '/v1/projects/p/locations/global/publishers/anthropic/models/claude-next:rawPredict',
  },
  'E, eu': {
    config: vertex('eu'),
    model: 'google/gemini-2.5-pro',
    host: 'aiplatform.eu.rep.googleapis.com',
    path: '/v1/projects/p/locations/eu/endpoints/openapi/chat/completions',
  },
  F: {
    config: { providerF: {} },
    model: 'amazon.nova-lite-v1:0',
    host: 'bedrock-runtime.us-east-1.amazonaws.com',
    path: '/model/amazon.nova-lite-v1:0/converse',
  },
}
const guards: Readonly<Record<string, { readonly guard: (policies: object) => object; readonly host: string }>> = {
  moderationApi: { guard: (policies) => ({ moderationApi: { policies } }), host: 'api.openai.com' },
  cloudGuardrails: {
    guard: (policies) => ({ cloudGuardrails: { identifier: 'g', version: '1', region: 'eu-west-1', policies } }),
    host: 'bedrock-runtime.eu-west-1.amazonaws.com',
  },
  modelArmor: { guard: (policies) => ({ modelArmor: { templateId: 't', projectId: 'p', policies } }), host: 'modelarmor.us-central1.rep.googleapis.com' },
}

let mock: MockProvider
let internet: FakeInternet
let backends: Backends
let directory: string

beforeAll(async () => {
  mock = await startMockProvider()
  internet = await startFakeInternet({ port: mock.port })
  directory = await mkdtemp(join(tmpdir(), 'llm-'))
  const authority = join(directory, 'authority.pem')
  await writeFile(authority, internet.authority)
  const tunnel = { backendRef: { address: `127.0.0.1:${internet.port}` } }
  const auth = { key: 'key-of-the-provider' }
  const config = {
    ...Object.fromEntries(Object.entries(chats).map(([name, chat]) => [name, { ai: { provider: chat.config }, policies: { tunnel, auth } }])),
    signed: { ai: { provider: { providerF: {} } }, policies: { tunnel, auth: { cloudA: { secretRef: { secret: 'ns/aws' } } } } },
    ...Object.fromEntries(
      Object.entries(guards).map(([name, { guard }]) => [
        name,
        {
          ai: { provider: { providerA: {}, host: '127.0.0.1', port: mock.port } },
          policies: { auth, ai: { promptGuard: { request: [guard({ tunnel, auth })] } } },
        },
      ]),
    ),
  }
  const secrets = [{ key: 'ns/aws', type: 'opaque', data: { accessKey: 'AKIDEXAMPLE', secretKey: 'secret-of-the-gateway' } }]
  backends = await startBackends(config, secrets, [], { NODE_EXTRA_CA_CERTS: authority })
})
afterEach(() => {
  internet.impersonate(undefined)
  internet.calls.length = 0
  mock.requests.length = 0
})
afterAll(async () => {
  await backends.close()
  await internet.close()
  await mock.close()
  await rm(directory, { recursive: true, force: true })
})

const chat = (name: string, model = 'gpt-4o', content = 'hello'): Promise<Response> =>
  fetch(`${backends.origin(name)}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  })

describe.each(Object.keys(chats))('provider %s', (name) => {
  const { model, host, path } = chats[name] ?? { model: '', host: '', path: '' }

  test('is rejected if its certificate is for another host', async () => {
    internet.impersonate('other.test')
    const response = await chat(name, model)
    expect([response.status, mock.requests.length]).toEqual([503, 0])
    expect(await response.text()).toMatch(/^upstream call failed/)
    expect(internet.calls.map(({ address }) => address)).toContain(`${host}:443`)
  })

  test('is called at its default host', async () => {
    const response = await chat(name, model)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('echo: hello')
    expect(internet.calls).toEqual([{ address: `${host}:443`, serverName: host }])
    expect(mock.requests.map((request) => [request.headers['host'], request.path])).toEqual([[host, path]])
  })
})

test('a signature for Bedrock covers the host without its port', async () => {
  const response = await chat('signed', 'amazon.nova-lite-v1:0')
  await response.text()
  expect(response.status).toBe(200)
  const headers = mock.requests[0]?.headers ?? {}
  expect(headers['host']).toBe('bedrock-runtime.us-east-1.amazonaws.com')
  expect(headers['authorization']).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/bedrock\/aws4_request, SignedHeaders=[^,]*\bhost\b/)
})

describe.each(Object.keys(guards))('guard %s', (name) => {
  const host = guards[name]?.host ?? ''

  test('is rejected if its certificate is for another host', async () => {
    internet.impersonate('other.test')
    const response = await chat(name)
    expect([response.status, await response.text()]).toEqual([503, 'prompt guard failed'])
    expect(mock.requests).toEqual([])
  })

  test('is called at its default host', async () => {
    const refused = await chat(name, 'gpt-4o', 'of the dragon')
    expect([refused.status, internet.calls]).toEqual([403, [{ address: `${host}:443`, serverName: host }]])
    expect(mock.requests.map(({ headers }) => headers['host'])).toEqual([host])
  })
})
