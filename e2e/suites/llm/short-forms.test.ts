import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import Anthropic from '@anthropic-ai/sdk'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import OpenAI, { type APIError } from 'openai'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import type { MockRequest } from '../../harness/llm/server.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startMcpUpstream } from '../../harness/upstream/mcp.ts'

const received: MockRequest[] = []
let directory: string
let mock: MockProvider
let tools: Awaited<ReturnType<typeof startMcpUpstream>>
let dataplane: Dataplane
let llm: string
let mcp: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'short-forms-'))
  mock = await startMockProvider({ onRequest: (request) => void received.push(request) })
  tools = await startMcpUpstream({ name: 'tools', port: 0 })
  const [llmPort, mcpPort] = await findFreePorts(2)
  llm = `http://127.0.0.1:${llmPort}`
  mcp = `http://127.0.0.1:${mcpPort}/mcp`
  const file = join(directory, 'gateway.yaml')
  await writeFile(join(directory, 'anthropic.key'), 'key-of-a-file\n')
  await writeFile(
    file,
    `llm:
  port: \${LLM_PORT}
  addresses: [127.0.0.1]
  models:
    gpt-4o: { openai: { apiKey: \${OPENAI_API_KEY}, url: \${MOCK_URL}/v1/ } }
    claude: { anthropic: { apiKey: \${file:anthropic.key}, model: claude-next, url: \${MOCK_URL} } }
    azure: { azureOpenAI: { apiKey: \${UNSET:-azure-key}, endpoint: x.openai.azure.com, deploymentName: gpt-4o, apiVersion: 2024-10-21, url: \${MOCK_URL} } }
    gemini: { gemini: { apiKey: gemini-key, model: gemini-2.5-flash, url: \${MOCK_URL} } }
    vertex: { vertexAI: { apiKey: vertex-token, model: google/gemini-2.5-flash, projectId: p, region: us-central1, url: \${MOCK_URL} } }
    nova:
      bedrock: { region: eu-west-1, model: amazon.nova-pro-v1:0, accessKeyId: AKIDEXAMPLE, secretAccessKey: \${AWS_KEY}, url: \${MOCK_URL} }
    local/model:1: { openai: { url: "\${MOCK_URL}/nested/v1" } }
mcp:
  port: \${MCP_PORT}
  addresses: [127.0.0.1]
  tools: { url: http://127.0.0.1:${tools.port}/mcp, apiKey: mcp-token }
  other: { url: http://127.0.0.1:${tools.port} }
`,
  )
  const env = { LLM_PORT: String(llmPort), MCP_PORT: String(mcpPort), OPENAI_API_KEY: 'openai-key', AWS_KEY: 'aws-secret', MOCK_URL: mock.url }
  dataplane = await startDataplane({ config: { file }, env })
})
afterAll(async () => {
  await dataplane?.stop(100)
  await tools.close()
  await mock.close()
  await rm(directory, { recursive: true, force: true })
})

const openai = (headers: Record<string, string> = {}): OpenAI =>
  new OpenAI({ apiKey: 'client-key', maxRetries: 0, baseURL: `${llm}/v1`, defaultHeaders: headers })
const anthropic = (): Anthropic => new Anthropic({ apiKey: 'client-key', maxRetries: 0, baseURL: llm })
const messages = [{ role: 'user', content: 'hello you' }] as const
const bodyOf = (request: MockRequest | undefined): Record<string, unknown> => JSON.parse(request?.raw.toString() ?? '{}') as Record<string, unknown>
const fail = async (call: PromiseLike<unknown>): Promise<APIError> => {
  try {
    await call
  } catch (error) {
    return error as APIError
  }
  throw new Error('the request succeeded')
}

