import { fileURLToPath } from 'node:url'
import { startBackends, type Backends } from '../llm/gateway.ts'
import { KEY } from './providers/api.ts'
import { startProviders, vendors, type Providers } from './providers/server.ts'

export const toolAt = (path: string): string => fileURLToPath(new URL(`../../../.tools/${path}`, import.meta.url))
export const PYTHON = toolAt('llm-clients/bin/python')

/** The route types that docs/guide/llm.md recommends. */
const routes = {
  '/chat/completions': 'Completions',
  '/responses': 'Responses',
  '/messages': 'Messages',
  '/messages/count_tokens': 'TokenCount',
  '/models': 'Models',
  ':generateContent': 'Gemini',
  ':streamGenerateContent': 'Gemini',
  '*': 'Detect',
}

const config: Readonly<Record<string, object>> = {
  OpenAI: { providerA: {} },
  Anthropic: { providerC: {} },
  Gemini: { providerD: {} },
  'Vertex AI, Claude': { providerE: { projectId: 'p', region: 'us-east5' } },
  'Vertex AI, Gemini': { providerE: { projectId: 'p', region: 'us-east5' } },
  Bedrock: { providerF: { region: 'eu-west-1' } },
  'OpenAI-compatible': { providerA: {} },
}

/** A data plane with one port for each vendor, in front of the strict mocks. */
export interface ClientGateway {
  /** What a client is told: the URL and the model of each provider. */
  readonly plan: {
    readonly control: string
    readonly npm: string
    readonly providers: readonly { readonly name: string; readonly url: string; readonly model: string }[]
  }
  readonly providers: Providers
  readonly backends: Backends
  close(): Promise<void>
}

export async function startClientGateway(): Promise<ClientGateway> {
  const providers = await startProviders(PYTHON)
  const backendOf = (name: string, port: number | undefined): object => ({
    ai: { provider: { ...config[name], host: '127.0.0.1', port } },
    policies: { ai: { routes }, auth: name === 'Bedrock' ? { cloudA: { secretRef: { secret: 'ns/aws' } } } : { key: KEY } },
  })
  const backends = await startBackends(Object.fromEntries(vendors.map(({ name }, at) => [name, backendOf(name, providers.ports[at])])), [
    { key: 'ns/aws', type: 'opaque', data: { accessKey: 'AKIDEXAMPLE', secretKey: 'secret-of-the-gateway' } },
  ])
  return {
    plan: {
      control: providers.control,
      npm: toolAt('llm-clients-npm'),
      providers: vendors.map(({ name, model }) => ({ name, url: backends.origin(name), model })),
    },
    providers,
    backends,
    async close() {
      await backends.close()
      await providers.close()
    },
  }
}
