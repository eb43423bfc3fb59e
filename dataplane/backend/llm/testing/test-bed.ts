import { request as httpRequest } from 'node:http'
import type { AIBackend, BackendFull, NamedLLMProvider } from '#gen/config/types.ts'
import { startMockProvider, type MockProvider } from '../../../../e2e/harness/llm/provider.ts'
import { startLlmGateway, type LlmGateway, type LlmGatewayOptions } from './gateway.ts'

/** JSON with untyped members. */
export interface Loose {
  readonly [key: string | number]: Loose
}

/** A complete response. */
export interface TestResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The parsed text; an empty object if it is not JSON. */
  readonly json: Loose
}

/** A request to the gateway; a `body` that is neither a Buffer nor a string is printed as JSON. */
export interface Post {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A gateway in front of mock providers. */
export interface TestBed {
  readonly gateway: LlmGateway
  readonly mocks: readonly MockProvider[]
  readonly mock: MockProvider
  post(post: Post): Promise<TestResponse>
  close(): Promise<void>
}

/** Options of a test bed. */
export interface TestBedOptions extends Omit<LlmGatewayOptions, 'ai'> {
  /** Default: providerA. `host` and `port` are set to a mock. */
  readonly provider?: Omit<NamedLLMProvider, 'name'>
  /** Replaces `provider`: groups of providers by name, each with its own mock. */
  readonly groups?: readonly Readonly<Record<string, Omit<NamedLLMProvider, 'name'>>>[]
  readonly ai?: BackendFull['ai']
}

/** The routes that the vendors' SDKs use. */
export const sdkRoutes = {
  '/chat/completions': 'Completions',
  '/messages': 'Messages',
  '/messages/count_tokens': 'TokenCount',
  '/responses': 'Responses',
  '/embeddings': 'Embeddings',
  '/models': 'Models',
  '/realtime': 'Realtime',
  '*': 'Passthrough',
} as const

/** Starts mock providers and a gateway in front of them. */
export async function startTestBed({ provider = { providerA: {} }, groups, ai, policies, ...options }: TestBedOptions = {}): Promise<TestBed> {
  const mocks: MockProvider[] = []
  const addMock = async <T extends object>(config: T): Promise<T & { host: string; port: number }> => {
    const mock = await startMockProvider()
    mocks.push(mock)
    return { ...config, host: '127.0.0.1', port: mock.port }
  }
  const backend: AIBackend =
    groups === undefined
      ? { provider: await addMock(provider) }
      : {
          groups: await Promise.all(
            groups.map(async (group) => ({ providers: await Promise.all(Object.entries(group).map(([name, config]) => addMock({ name, ...config }))) })),
          ),
        }
  const gateway = await startLlmGateway({ ...options, ai: backend, policies: { ...policies, ...(ai && { ai }) } })
  const [mock] = mocks
  if (mock === undefined) throw new Error('no provider')
  return {
    gateway,
    mocks,
    mock,
    post: (post) => send(gateway.port, post),
    async close() {
      await gateway.close()
      for (const one of mocks) await one.close()
    },
  }
}

/** Sends a request and reads the complete response. */
export function send(port: number, { path = '/v1/chat/completions', method = 'POST', headers = {}, body }: Post): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.isBuffer(body) || typeof body === 'string' ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
    const request = httpRequest(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        agent: false,
        headers: { host: 'llm.test', 'content-type': 'application/json', ...(bytes && { 'content-length': bytes.length }), ...headers },
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          const flat = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
          resolve({ status: response.statusCode ?? 0, headers: flat, text, json: parse(text) })
        })
      },
    )
    request.on('error', reject)
    request.end(bytes)
  })
}

function parse(text: string): Loose {
  try {
    return JSON.parse(text) as Loose
  } catch {
    return {}
  }
}

/** A chat request with one user message. */
export const chat = (text = 'hello there', more: object = {}): object => ({ model: 'gpt-4o', messages: [{ role: 'user', content: text }], ...more })