describe('a config file with the section llm', () => {
  test.each([
    ['gpt-4o', '/v1/chat/completions', { authorization: 'Bearer openai-key' }],
    ['claude', '/v1/messages', { 'x-api-key': 'key-of-a-file' }],
    ['azure', '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21', { authorization: 'Bearer azure-key' }],
    ['gemini', '/v1beta/openai/chat/completions', { authorization: 'Bearer gemini-key' }],
    ['vertex', '/v1/projects/p/locations/us-central1/endpoints/openapi/chat/completions', { authorization: 'Bearer vertex-token' }],
    ['nova', '/model/amazon.nova-pro-v1:0/converse', { authorization: expect.stringContaining('Credential=AKIDEXAMPLE/') }],
  ])('sends chats with %s to its provider', async (model, path, headers) => {
    received.length = 0
    const reply = await openai().chat.completions.create({ model, messages: [...messages] })
    expect(reply.choices[0]?.message.content).toBe('echo: hello you')
    expect(received.map((request) => request.path)).toEqual([path])
    expect(received[0]?.headers).toMatchObject(headers)
    expect(received[0]?.headers).not.toHaveProperty('x-proxy-llm-model')
  })

  test('replaces the model of clients by that of the provider', async () => {
    received.length = 0
    const message = await anthropic().messages.create({ model: 'claude', max_tokens: 10, messages: [...messages] })
    expect(message.content).toMatchObject([{ type: 'text', text: 'echo: hello you' }])
    await openai().chat.completions.create({ model: 'gpt-4o', messages: [...messages] })
    expect(received.map((request) => bodyOf(request)['model'])).toEqual(['claude-next', 'gpt-4o'])
  })

  test('sends requests to the path of the URL of an OpenAI-compatible server', async () => {
    received.length = 0
    await openai().chat.completions.create({ model: 'local/model:1', messages: [...messages] })
    expect(received.map((request) => request.path)).toEqual(['/nested/v1/chat/completions'])
    expect(bodyOf(received[0])['model']).toBe('local/model:1')
  })

  test('serves embeddings and responses of the chosen model', async () => {
    received.length = 0
    await openai().embeddings.create({ model: 'gpt-4o', input: 'a' })
    await openai().responses.create({ model: 'gpt-4o', input: 'a' })
    expect(received.map((request) => request.path)).toEqual(['/v1/embeddings', '/v1/responses'])
  })

  test('lists the models by the names that clients use', async () => {
    const { data } = await openai().models.list()
    expect(data.map(({ id, owned_by: owner }) => [id, owner])).toEqual(
      expect.arrayContaining([
        ['gpt-4o', 'openai'],
        ['local/model:1', 'openai'],
        ['claude', expect.stringContaining('anthropic')],
      ]),
    )
    expect(data).toHaveLength(7)
  })

  test('responds with model_not_found to an unknown model, in the format of the API', async () => {
    received.length = 0
    const error = await fail(openai().chat.completions.create({ model: 'gpt-5', messages: [...messages] }))
    expect([error.status, error.code, error.param]).toEqual([404, 'model_not_found', 'model'])
    expect(error.message).toContain('gpt-4o, claude, azure, gemini, vertex, nova, local/model:1')
    const other = await fail(anthropic().messages.create({ model: 'gpt-5', max_tokens: 10, messages: [...messages] }))
    expect([other.status, other.error]).toEqual([
      404,
      { type: 'error', error: { type: 'not_found_error', message: expect.stringContaining('gpt-4o, claude') } },
    ])
    expect(received).toEqual([])
  })

  test.each([
    ['is no JSON', 'hello'],
    ['has no model', '{"messages":[]}'],
    ['has an object as model', '{"model":{}}'],
    ['is empty', ''],
  ])('responds with 400 to a request whose body %s', async (_, body) => {
    const response = await fetch(`${llm}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/json'])
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error', param: 'model' } })
  })

  test('does not let clients choose the model by a header', async () => {
    const headers = { 'x-proxy-llm-model': 'gpt-4o' }
    const error = await fail(openai(headers).chat.completions.create({ model: 'gpt-5', messages: [...messages] }))
    expect(error.status).toBe(404)
    const response = await fetch(`${llm}/v1/chat/completions`, { method: 'POST', headers, body: '{"messages":[]}' })
    expect(response.status).toBe(400)
    const spelling = await fetch(`${llm}/v1/chat/completions`, { method: 'POST', headers: { x_proxy_llm_model: 'gpt-4o' }, body: '{"messages":[]}' })
    expect(spelling.status).toBe(400)
  })

  test('accepts requests with images of several megabytes', async () => {
    const url = `data:image/png;base64,${'A'.repeat(4 * 1024 * 1024)}`
    const content = [{ type: 'image_url', image_url: { url } } as const, { type: 'text', text: 'hello you' } as const]
    const reply = await openai().chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content }] })
    expect(reply.choices[0]?.finish_reason).toBe('stop')
  })

  test('appears in config_dump in the long form without keys', async () => {
    const dump = await (await dataplane.admin('/config_dump')).text()
    expect(dump).toContain('llm.gpt-4o')
    expect(dump).toContain('<redacted>')
    expect(dump).not.toMatch(/openai-key|key-of-a-file|aws-secret|mcp-token/)
  })
})

describe('a config file with the section mcp', () => {
  test('serves the tools of its servers with their names as prefix', async () => {
    const client = new Client({ name: 'e2e', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(mcp)))
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['tools_search', 'other_search']))
    expect(await client.callTool({ name: 'tools_search', arguments: {} })).toHaveProperty('content')
    expect(tools.received.some(({ headers }) => headers.authorization === 'Bearer mcp-token')).toBe(true)
    expect(tools.received.every(({ line }) => line.endsWith(' /mcp'))).toBe(true)
    await client.close()
  })
})
